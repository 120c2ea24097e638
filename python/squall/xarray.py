"""xarray with squall below it:

    xr.open_dataset("era5.nc", engine="squall")             # a Zarr store, an HDF5, NetCDF or GRIB file
    xr.open_dataset("era5/*.nc", engine="squall")           # many files as one dataset; a list of them, too
    xr.open_datatree("model.nc", engine="squall")           # all groups

Opening reads metadata, and the values of index coordinates, nothing else. Variables are read when they are asked for, by all threads and
without a lock; what is selected before that is all that is read. They pickle as path and identity, and are opened again where they are
unpickled.
"""

import asyncio
import contextlib
import glob
import json
import os
import tempfile
import warnings

import numpy as np
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint, StoreBackendEntrypoint
from xarray.coding.strings import create_vlen_dtype
from xarray.core import indexing
from xarray.core.datatree import DataTree
from xarray.core.variable import Variable

from squall import _cfgrib, _cfgrib_engine, _encoding, _squall
from squall._array import Array, file_identity
from squall._attributes import from_json
from squall._errors import InvalidError, Status, UnsupportedError
from squall._group import Group, _Tree, reopen_array
from squall._group import open as open_path
from squall._many import check_words, open_many
from squall._paths import path_text

# keywords of the netcdf4, h5netcdf and zarr engines that mean nothing here: there are no locks, no handles to be kept, no other libraries
_IGNORED = {
    "auto_complex",
    "autoclose",
    "cache_members",
    "clobber",
    "diskless",
    "driver",
    "driver_kwds",
    "engine",
    "format",
    "invalid_netcdf",
    "lock",
    "open_kwargs",
    "persist",
    "phony_dims",
    "storage_options",
    "zarr_version",
}
_DECODERS = {
    "mask_and_scale": True,
    "decode_times": True,
    "concat_characters": True,
    "decode_coords": True,
    "use_cftime": None,
    "decode_timedelta": None,
}
_KEYWORDS = {
    "group": None,
    "mode": "r",
    "device": None,
    "concat_dim": None,
    "order": "coordinates",
    "drift": "error",
    "consolidated": None,
    "zarr_format": None,
    "use_zarr_fill_value_as_mask": None,
    "decode_vlen_strings": True,
}
_STORE_OBJECTS = {"chunk_store", "store", "synchronizer"}
_MAGIC = (b"\x89HDF\r\n\x1a\n", b"PK\x03\x04", b"CDF", b"GRIB")


# ---- one variable ---------------------------------------------------------------------------------------------------------------------


def _lines(key):
    """Of a vectorised key that is a mesh: for each array the axis that it varies along (None: none) and its values. Else None."""
    arrays = {d: np.asarray(k) for d, k in enumerate(key) if not isinstance(k, slice)}
    shape = np.broadcast_shapes(*(a.shape for a in arrays.values()))
    if 0 in shape:
        return None
    lines, taken = {}, set()
    for d, a in arrays.items():
        a = a.reshape((1,) * (len(shape) - a.ndim) + a.shape)
        axis = next((axis for axis in range(a.ndim) if a.shape[axis] > 1 and axis not in taken and _varies_only(a, axis)), None)
        if axis is None and a.size > 1 and (a != a.flat[0]).any():
            return None
        if axis is not None:
            taken.add(axis)
        lines[d] = axis, (a.reshape(-1)[:1] if axis is None else a[(0,) * axis + (slice(None),) + (0,) * (a.ndim - axis - 1)])
    if any(n != 1 and axis not in taken for axis, n in enumerate(shape)):
        return None  # points that are asked for several times
    return lines, shape


def _varies_only(a, axis):
    """Is it the same along all other axes?"""
    line = a[tuple(slice(None) if d == axis else slice(0, 1) for d in range(a.ndim))]
    return a.size == line.size or bool((a == line).all())


