"""Element types: the library's names of them → numpy's."""

import ast
import functools
import struct

import numpy as np


@functools.lru_cache(maxsize=256)
def dtype_of(text):
    """numpy.dtype of `numpy_type` in struct squall_array_info: "<f4", "<M8[10ms]", "[('a', '<i4')]", "bfloat16", "O"."""
    if text.startswith(("[", "(")):
        return np.dtype(ast.literal_eval(text))
    if text == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            raise TypeError("bfloat16 is not one of numpy's own types: install ml_dtypes to read such an array") from None
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(text)


# ---- elements of which some has no fixed size: sequence_type in struct squall_array_info -------------------------------------------------


def _is_fixed(parts):
    if isinstance(parts, list):
        return all(_is_fixed(field[1]) for field in parts)
    return _is_fixed(parts[0]) if isinstance(parts, tuple) else not isinstance(parts, dict) and parts != "text"


def _dtype(parts):
    """What numpy has them as: objects in place of texts and sequences."""
    if isinstance(parts, list):
        return np.dtype([(field[0], _dtype(field[1]), *field[2:]) for field in parts])
    if isinstance(parts, tuple):
        return np.dtype((_dtype(parts[0]), parts[1]))
    return np.dtype("O" if isinstance(parts, dict) or parts == "text" else parts)


def _counted(data, at):
    """The bytes behind their number, and where they end."""
    begin = at + 8
    end = begin + struct.unpack_from("=Q", data, at)[0]
    return data[begin:end], end


def _take_list(parts, shape, data, at):
    """Elements in a shape, one behind the other."""
    dtype = _dtype(parts)
    values = np.empty(shape, dtype.base)
    for index in np.ndindex(shape):
        values[index], at = _take(parts, data, at)
    return values, at


def _take(parts, data, at):
    """The value that begins at a byte, and where it ends."""
    if _is_fixed(parts):
        dtype = _dtype(parts)
        return np.ndarray((), dtype, data, at).copy()[()], at + dtype.itemsize
    if parts == "text":
        text, at = _counted(data, at)
        return text.decode("utf-8", "surrogateescape"), at
    if isinstance(parts, dict):
        elements, at = _counted(data, at)
        return _sequence(parts["sequence"], elements), at
    if isinstance(parts, tuple):
        return _take_list(*parts, data, at)
    values = []
    for field in parts:
        value, at = _take_list(*field[1:], data, at) if len(field) > 2 else _take(field[1], data, at)
        values.append(value)
    return tuple(values), at


def _sequence(parts, data):
    if _is_fixed(parts):
        return np.frombuffer(data, _dtype(parts)).copy()
    values, at = [], 0
    while at < len(data):
        value, at = _take(parts, data, at)
        values.append(value)
    dtype = _dtype(parts)
    result = np.empty(len(values), dtype)
    for i, value in enumerate(values):
        result[i] = value
    return result


def reader_of(numpy_type, sequence_type):
    """A function that makes an element of what an element's bytes are: of a sequence an array, of a structure a tuple of its fields."""
    parts = ast.literal_eval(sequence_type)
    if numpy_type == "O":
        return lambda data: _sequence(parts, data)
    return lambda data: _take(parts, data, 0)[0]


def put_structures(target, read, elements):
    """Elements of the bytes in a list → a structured array with fields that are objects, in C order."""
    for index, data in zip(np.ndindex(target.shape), elements, strict=True):
        target[index] = read(data)
