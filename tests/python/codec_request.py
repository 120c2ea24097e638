"""Codec chains by request: what tests/support/codec_try.c takes, and how it is called (conftest.py's codec_try)."""

import ctypes as c
import json

import numpy as np


class Failed(Exception):
    pass


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("os_errno", c.c_int), ("message", c.c_char * 500)]


ORDERED = {"c": 2}  # parts of a number with an order of their own


def caller(library):
    """call(request, encode, source, room) → bytes of the chain that the request describes."""
    function = c.CDLL(str(library)).codec_try
    function.argtypes = [c.c_char_p, c.c_int, c.c_void_p, c.c_size_t, c.c_void_p, c.c_size_t, c.POINTER(c.c_size_t), c.POINTER(Error)]

    def call(request, encode, source, room):
        source = np.frombuffer(source, "u1")
        result, size, error = np.zeros(room, "u1"), c.c_size_t(), Error()
        arguments = [source.ctypes.data, source.size, result.ctypes.data, room, c.byref(size), c.byref(error)]
        if function(json.dumps(request).encode(), encode, *arguments):
            raise Failed(error.message.decode())
        return result[: size.value].tobytes()

    return call


def describe(dtype, shape, fill=None, **more):
    dtype = np.dtype(dtype)
    kinds = {"M": "numpy.datetime64", "m": "numpy.timedelta64", "V": "raw", "S": "raw", "U": "fixed_length_utf32"}
    order = {"V": 1, "S": 1, "U": 4}.get(dtype.kind, dtype.itemsize // ORDERED.get(dtype.kind, 1))
    request = {"type": kinds.get(dtype.kind, dtype.name), "element_bytes": dtype.itemsize, "order_bytes": order, "shape": list(shape)}
    if fill is not None:
        request["fill"] = list(np.asarray(fill, dtype.newbyteorder("=")).tobytes())
    return request | more