def _read_mesh(array, key, lines, shape):
    """A mesh is read dimension by dimension: axes of the key's arrays come first, in their order, then slices."""
    selectors = [int(lines[d][1][0]) if d in lines and lines[d][0] is None else lines[d][1] if d in lines else k for d, k in enumerate(key)]
    values = array.oindex[tuple(selectors)]
    kept = [d for d, s in enumerate(selectors) if not isinstance(s, int)]
    order = sorted((d for d in kept if d in lines), key=lambda d: lines[d][0]) + [d for d in kept if d not in lines]
    values = values.transpose([kept.index(d) for d in order])
    return values.reshape(shape + values.shape[sum(d in lines for d in kept) :])


class ArrayOfFile(BackendArray):
    """A squall.Array as xarray indexes it; all of its selections are pushed down.

    One that is unpickled opens its file when it is first read: Dask's scheduler unpickles graphs, and need not see the files.
    """

    # not `array`: xarray takes that for what may be evaluated
    __slots__ = ("_opened", "_packed", "_source", "decoding", "dtype", "shape")

    def __init__(self, array, dtype, source=None):
        self._opened, self._packed, self.dtype, self.shape, self._source = array, None, dtype, array.shape, source
        self.decoding = False

    @property
    def _array(self):
        if self._opened is None:
            self._opened = reopen_array(*self._packed)
        return self._opened

    def __getitem__(self, key):
        parts = key.tuple
        if self.decoding:  # xarray looks whether the first object is a date of cftime: no file has such
            return np.full((1,) * sum(isinstance(part, slice) for part in parts), None, object)
        if isinstance(key, indexing.BasicIndexer):
            values = self._array[parts]
        elif isinstance(key, indexing.VectorizedIndexer):
            mesh = _lines(parts)
            values = self._array.vindex[parts] if mesh is None else _read_mesh(self._array, parts, *mesh)
        else:
            values = self._array.oindex[parts]
        return self._typed(np.asarray(values))

    def _typed(self, values):
        if self.dtype.kind == "T":
            return values.astype(self.dtype)
        if self.dtype == np.dtype(object) and self.dtype.metadata and self.dtype.metadata.get("element_type") is bytes:
            return np.frompyfunc(lambda text: text.encode("utf-8", "surrogateescape"), 1, 1)(values)
        return values

    async def async_getitem(self, key):
        return await _Turn.of(asyncio.get_running_loop()).read(self, key)

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        if self._source is not None:
            return _array_of_memory, (self._source, self._array.name, self.dtype)
        return _array_of_file, (self._packed or self._array.__reduce__()[1], self.dtype, self.shape)

    def __dask_tokenize__(self):
        array = self._array
        return "squall", *_identity_of(array), array.name, array._identity(), array.shape, str(self.dtype)


def _array_of_file(packed, dtype, shape):
    found = ArrayOfFile.__new__(ArrayOfFile)
    found._opened, found._packed, found.dtype, found.shape, found._source = None, packed, dtype, shape, None
    found.decoding = False
    return found


class _Turn:
    """The reads that coroutines ask for in one turn of an event loop: another thread does them together, side by side."""

    _open: dict = {}  # event loop → its turn

    def __init__(self, loop):
        self._loop, self._asked = loop, []

    @classmethod
    def of(cls, loop):
        if loop not in cls._open:
            cls._open[loop] = cls(loop)
            loop.call_soon(cls._open[loop]._begin)
        return cls._open[loop]

    async def read(self, backend, key):
        answer = self._loop.create_future()
        self._asked.append((backend, key, answer))
        return await answer

    def _begin(self):
        del self._open[self._loop]
        self._loop.run_in_executor(None, _read_together, [(backend, key) for backend, key, _ in self._asked]).add_done_callback(self._end)

    def _end(self, done):
        for i, (_, _, answer) in enumerate(self._asked):
            if answer.done():
                continue  # whoever asked has been cancelled
            if done.cancelled():
                answer.cancel()
            elif isinstance(value := done.exception() or done.result()[i], BaseException):
                answer.set_exception(value)
            else:
                answer.set_result(value)


