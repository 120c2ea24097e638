"""The C library from Python, as a user of it would call it: make arrays, write regions of them, read them, resize them."""

import ast
import ctypes as c
import json

import numpy as np

RANK_MAX = 32
TYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 string bfloat16 complex64 complex128 "
    "int2 int4 uint2 uint4 datetime64 timedelta64 raw text bytes"
).split()


class Failed(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("os_errno", c.c_int), ("message", c.c_char * 500)]


class DatasetInfo(c.Structure):
    _fields_ = [
        ("format", c.c_char_p),
        ("attributes", c.c_char_p),
        ("is_array", c.c_int),
        ("array_count", c.c_size_t),
        ("group_count", c.c_size_t),
        ("problem_count", c.c_size_t),
    ]


class ArrayInfo(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("type", c.c_int),
        ("type_name", c.c_char_p),
        ("numpy_type", c.c_char_p),
        ("element_bytes", c.c_size_t),
        ("rank", c.c_uint),
        ("shape", c.POINTER(c.c_uint64)),
        ("chunks", c.POINTER(c.c_uint64)),
        ("shards", c.POINTER(c.c_uint64)),
        ("dims", c.POINTER(c.c_char_p)),
        ("codecs", c.c_char_p),
        ("attributes", c.c_char_p),
        ("fill_value", c.c_char_p),
        ("unsupported", c.c_char_p),
        ("fill", c.c_void_p),
    ]


