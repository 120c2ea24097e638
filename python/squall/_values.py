"""Values that are to be stored: any → an array of the shape and type that the place has; types and fill values → Zarr's spelling."""

import base64
import json
import math
from collections.abc import Mapping

import numpy as np


def fit(values, shape):
    """An array broadcast to a shape, as numpy's assignment does it; without a copy."""
    if values.shape == shape:
        return values
    extra = values.ndim - len(shape)
    try:
        if extra > 0 and values.shape[:extra] == (1,) * extra:
            values = values.reshape(values.shape[extra:])
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(f"could not broadcast input array from shape {values.shape} into shape {shape}") from None


def _filled(values, dtype, fill, name):
    """A masked array, fill where it is masked."""
    if not np.ma.is_masked(values):
        return values.data
    mask = np.ma.getmaskarray(values)
    if dtype.names or mask.dtype != bool:
        raise ValueError(f"{name}: masked records have no fill value: assign values.filled(…)")
    if fill is None:
        raise ValueError(f"{name} has no fill value for what is masked: assign values.filled(…), or give it one")
    found = np.full(values.shape, fill, dtype)
    np.copyto(found, values.data, where=~mask, casting="unsafe")
    return found


def values_for(value, dtype, shape, array):
    """value as an array of dtype and shape; Python objects packed, so that the extension can walk through them. What is masked becomes the
    fill value of the array, which has a name, too."""
    if isinstance(value, np.ma.MaskedArray):
        value = _filled(value, dtype, array.fill_value, f"array {array.name}")
    if not dtype.hasobject:
        return fit(np.asarray(value, dtype=dtype), shape)
    return np.ascontiguousarray(fit(np.asarray(value, dtype=object), shape)).reshape(shape)


_NOT_NUMPYS = {"bfloat16", "int2", "int4", "uint2", "uint4"}  # names that packages like ml_dtypes give to numpy


def type_text(dtype):
    """What struct squall_array_spec calls a type that is numpy's, Python's or named in Zarr's words."""
    if dtype is str or isinstance(dtype, np.dtypes.StringDType):
        return "string"
    if dtype is bytes:
        return "bytes"
    if isinstance(dtype, Mapping):
        return json.dumps(dict(dtype))
    if isinstance(dtype, str):
        if dtype in _NOT_NUMPYS:
            return dtype
        try:
            dtype = np.dtype(dtype)
        except TypeError:
            return dtype
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise TypeError("dtype object says too little: str for texts, bytes for bytes of variable length")
    if dtype.fields:
        return json.dumps(dtype.descr)
    return dtype.name if dtype.name in _NOT_NUMPYS else dtype.str


def fill_text(value, zarr_format):
    """A fill value as JSON, as Zarr's metadata spell it; None: none is given."""
    if value is None:
        return None
    return json.dumps(_fill(value, zarr_format))


def _fill(value, zarr_format):
    if isinstance(value, (bytes, np.bytes_, np.void)):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return "NaT" if np.isnat(value) else int(value.astype("i8"))
    if isinstance(value, np.ndarray):
        value = value[()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex):
        return [_fill(value.real, zarr_format), _fill(value.imag, zarr_format)]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, (bool, int, float, str, list, dict)):
        return value
    raise TypeError(f"fill_value {value!r}: a number, text, bytes, time, or what Zarr's metadata say")


def chunks_for(shape, itemsize):
    """Chunks of some MiB, whole along the last dimensions: what is written where nobody says."""
    chunks = [max(1, n) for n in shape]
    for d in range(len(chunks)):
        below = math.prod(chunks[d + 1 :]) * itemsize
        while chunks[d] > 1 and chunks[d] * below > 4 << 20:
            chunks[d] = (chunks[d] + 1) // 2
    return tuple(chunks)
