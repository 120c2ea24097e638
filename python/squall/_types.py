"""Element types: the library's names of them → numpy's."""

import ast
import functools

import numpy as np


@functools.lru_cache(maxsize=256)
def dtype_of(text):
    """numpy.dtype of `numpy_type` in struct squall_array_info: "<f4", "<M8[10ms]", "[('a', '<i4')]", "bfloat16", "O"."""
    if text.startswith("["):
        return np.dtype(ast.literal_eval(text))
    if text == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            raise TypeError("bfloat16 is not one of numpy's own types: install ml_dtypes to read such an array") from None
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(text)
