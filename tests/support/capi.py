"""The C library from Python, as a user of it would call it: open a dataset, describe its arrays, read boxes of them into numpy."""

import ctypes as c
import json

import numpy as np

RANK_MAX = 32
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 string".split()


class Failed(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("os_errno", c.c_int), ("message", c.c_char * 500)]


class DatasetInfo(c.Structure):
    _fields_ = [("format", c.c_char_p), ("attributes", c.c_char_p), ("array_count", c.c_size_t), ("problem_count", c.c_size_t)]


class ArrayInfo(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("type", c.c_int),
        ("type_name", c.c_char_p),
        ("rank", c.c_uint),
        ("shape", c.POINTER(c.c_uint64)),
        ("chunks", c.POINTER(c.c_uint64)),
        ("dims", c.POINTER(c.c_char_p)),
        ("codecs", c.c_char_p),
        ("attributes", c.c_char_p),
        ("fill_value", c.c_char_p),
        ("unsupported", c.c_char_p),
    ]


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
        library.call(library.lib.squall_dataset_open, library.context, str(path).encode(), c.byref(self.handle))
        info = library.lib.squall_dataset_info(self.handle)
        self.format, self.attributes = info.format.decode(), json.loads(info.attributes)
        arrays = [Array(library, library.lib.squall_dataset_array_at(self.handle, i)) for i in range(info.array_count)]
        self.arrays = {a.name: a for a in arrays}
        self.problems = [library.lib.squall_dataset_problem(self.handle, i).decode() for i in range(info.problem_count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.lib.squall_dataset_close(self.handle)


class Array:
    def __init__(self, library, handle):
        self.library, self.handle = library, handle
        info = library.lib.squall_array_info(handle)
        self.name, self.type, self.type_name = info.name.decode(), TYPES[info.type], info.type_name.decode()
        self.shape = tuple(info.shape[: info.rank])
        self.chunks = tuple(info.chunks[: info.rank])
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
        if self.type == "string":
            return self.read_strings(selection, shape)
        out = np.empty(shape, self.type)
        self.library.call(self.library.lib.squall_array_read, self.handle, c.byref(selection), out.ctypes.data, None)
        return out

    def read_strings(self, selection, shape):
        count = int(np.prod(shape, dtype=np.int64))
        pointers = (c.c_void_p * max(count, 1))()
        self.library.call(self.library.lib.squall_array_read, self.handle, c.byref(selection), pointers, None)
        out = np.array([c.string_at(p).decode() for p in pointers[:count]], dtype=object).reshape(shape)
        for p in pointers[:count]:
            self.library.libc.free(p)
        return out
