"""squall.store beside Dataset.to_zarr: a Dask dataset of 512 MiB from memory into a store, by two threads.

python bench/store.py [FOLDER]      a folder in memory (/dev/shm) unless another is given; both in turn, the best of each
"""

import os
import pathlib
import shutil
import sys
import tempfile
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build" / "python"))

import dask
import numpy as np
import squall
import xarray as xr
import zarr

TIMES, ROWS, COLUMNS = 128, 1024, 1024  # 4 MiB a map
ROUNDS = 5
CODECS = {
    "none": {"compressors": ()},
    "Zstandard 0, zarr-python's own": {},
    "Blosc, Zstandard 5, shuffle": {"compressors": (zarr.codecs.BloscCodec(cname="zstd", clevel=5, shuffle="shuffle", typesize=4),)},
}


def dataset():
    """Weather: waves, and noise in the lowest bits."""
    y, x = np.linspace(0, 9, ROWS, dtype="f4")[:, None], np.linspace(0, 18, COLUMNS, dtype="f4")
    noise = np.random.default_rng(0).integers(0, 1 << 8, (ROWS, COLUMNS)).astype("f4") / 1024
    maps = np.empty((TIMES, ROWS, COLUMNS), "f4")
    for t in range(TIMES):
        maps[t] = 280 + 20 * np.sin(y + t / 9) * np.cos(x - t / 7) + np.roll(noise, t)
    return xr.Dataset({"t2m": (("time", "y", "x"), maps)}).chunk(time=4)


def seconds(call, path):
    shutil.rmtree(path, ignore_errors=True)
    begin = time.perf_counter()
    call(path)
    return time.perf_counter() - begin


def main():
    folder = tempfile.mkdtemp(dir=sys.argv[1] if len(sys.argv) > 1 else "/dev/shm", prefix="squall-store-")
    ds = dataset()
    print("| codecs | to_zarr, s | squall.store, s | ratio |\n|---|---|---|---|")
    try:
        for name, codecs in CODECS.items():
            how = {"encoding": {"t2m": {"chunks": (4, 1024, 1024), **codecs}}}
            calls = {"to_zarr": lambda p, how=how: ds.to_zarr(p, **how), "squall": lambda p, how=how: squall.store(ds, p, **how)}
            best = dict.fromkeys(calls, float("inf"))
            for _ in range(ROUNDS):
                for kind, call in calls.items():
                    best[kind] = min(best[kind], seconds(call, os.path.join(folder, kind)))
            with xr.open_zarr(os.path.join(folder, "squall")) as stored:
                assert stored.t2m[7].equals(ds.t2m[7])
            print(f"| {name} | {best['to_zarr']:.2f} | {best['squall']:.2f} | **{best['to_zarr'] / best['squall']:.2f}** |", flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with dask.config.set(scheduler="threads", num_workers=2):
        main()
