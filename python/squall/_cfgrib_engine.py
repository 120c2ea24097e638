"""The part of xarray's engine that opens GRIB files: hypercubes (_cfgrib.py) as xarray's variables, and cfgrib's keywords."""

import glob
import os

import numpy as np
from xarray.backends import AbstractDataStore, StoreBackendEntrypoint
from xarray.core import indexing
from xarray.core.variable import Variable

from squall import _cfgrib
from squall._array import Array
from squall._errors import InvalidError, Status

_FIRST_BYTES = 8
_LOOKED_AT_BYTES = 1 << 20  # bulletins may have headers before the first message
_OTHERS = (b"\x89HDF", b"PK\x03\x04", b"CDF")
_IGNORED = (
    "indexpath",
    "cache_geo_coords",
    "concat_dim",
    "consolidated",
    "decode_vlen_strings",
    "device",
    "drift",
    "mode",
    "order",
    "use_zarr_fill_value_as_mask",
    "zarr_format",
)


def _is_grib(begin, more):
    """begin: its first bytes; more(): what follows them, which is hardly ever needed."""
    return not begin.startswith(_OTHERS) and (b"GRIB" in begin or b"GRIB" in begin + more())


def _is_grib_file(path):
    """False also of what cannot be read: opening it tells why."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return _is_grib(os.read(file, _FIRST_BYTES), lambda: os.read(file, _LOOKED_AT_BYTES - _FIRST_BYTES))
    except OSError:  # a folder
        return False
    finally:
        os.close(file)


def _names(source):
    """The paths of a path or pattern, or of a list."""
    if isinstance(source, (list, tuple)):
        return source
    return glob.glob(source, recursive=True) if glob.has_magic(source) and not os.path.exists(source) else [source]


def opening(source, drop_variables, keywords):
    """A GribOpening, where the source (as _paths_or_content gives it) is GRIB; else None."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        if not _is_grib(bytes(source[:_FIRST_BYTES]), lambda: bytes(source[_FIRST_BYTES:_LOOKED_AT_BYTES])):
            return None
        return GribOpening(None, source, drop_variables, keywords)
    names = _names(source)
    is_list = isinstance(source, (list, tuple))
    if not names or not _is_grib_file(names[0] if is_list else min(names)):
        return None
    names = tuple(map(os.path.abspath, names if is_list else sorted(names)))
    return GribOpening(names, None, drop_variables, keywords)


class GribOpening:
    """What a call of the engine asks for of GRIB files."""

    def __init__(self, names, content, drop_variables, keywords):
        from squall import xarray as engine

        keywords = dict(keywords)
        self.decoders = engine.taken_decoders(keywords) | {"drop_variables": drop_variables}
        settings = _cfgrib.Settings.taken(keywords)
        errors, self.name = keywords.pop("errors", "warn"), (keywords.pop("group", None) or "").strip("/")
        engine.refuse_unknown(keywords, _IGNORED)
        self.memory = None if content is None else engine.Memory(content, settings.text)
        self.files = _cfgrib.Opened(names or (self.memory.path,), settings, errors)
        if self.memory is not None:
            self.memory.take(self.files.dataset)
        drop = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        self.drop, self.source = drop, names[0] if names else None

    @property
    def group(self):
        """Its variables: (name, hypercube) of each."""
        if not self.name:
            return self.files.whole()
        groups = self.files.groups()
        if self.name not in groups:
            path = self.files.names[0]
            raise InvalidError(f"{path}: no group {self.name}; there are {', '.join(groups)}", Status.EINVAL, path)
        return groups[self.name]

    def below(self):
        """Of a tree: (name, variables) of each group, the root first."""
        if self.name:
            return [("", self.group)]
        return [("", []), *self.files.groups().items()]

    def decoded(self, named):
        found = StoreBackendEntrypoint().open_dataset(_Store(self, named), **self.decoders)
        found.set_close(None)
        return found


class _Store(AbstractDataStore):
    def __init__(self, opening, named):
        self._opening, self._named = opening, named

    def get_attrs(self):
        return self._opening.files.attrs

    def get_encoding(self):
        return {"unlimited_dims": set()}

    def get_variables(self):
        found = self._opening.files.variables(self._named)
        return {name: self._variable(*variable) for name, *variable in found if name not in self._opening.drop}

    def _variable(self, dims, data, attrs):
        settings = self._opening.files.settings
        encoding = {"filter_by_keys": settings.filter_by_keys, "encode_cf": settings.encode_cf}
        if self._opening.source is not None:
            encoding["source"] = self._opening.source
        if isinstance(data, str):
            from squall.xarray import ArrayOfFile

            array = Array(self._opening.files.dataset, data)
            encoding["preferred_chunks"] = dict(zip(dims, array.chunks, strict=True))
            encoding["original_shape"] = array.shape
            data = indexing.LazilyIndexedArray(ArrayOfFile(array, array.dtype, self._opening.memory))
        else:
            data = np.asarray(data)
            encoding["original_shape"] = data.shape
        return Variable(dims, data, attrs, encoding)
