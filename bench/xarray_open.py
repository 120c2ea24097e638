#!/usr/bin/env python3
"""What a source costs through xarray: opened and loaded by its own engine and by squall in alternation, the best of each, a JSON line each.

xarray_open.py FILE.nc | FOLDER/weather.zarr     made where it is not there: a small file, or the array FOLDER/weather of zarr_read.py
"""

import json
import os
import sys
import time

import numpy as np
import xarray as xr


def seconds(path, engine, **keywords):
    start = time.perf_counter()
    with xr.open_dataset(path, engine=engine, **keywords) as ds:
        ds.load()
    return time.perf_counter() - start


def make_small(path):
    axes = {"time": np.arange(2), "y": np.arange(10.0), "x": np.arange(10.0)}
    ds = xr.Dataset({"t": (tuple(axes), np.zeros((2, 10, 10), "f4"), {"units": "K"})}, axes)
    ds.to_netcdf(path, engine="netcdf4", encoding={"t": {"zlib": True}})


def make_weather(path):
    import zarr

    stored = zarr.open_array(path.removesuffix(".zarr"), mode="r")
    ds = xr.Dataset({"t": (("time", "y", "x"), stored[...])})
    ds.to_zarr(path, encoding={"t": {"chunks": stored.chunks, "compressors": stored.compressors}}, zarr_format=3, consolidated=False)


def main():
    path = sys.argv[1]
    small = path.endswith(".nc")
    if not os.path.exists(path):
        (make_small if small else make_weather)(path)
    theirs, keywords = ("netcdf4", {}) if small else ("zarr", {"consolidated": False})
    taken = {engine: [] for engine in (theirs, "squall")}
    for _ in range(200 if small else 7):
        for engine, all_of in taken.items():
            all_of.append(seconds(path, engine, **keywords))
    for engine, all_of in taken.items():
        print(json.dumps({"bench": "xarray_open", "impl": engine, "seconds": min(all_of)}), flush=True)


if __name__ == "__main__":
    main()
