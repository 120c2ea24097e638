"""What the library says went wrong, as exceptions."""

import enum
import errno


class Status(enum.IntEnum):
    """The kind of an error, as in C's enum squall_status."""

    EIO = -1  #: the system refused
    ENOMEM = -2  #: memory, or the memory budget, is spent
    ECORRUPT = -3  #: bytes contradict their format
    EUNSUPPORTED = -4  #: valid, but squall does not read it; the message names the feature
    ENOTFOUND = -5
    EINVAL = -6  #: the arguments make no sense
    ECANCELLED = -7
    EREFUSED = -8  #: possible, but it would harm what is there
    ERANGE = -9  #: a value does not fit the type that it is to be stored as


class Error(OSError):
    """A file, store or array could not be read or written; str(e) says what, where, and what to do.

    .status   a squall.Status
    .path     of the dataset, as it was opened; None where there is none
    .errno    the system's number, where the system refused
    """

    def __init__(self, message, status=Status.EIO, path=None, errno=None):
        super().__init__(message)
        self.status, self.path, self.errno = Status(status), path, errno

    def __str__(self):
        return str(self.args[0])

    def __reduce__(self):
        return type(self), (self.args[0], self.status, self.path, self.errno)


class NotFoundError(Error, FileNotFoundError):
    """There is nothing at the path."""


class AccessError(Error, PermissionError):
    """The system does not let this process read or write the path."""


class ReadOnlyError(Error, PermissionError, ValueError):
    """What is to be changed was opened for reading."""

    def __init__(self, message, status=Status.EREFUSED, path=None, errno=None):
        super().__init__(message, status, path, errno)


class InvalidError(Error, ValueError):
    """An argument makes no sense for what is there."""


class RangeError(Error, OverflowError):
    """A value does not fit the type that it is to be stored as."""


class UnsupportedError(Error, NotImplementedError):
    """Valid, but squall does not read it."""


def refuse_header(dataset, what):
    """An error for a change of what only the header of a file says."""
    if dataset.format.startswith("netcdf3"):
        why = "the header of a NetCDF-3 file is not changed once it is written: write a new file"
        raise UnsupportedError(f"{dataset.path}: {what}: {why}", Status.EUNSUPPORTED, dataset.path)


_CLASSES = {
    Status.ENOTFOUND: NotFoundError,
    Status.EINVAL: InvalidError,
    Status.ERANGE: RangeError,
    Status.EUNSUPPORTED: UnsupportedError,
}


def error_of(status, os_errno, message, path):
    """The exception for a struct squall_error; called by the extension."""
    if status == Status.ENOMEM:
        return MemoryError(message)
    if os_errno == errno.ENOENT:
        kind = NotFoundError
    elif os_errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        kind = AccessError
    else:
        kind = _CLASSES.get(status, Error)
    return kind(message, status, path, os_errno or None)