def _read_together(asked):
    """What each (ArrayOfFile, key) is, or the exception that it raises."""
    found, boxes = [None] * len(asked), {}
    for i, (backend, key) in enumerate(asked):
        try:
            if isinstance(key, indexing.BasicIndexer) and not backend.dtype.hasobject and backend.dtype.kind != "T":
                boxes.setdefault(id(backend._array._dataset), []).append(i)
        except Exception as error:
            found[i] = error
    for group in boxes.values():
        arrays = [asked[i][0]._array for i in group]
        with contextlib.suppress(Exception):  # below each one raises its own
            for i, values in zip(group, arrays[0]._read_boxes([asked[i][1].tuple for i in group], arrays), strict=True):
                found[i] = values
    for i, (backend, key) in enumerate(asked):
        if found[i] is None:
            try:
                found[i] = backend[key]
            except Exception as error:
                found[i] = error
    return found


def _identity_of(array):
    """Of what an array lies in: files as they were when they were opened, folders as they are."""
    dataset = array._dataset
    if dataset.many:
        return "many", dataset.many, dataset.identity
    path = os.path.abspath(dataset.path)
    identity = file_identity(dataset)
    if identity is None:
        state = os.stat(path)
        identity = state.st_ino, state.st_mtime_ns
    return path, identity


class ArrayThatCannotBeRead(BackendArray):
    """A variable of which the metadata are all that squall can read."""

    __slots__ = ("dtype", "reason", "shape")

    def __init__(self, shape, reason):
        self.shape, self.dtype, self.reason = shape, np.dtype("V"), reason

    def __getitem__(self, key):
        raise UnsupportedError(self.reason, Status.EUNSUPPORTED)

    async def async_getitem(self, key):
        return self[key]


# ---- sources --------------------------------------------------------------------------------------------------------------------------


class Memory:
    """A file's bytes that lie in memory, as a file that nobody else sees."""

    def __init__(self, content, arrangement=None):
        self._arrangement = arrangement  # of GRIB fields
        if hasattr(os, "memfd_create"):
            self._file = os.fdopen(os.memfd_create("squall"), "r+b")
            self.path = f"/proc/self/fd/{self._file.fileno()}"
        else:
            self._file = tempfile.NamedTemporaryFile()  # noqa: SIM115
            self.path = self._file.name
        self._file.write(content)
        self._file.flush()
        self._dataset = None

    @property
    def dataset(self):
        if self._dataset is None:
            arrangement = self._arrangement
            self._dataset = _squall.Dataset(self.path) if arrangement is None else _cfgrib.arrange((self.path,), arrangement)
        return self._dataset

    def take(self, dataset):
        """It was opened already."""
        self._dataset = dataset

    def __reduce__(self):
        self._file.seek(0)
        return Memory, (self._file.read(), self._arrangement)


def _array_of_memory(memory, name, dtype):
    return ArrayOfFile(Array(memory.dataset, name), dtype, memory)


def _folder_error(path):
    endings = [os.path.splitext(name)[1] for name in sorted(os.listdir(path))]
    ending = max(set(endings), key=endings.count, default="")
    pattern = os.path.join(path, f"*{ending}")
    return InvalidError(
        f"{path} is a folder, but no Zarr store; its files are opened as one dataset by xr.open_dataset({pattern!r}, engine='squall')",
        Status.EINVAL,
        path,
    )


def _is_text(source):
    return isinstance(source, (str, os.PathLike))


