"""ecCodes as the judge of values: its doubles, in the order of points in which squall gives them."""

import eccodes as ec
import numpy as np

MISSING = 1e30


def handles(path):
    """The handle of each field that ecCodes finds, those after a damaged message too. Each is released when the next is asked for."""
    ec.codes_grib_multi_support_on()
    with open(path, "rb") as f:
        while True:
            try:
                handle = ec.codes_grib_new_from_file(f)
            except ec.CodesInternalError:  # a damaged message: go on behind it
                continue
            if handle is None:
                return
            try:
                yield handle
            finally:
                ec.codes_release(handle)


def doubles(handle):
    """Values as the file orders them, NaN where there is none; None where ecCodes cannot decode them."""
    ec.codes_set(handle, "missingValue", MISSING)
    try:
        values = ec.codes_get_values(handle)
    except ec.CodesInternalError:
        return None
    return np.where(values == MISSING, np.nan, values)


def in_output_order(values, rows, columns, mode, flip=False):
    """The file's order of points (flag table 3.4) → rows from west to east. ecCodes gives values as the file has them."""
    if rows == 0:
        return values
    if mode & 0x20:
        a = values.reshape(columns, rows).copy()
        if mode & 0x10:
            a[1::2] = a[1::2, ::-1]
        a = a.T
    else:
        a = values.reshape(rows, columns).copy()
        if mode & 0x10:
            a[1::2] = a[1::2, ::-1]
    if mode & 0x80:
        a = a[:, ::-1]
    return (a[::-1] if flip else a).ravel()


def same(a, b):
    """Equal to the bit, signs of zeros and all, but for which NaN a NaN is."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    bits = f"u{a.itemsize}"
    return bool(np.all((a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))))