class Bytes(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size_bytes", c.c_size_t)]


class Selection(c.Structure):
    _fields_ = [(name, c.c_uint64 * RANK_MAX) for name in ("start", "count", "step")]


class Library:
    def __init__(self, path):
        self.lib = lib = c.CDLL(str(path))
        self.libc = c.CDLL(None)
        self.libc.free.argtypes = [c.c_void_p]
        pointer = c.POINTER
        lib.squall_context_new.argtypes = [c.c_void_p, pointer(c.c_void_p), pointer(Error)]
        lib.squall_dataset_open.argtypes = [c.c_void_p, c.c_char_p, pointer(c.c_void_p), pointer(Error)]
        lib.squall_dataset_close.argtypes = [c.c_void_p]
        lib.squall_dataset_info.argtypes = [c.c_void_p]
        lib.squall_dataset_info.restype = DatasetInfo
        lib.squall_dataset_array_at.argtypes = [c.c_void_p, c.c_size_t]
        lib.squall_dataset_array_at.restype = c.c_void_p
        lib.squall_dataset_problem.argtypes = [c.c_void_p, c.c_size_t]
        lib.squall_dataset_problem.restype = c.c_char_p
        lib.squall_array_info.argtypes = [c.c_void_p]
        lib.squall_array_info.restype = ArrayInfo
        lib.squall_array_read.argtypes = [c.c_void_p, pointer(Selection), c.c_void_p, c.c_void_p, pointer(Error)]
        self.context = c.c_void_p()
        self.call(lib.squall_context_new, None, c.byref(self.context))

    def call(self, function, *args):
        error = Error()
        status = function(*args, c.byref(error))
        if status:
            raise Failed(status, error.message.decode())

    def open(self, path):
        return Dataset(self, path)


class Dataset:
    def __init__(self, library, path):
        self.library, self.handle = library, c.c_void_p()
        self.open_handle(library, path)
        info = library.lib.squall_dataset_info(self.handle)
        self.format, self.attributes = info.format.decode(), json.loads(info.attributes)
        arrays = [self.make_array(library, library.lib.squall_dataset_array_at(self.handle, i)) for i in range(info.array_count)]
        self.arrays = {a.name: a for a in arrays}
        self.problems = [library.lib.squall_dataset_problem(self.handle, i).decode() for i in range(info.problem_count)]

    def open_handle(self, library, path):
        library.call(library.lib.squall_dataset_open, library.context, str(path).encode(), c.byref(self.handle))

    def make_array(self, library, handle):
        return Array(library, handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.lib.squall_dataset_close(self.handle)


class Array:
    def __init__(self, library, handle):
        self.library, self.handle = library, handle
        info = library.lib.squall_array_info(handle)
        self.name, self.type, self.type_name = info.name.decode(), TYPES[info.type], info.type_name.decode()
        self.numpy_type, self.element_bytes = info.numpy_type.decode(), info.element_bytes
        self.shape = tuple(info.shape[: info.rank])
        self.chunks = tuple(info.chunks[: info.rank])
        self.shards = tuple(info.shards[: info.rank]) if info.shards else None
        self.dims = tuple(d.decode() for d in info.dims[: info.rank])
        self.codecs, self.attributes = info.codecs.decode(), json.loads(info.attributes)
        self.unsupported = info.unsupported.decode() if info.unsupported else None

    def read(self, slices=None):
        """slices: one slice a dimension, with a positive step."""
        ranges = [range(*s.indices(n)) for s, n in zip(slices or [slice(None)] * len(self.shape), self.shape, strict=True)]
        selection = Selection()
        for d, r in enumerate(ranges):
            selection.start[d], selection.count[d], selection.step[d] = r.start if len(r) else 0, len(r), r.step
        shape = tuple(len(r) for r in ranges)
        if self.type in ("string", "bytes"):
            return self.read_variable(selection, shape)
        out = np.empty(shape, self.dtype)
        self.library.call(self.library.lib.squall_array_read, self.handle, c.byref(selection), out.ctypes.data, None)
        return out

    @property
    def dtype(self):
        """numpy's, of what is read; bfloat16 as its bits; anything where nothing can be read."""
        text = self.numpy_type.replace("bfloat16", "<u2") or "u1"
        return np.dtype(ast.literal_eval(text) if text.startswith("[") else text)

    def read_variable(self, selection, shape):
        """Texts as str, bytes as bytes."""
        count = int(np.prod(shape, dtype=np.int64))
        elements = ((Bytes if self.type == "bytes" else c.c_void_p) * max(count, 1))()
        self.library.call(self.library.lib.squall_array_read, self.handle, c.byref(selection), elements, None)
        out = np.empty(count, dtype=object)
        for i, e in enumerate(elements[:count]):
            out[i] = c.string_at(e.data, e.size_bytes) if self.type == "bytes" else c.string_at(e).decode()
            self.library.libc.free(e.data if self.type == "bytes" else e)
        return out.reshape(shape)


DURABILITY = {"none": 0, "data": 1, "full": 2}


class Options(c.Structure):
    _fields_ = [(name, c.c_int) for name in ("durability", "write_empty_chunks", "aligned_only", "leave_consolidated")]


class GroupSpec(c.Structure):
    _fields_ = [("zarr_format", c.c_int), ("attributes", c.c_char_p), ("consolidated", c.c_int), ("overwrite", c.c_int)]


class ArraySpec(c.Structure):
    _fields_ = [
        ("zarr_format", c.c_int),
        ("type", c.c_char_p),
        ("rank", c.c_uint),
        ("shape", c.POINTER(c.c_uint64)),
        ("chunks", c.POINTER(c.c_uint64)),
        ("shards", c.POINTER(c.c_uint64)),
        ("dims", c.POINTER(c.c_char_p)),
        ("fill_value", c.c_char_p),
        ("attributes", c.c_char_p),
        ("codecs", c.c_char_p),
        ("filters", c.c_char_p),
        ("index_codecs", c.c_char_p),
        ("index_at_start", c.c_int),
        ("column_major", c.c_int),
        ("separator", c.c_char),
        ("v2_keys", c.c_int),
        ("overwrite", c.c_int),
    ]


def lengths(values):
    return (c.c_uint64 * max(len(values), 1))(*values) if values is not None else None


def encoded(text):
    """Text for C; anything else as JSON."""
    return None if text is None else (text if isinstance(text, str) else json.dumps(text)).encode()


class Writer(Library):
    """options: those of every call."""

    def __init__(self, path, durability="none", **options):
        super().__init__(path)
        p, lib = c.POINTER, self.lib
        lib.squall_group_create.argtypes = [c.c_void_p, c.c_char_p, c.c_char_p, p(GroupSpec), p(Options), p(Error)]
        lib.squall_array_create.argtypes = [c.c_void_p, c.c_char_p, c.c_char_p, p(ArraySpec), p(Options), p(Error)]
        lib.squall_node_delete.argtypes = [c.c_void_p, c.c_char_p, c.c_char_p, p(Options), p(Error)]
        lib.squall_node_set_attributes.argtypes = [c.c_void_p, c.c_char_p, c.c_char_p, c.c_char_p, p(Options), p(Error)]
        lib.squall_store_open.argtypes = [c.c_void_p, c.c_char_p, p(Options), p(c.c_void_p), p(Error)]
        lib.squall_array_write.argtypes = [c.c_void_p, p(Selection), c.c_void_p, c.c_void_p, p(Error)]
        lib.squall_array_resize.argtypes = [c.c_void_p, p(c.c_uint64), p(Error)]
        self.options = Options(DURABILITY[durability], **options)

    def create_group(self, store, name=None, attributes=None, zarr_format=0, **flags):
        spec = GroupSpec(zarr_format, encoded(attributes), **flags)
        self.call(self.lib.squall_group_create, self.context, str(store).encode(), encoded(name), spec, self.options)

    def create_array(self, store, name=None, *, type, shape, chunks=None, shards=None, dims=None, **rest):
        texts = {k: encoded(rest.pop(k)) for k in ("attributes", "codecs", "filters", "index_codecs") if k in rest}
        if "fill_value" in rest:
            texts["fill_value"] = json.dumps(rest.pop("fill_value")).encode()
        sizes = {"shape": lengths(shape), "chunks": lengths(chunks), "shards": lengths(shards)}
        spec = ArraySpec(type=encoded(type), rank=len(shape), **sizes, **texts, **rest)
        spec.dims = (c.c_char_p * max(len(dims), 1))(*(d.encode() for d in dims)) if dims is not None else None
        self.call(self.lib.squall_array_create, self.context, str(store).encode(), encoded(name), spec, self.options)

    def delete(self, store, name=None):
        self.call(self.lib.squall_node_delete, self.context, str(store).encode(), encoded(name), self.options)

    def set_attributes(self, store, name, attributes):
        self.call(self.lib.squall_node_set_attributes, self.context, str(store).encode(), encoded(name), encoded(attributes), self.options)

    def open(self, path):
        return Store(self, path)


class Store(Dataset):
    def open_handle(self, library, path):
        library.call(library.lib.squall_store_open, library.context, str(path).encode(), library.options, c.byref(self.handle))

    def make_array(self, library, handle):
        return WritableArray(library, handle)

    def only(self):
        (array,) = self.arrays.values()
        return array


class WritableArray(Array):
    def write(self, values, slices=None):
        """values: of the shape that slices (one a dimension, with a positive step) select, with any strides."""
        ranges = [range(*s.indices(n)) for s, n in zip(slices or [slice(None)] * len(self.shape), self.shape, strict=True)]
        selection = Selection()
        for d, r in enumerate(ranges):
            selection.start[d], selection.count[d], selection.step[d] = r.start if len(r) else 0, len(r), r.step
        assert values.shape == tuple(len(r) for r in ranges)
        kept = self.elements(values)
        strides = (c.c_int64 * RANK_MAX)(*values.strides) if self.type not in ("string", "bytes") else None
        data = c.addressof(kept) if self.type in ("string", "bytes") else values.ctypes.data
        self.library.call(self.library.lib.squall_array_write, self.handle, c.byref(selection), data, strides)

    def elements(self, values):
        if self.type not in ("string", "bytes"):
            return None
        flat = values.reshape(-1).tolist()
        if self.type == "string":
            return (c.c_char_p * max(len(flat), 1))(*(v.encode() for v in flat))
        self.buffers = [c.create_string_buffer(v, len(v) or 1) for v in flat]
        return (Bytes * max(len(flat), 1))(*(Bytes(c.addressof(b), len(v)) for b, v in zip(self.buffers, flat, strict=True)))

    def resize(self, shape):
        self.library.call(self.library.lib.squall_array_resize, self.handle, lengths(shape))
        self.shape = tuple(shape)