def _paths_or_content(source):
    """A path or pattern, or a list of paths, as texts; or bytes: of a file object what is in it."""
    if _is_text(source):
        return path_text(source)
    if isinstance(source, (list, tuple)):
        if not all(map(_is_text, source)):
            raise TypeError("a list for engine='squall' is one of paths")
        return [path_text(path) for path in source]
    if isinstance(source, (bytes, bytearray, memoryview)):
        return source
    if not (hasattr(source, "read") and hasattr(source, "seek")):
        kind = f"{type(source).__module__}.{type(source).__qualname__}"
        raise TypeError(f"engine='squall' opens paths, patterns, lists of paths, bytes and file objects; not a {kind}: give it the path")
    at = source.tell()
    source.seek(0)
    content = source.read()
    source.seek(at)
    return content


def _group_of(source, concat_dim, order, drift):
    """What _paths_or_content gives, opened: a Group, the Memory that it lies in or None, and what encodings call it."""
    if isinstance(source, list):
        return open_many(source, concat_dim, order=order, drift=drift), None, source[0] if source else ""
    if isinstance(source, str):
        path = os.path.abspath(source)
        if glob.has_magic(source) and not os.path.exists(source):
            return open_many(source, concat_dim, order=order, drift=drift), None, path
        if os.path.isdir(source) and not _is_store(source):
            raise _folder_error(source)
        return open_path(path), None, path
    memory = Memory(source)
    return Group(_Tree(memory.dataset)), memory, None


def _is_store(folder):
    return any(os.path.exists(os.path.join(folder, name)) for name in ("zarr.json", ".zgroup", ".zarray", ".zmetadata"))


# ---- one group as xarray's store ------------------------------------------------------------------------------------------------------


class _Store(AbstractDataStore):
    """A group's variables as they are stored, which xarray decodes."""

    def __init__(self, group, opening):
        self._group, self._opening, self.objects = group, opening, []
        dataset = group._dataset if isinstance(group, Array) else group._tree.dataset
        self._is_zarr, self._format = dataset.format.startswith("zarr"), dataset.format
        self._arrays = {group.basename: group} if isinstance(group, Array) else dict(group.arrays)
        self._storages = {name: from_json(a._storage()) for name, a in self._arrays.items()}
        self._dims = _encoding.dimension_names(self._arrays)
        self._enumerations = _encoding.enumerations(self._arrays)

    def get_attrs(self):
        if isinstance(self._group, Array):
            return {}
        attrs = self._group.attrs.asdict()
        if self._is_zarr:
            return {name: value for name, value in attrs.items() if not name.lower().startswith("_nc")}
        return attrs

    def get_variables(self):
        together = _encoding.whole_files(self._arrays, self._storages)
        return {name: self._variable(name, a, together) for name, a in self._arrays.items() if name not in self._opening.drop}

    def _variable(self, name, array, together):
        storage, dims = self._storages[name], self._dims[name]
        attrs, encoding = _encoding.describe(array, storage, dims, self._format, self._opening.fill_is_mask)
        if "axis" in storage:
            encoding["preferred_chunks"] = dict(zip(dims, array.shape, strict=True))
            encoding["preferred_chunks"][dims[storage["axis"]]] = together
        if name in self._enumerations:
            encoding["dtype"] = self._enumerations[name]
        if self._opening.source is not None:
            encoding["source"] = self._opening.source
        data = indexing.LazilyIndexedArray(self._backend(array, encoding))
        return Variable(dims, data, attrs, encoding)

    def _backend(self, array, encoding):
        if array.unsupported:
            reason = (
                f"{array.path}: variable {array.name} cannot be read: {array.unsupported}; drop_variables={[array.name]!r} leaves it out"
            )
            return ArrayThatCannotBeRead(array.shape, reason)
        dtype = array.dtype
        if array.type_name == "string" and self._is_zarr:
            dtype = encoding["dtype"] = np.dtypes.StringDType()
        elif array.type_name == "string":
            dtype = encoding["dtype"] = create_vlen_dtype(str if self._opening.decode_texts else bytes)
        found = ArrayOfFile(array, dtype, self._opening.memory)
        if dtype.kind == "O" and self._opening.decode_texts and self._dims[array.basename] == (array.basename,):
            encoding["dtype"] = str  # an index is read on opening anyway; xarray makes texts of one length of it
        elif dtype.kind == "O":
            found.decoding = True
            self.objects.append(found)
        return found

    def get_dimensions(self):
        return {d: n for name, a in self._arrays.items() for d, n in zip(self._dims[name], a.shape, strict=True)}

    def get_encoding(self):
        if self._is_zarr:
            return {}
        unlimited = set()
        for name, storage in self._storages.items():
            shift = 1 if storage.get("new") else 0
            unlimited |= {self._dims[name][d + shift] for d in storage.get("of", storage).get("unlimited", ())}
        return {"unlimited_dims": unlimited}


