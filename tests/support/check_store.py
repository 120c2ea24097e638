#!/usr/bin/env python3
"""check_store.py FOLDER: what write_store wrote, read by zarr-python and by xarray, both without an argument and with every warning
an error. Runs under each Python that has them; prints how many arrays it compared."""

import sys
import warnings

import numpy as np

warnings.simplefilter("error")

import xarray as xr  # noqa: E402
import zarr  # noqa: E402


def expected(name, shape):
    """As write_store makes them: each element from its number alone."""
    type_name = name.split("_")[0]
    i = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.uint64)
    if type_name == "string":
        values = np.array(["" if n % 4 == 0 else f"text {n} of Zürich 🎉" for n in i.tolist()], dtype=object)
    elif type_name == "bool":
        values = i % 3 == 0
    elif type_name.startswith("float"):
        values = np.where(i % 7 == 6, np.nan, i / 2 - 3).astype(type_name)
    else:
        bits = i * 7919 + 13
        values = bits.astype(f"uint{np.dtype(type_name).itemsize * 8}").view(type_name)
    return values.reshape(shape)


def same(got, wanted):
    if wanted.dtype == object:
        return got.shape == wanted.shape and got.ravel().tolist() == wanted.ravel().tolist()
    return got.dtype == wanted.dtype and np.array_equal(got, wanted, equal_nan=wanted.dtype.kind == "f")


def main():
    store = sys.argv[1]
    group = zarr.open(store)
    names = [name for name, _ in group.arrays()]
    assert len(names) == 13 * 6 * 2, len(names)
    for name in names:
        array = group[name]
        assert same(np.asarray(array[...]), expected(name, array.shape)), f"zarr {name}"
    with xr.open_zarr(store) as ds:
        assert set(ds.variables) == set(names)
        for name in names:
            assert same(np.asarray(ds[name].values), expected(name, ds[name].shape)), f"xarray {name}"
    print(len(names))


if __name__ == "__main__":
    main()
