"""squall.Array: an array that lies in files."""

import base64
import hashlib
import json
import math
import os

import numpy as np

from squall import _select, _squall
from squall._attributes import Attributes
from squall._text import array_text, size_text


class Array(_squall.Array):
    """An array of a dataset: squall.open(path)[name], squall.open_array(path).

    a[key] reads and returns a new numpy array in the machine's byte order; all of numpy's selections but newaxis are taken: integers,
    slices with any step, Ellipsis, integer arrays, boolean masks. a[key] = values writes, broadcast and cast as numpy does it, where the
    array was opened with mode="r+"; what a numpy.ma array masks becomes the fill value.
    Reads and writes run on all threads and let other Python threads go on; any number of threads may
    use an array at the same time. An array pickles (as path, name and what it was), and survives fork.

    Raises squall.Error where a chunk cannot be read (a chunk that was never written reads as the fill value), IndexError and TypeError
    for keys that select nothing.
    """

    __slots__ = ("__weakref__", "_attrs")

    @property
    def size(self):
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self):
        """Of all elements in memory, bytes."""
        return self.size * self.itemsize

    @property
    def itemsize(self):
        """Of one element in memory, bytes."""
        return self.dtype.itemsize

    @property
    def basename(self):
        """The last part of the name."""
        return self.name.rpartition("/")[2]

    @property
    def attrs(self):
        """The attributes, a mapping."""
        try:
            return self._attrs
        except AttributeError:
            self._attrs = Attributes((self._attributes, self._attribute_types), self._dataset, self._name_within, self._fill_dtype)
            return self._attrs

    @property
    def _fill_dtype(self):
        return self.dtype if self._dataset.format == "zarr v3" else None

    @property
    def fill_value(self):
        """What elements that were never written read as, a numpy scalar, text or bytes; None where the store says none."""
        text = self._fill_value
        if text == "null":
            return None
        fill = self._fill()
        if fill is not None:
            return np.frombuffer(fill, self.dtype)[0]
        value = json.loads(text)
        if self.unsupported:
            return value
        if isinstance(value, list):  # of an HDF5 array type, whose elements are dimensions here
            return np.array(value, self.dtype)
        return base64.b64decode(value) if self.type_name == "bytes" else str(value)

    @property
    def oindex(self):
        """a.oindex[[0, 5], :, mask]: each dimension is selected from by itself."""
        return _select.Orthogonal(self)

    @property
    def vindex(self):
        """a.vindex[[0, 5], [3, 4]]: points. Arrays are broadcast together, and their dimensions come first."""
        return _select.Points(self)

    def _read_advanced(self, key):
        return _select.read_advanced(self, key)

    def _write_advanced(self, key, value):
        _select.write_advanced(self, key, value)

    @property
    def mode(self):
        """ "r", or "r+" where it was opened for writing."""
        return "r+" if self._dataset.writable else "r"

    def resize(self, *shape):
        """Give the array another shape of as many dimensions: a.resize(10, 20) or a.resize((10, 20)).

        Chunks that lie outside are deleted; what is new reads as the fill value. In a NetCDF-3 file records are added, to all variables
        that have them.
        """
        if len(shape) == 1 and not isinstance(shape[0], int):
            shape = tuple(shape[0])
        self._resize(shape)

    def read(self, key=..., out=None, device=None):
        """Read a selection, as a[key] does; into out where it is given.

        out      numpy array, or anything with a writable buffer or DLPack memory of the CPU (torch.Tensor), in the selection's shape
                 and the array's dtype; any strides. It is returned.
        device   None or "cpu"

        Raises as a[key]; ValueError where out has another shape, TypeError where it has another dtype.
        """
        if device not in (None, "cpu"):
            raise NotImplementedError(f"device {device!r}: arrays are read into the CPU's memory only")
        if out is None:
            return self[key]
        view = _writable(out)
        if view.dtype != self.dtype:
            raise TypeError(f"out holds {view.dtype}, but array {self.name} {self.dtype}")
        shape = self._parse(key)
        if shape is None:
            values = self._read_advanced(key)
            shape = values.shape
        else:
            values = None
        if shape != view.shape:
            raise ValueError(f"out has shape {view.shape}, but the selection {shape}")
        if values is None:
            self._read_into(key, as_plain(view))
        else:
            view[...] = values
        return out

    def close(self):
        """Nothing needs it: squall closes files by itself. For code that closes what it opened; what was read and made stays usable."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("an array in files cannot be looked at without a copy of it in memory")
        values = self[...]
        return values if dtype is None else values.astype(dtype, copy=False)

    def __dlpack__(self, **options):
        return self[...].__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)  # kDLCPU

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __bool__(self):
        return True

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over an array without dimensions")
        step = max(1, (self.shards or self.chunks)[0])
        for begin in range(0, self.shape[0], step):
            yield from self[begin : begin + step]

    def __float__(self):
        return float(self._only())

    def __int__(self):
        return int(self._only())

    def _only(self):
        if self.size != 1:
            raise TypeError("only arrays of one element can be converted to Python scalars")
        return self[...].reshape(())[()]

    def __repr__(self):
        return array_text(self)

    def __str__(self):
        dims = ", ".join(f"{d or '?'}: {n}" for d, n in zip(self.dims, self.shape, strict=True))
        return f"<squall.Array {self.name!r} ({dims}) {self.type_name} {size_text(self)}>"

    def _identity(self):
        """What makes it the same array: not its shape, which may grow, nor its attributes."""
        what = (self._numpy_type, self.chunks, self.shards, self.codecs, self._fill_value, self.dims)
        return hashlib.blake2b(repr(what).encode(), digest_size=12).digest()

    @property
    def _name_within(self):
        """Of the node in its store: "" for a store that is one array."""
        return "" if self._dataset.is_array else self.name

    def __reduce__(self):
        from squall._group import reopen_array, source_of

        path, of_file, options = source_of(self._dataset)
        return reopen_array, (path, self.name, self._identity(), of_file, options)


def file_identity(dataset):
    """What its file was when it was opened. None where it may be written to meanwhile: a folder, or open for writing."""
    return None if dataset.writable or os.path.isdir(dataset.path) else dataset.identity


def _writable(out):
    """A numpy array on the memory of out."""
    if isinstance(out, np.ndarray):
        view = out
    else:
        try:
            view = np.asarray(memoryview(out))
        except TypeError:
            if not hasattr(out, "__dlpack__"):
                raise TypeError(f"out is a {type(out).__name__}, which has neither a buffer nor DLPack memory") from None
            view = np.from_dlpack(out)
    if not view.flags.writeable:
        raise ValueError("out cannot be written to")
    return view


def as_plain(view):
    """The same memory under a type that every buffer can tell: numpy's has none of times and of types that others made."""
    return view if view.dtype.kind in "biufc" or view.dtype.hasobject else view.view(f"V{view.dtype.itemsize}")