# ---- the engine -----------------------------------------------------------------------------------------------------------------------


def _nothing():
    """What closing a dataset does."""


class _Opening:
    """What a call of the engine asks for, and what it is of."""

    def __init__(self, source, drop_variables, keywords):
        self.decoders = _taken(keywords, _DECODERS) | {"drop_variables": drop_variables}
        asked = _taken(keywords, _KEYWORDS)
        _check(asked, keywords)
        many = asked["concat_dim"], asked["order"], asked["drift"]
        self.root, self.memory, self.source = _group_of(source, *many)
        _check_root(self.root, asked["consolidated"], asked["zarr_format"])
        self.drop = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        self.fill_is_mask, self.decode_texts = asked["use_zarr_fill_value_as_mask"], asked["decode_vlen_strings"]
        self.name = (asked["group"] or "").strip("/")

    @property
    def group(self):
        if not self.name:
            return self.root
        found = self.root.get(self.name) if isinstance(self.root, Group) else None
        if not isinstance(found, Group):
            raise InvalidError(f"{self.root.path}: no group {self.name}", Status.EINVAL, self.root.path)
        return found

    def decoded(self, group):
        store = _Store(group, self)
        found = StoreBackendEntrypoint().open_dataset(store, **self.decoders)
        found.set_close(_nothing)  # not the store's, which would have to pickle
        for array in store.objects:
            array.decoding = False
        return found

    def below(self):
        """Of a tree: (path, group or array) of each group, the root first."""
        group = self.group
        return [("", group)] if isinstance(group, Array) else _groups_below(group)


def _opening(source, drop_variables, keywords):
    source = _paths_or_content(source)
    return _cfgrib_engine.opening(source, drop_variables, keywords) or _Opening(source, drop_variables, keywords)


def taken_decoders(keywords):
    """xarray's own keywords, taken out of others."""
    return _taken(keywords, _DECODERS)


def _taken(keywords, defaults):
    return {name: keywords.pop(name, default) for name, default in defaults.items()}


def _check(asked, others):
    if not isinstance(asked["group"], (str, type(None))):
        raise ValueError(f"group={asked['group']!r}: group must be a string or None")
    check_words(asked["order"], asked["drift"])
    if asked["mode"] not in ("r", None):
        raise ValueError(f"mode={asked['mode']!r}: engine='squall' opens for reading, mode='r'; squall.open(path, mode='r+') writes")
    if asked["device"] not in (None, "cpu"):
        raise NotImplementedError(f"device={asked['device']!r}: variables are read into the CPU's memory only")
    for name in sorted(_STORE_OBJECTS & others.keys()):
        if others.pop(name) is not None:
            raise TypeError(f"{name}: zarr-python's objects are not opened by engine='squall', which reads stores by their paths")
    refuse_unknown(others)


def refuse_unknown(keywords, ignored=()):
    """What is no keyword of the engine's."""
    unknown = sorted(keywords.keys() - _IGNORED - set(ignored))
    if unknown:
        known = ", ".join(sorted(_DECODERS.keys() | _KEYWORDS.keys()))
        raise TypeError(f"{', '.join(unknown)}: no keyword of engine='squall', which knows {known}")


def _check_root(root, consolidated, zarr_format):
    dataset = root._dataset if isinstance(root, Array) else root._tree.dataset
    path, kind = dataset.path, dataset.format
    if kind == "grib":
        raise UnsupportedError(f"{path}: the first GRIB message lies too far behind the beginning", Status.EUNSUPPORTED, path)
    if dataset.problems:
        shown = "; ".join(dataset.problems[:3])
        more = f" (and {len(dataset.problems) - 3} more)" if len(dataset.problems) > 3 else ""
        warnings.warn(f"{path}: not all could be read: {shown}{more}", stacklevel=5)
    if not kind.startswith("zarr"):
        return
    if zarr_format not in (None, int(kind[-1])):
        raise InvalidError(f"{path} is a Zarr store of version {kind[-1]}, but zarr_format={zarr_format!r}", Status.EINVAL, path)
    if consolidated and not _is_consolidated(path):
        raise InvalidError(f"{path} has no consolidated metadata, but consolidated=True", Status.EINVAL, path)


def _is_consolidated(path):
    if os.path.exists(os.path.join(path, ".zmetadata")):
        return True
    try:
        with open(os.path.join(path, "zarr.json"), encoding="utf-8") as document:
            return json.load(document).get("consolidated_metadata") is not None
    except OSError:
        return False


class SquallBackendEntrypoint(BackendEntrypoint):
    """xarray's engine "squall": Zarr stores, HDF5 and NetCDF files, one or many as one dataset, read in parallel without locks.

    group                      "a/b"
    concat_dim, order, drift   for patterns and lists: as of squall.open_many
    All keywords of the engines netcdf4, h5netcdf and zarr are taken, and mean what they mean there; lock, cache_members and others that
    have no meaning here are ignored.
    """

    description = "Open Zarr stores, HDF5, NetCDF-4 and NetCDF-3 files, one or many as one dataset, using squall"
    supports_groups = True
    open_dataset_parameters = ("filename_or_obj", "drop_variables", *_DECODERS, *_KEYWORDS)

    def guess_can_open(self, filename_or_obj):
        """What squall reads and no other installed engine claims."""
        from xarray.backends.plugins import list_engines

        if not _is_known(filename_or_obj):
            return False
        others = (engine for name, engine in list_engines().items() if name != "store" and not isinstance(engine, SquallBackendEntrypoint))
        return not any(_claims(engine, filename_or_obj) for engine in others)

    def open_dataset(self, filename_or_obj, *, drop_variables=None, **keywords):
        """Called by xarray.open_dataset."""
        opening = _opening(filename_or_obj, drop_variables, keywords)
        return opening.decoded(opening.group)

    def open_groups_as_dict(self, filename_or_obj, *, drop_variables=None, **keywords):
        """Called by xarray.open_groups: path of each group → its Dataset."""
        opening = _opening(filename_or_obj, drop_variables, keywords)
        return {f"/{name}": opening.decoded(group) for name, group in opening.below()}

    def open_datatree(self, filename_or_obj, *, drop_variables=None, **keywords):
        """Called by xarray.open_datatree."""
        return DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, drop_variables=drop_variables, **keywords))


def _groups_below(group, name=""):
    yield name, group
    for last, below in group.groups.items():
        yield from _groups_below(below, f"{name}/{last}" if name else last)


def _is_known(source):
    """Does it look like something that squall reads?"""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(_is_text(path) for path in source)
    if _is_text(source):
        path = os.path.expanduser(os.fsdecode(source))
        if os.path.isdir(path):
            return _is_store(path)
        if not os.path.isfile(path):
            return glob.has_magic(path) and "://" not in path
        with open(path, "rb") as file:
            begin = file.read(8)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        begin = bytes(source[:8])
    else:
        return False
    return begin.startswith(_MAGIC)


def _claims(engine, source):
    try:
        return engine.guess_can_open(source)
    except Exception:  # xarray warns of it when it asks that engine itself
        return False
