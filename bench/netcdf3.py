"""NetCDF-3: region writes by two processes beside bare pwrite of the same bytes, and whole reads beside Zarr's raw chunks and netCDF4.

python bench/netcdf3.py [FOLDER]      a folder in memory (/dev/shm) unless another is given; both sides in turn, the best of each
"""

import multiprocessing
import os
import pathlib
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build" / "python"))

import netCDF4
import numpy as np
import squall
from squall import _squall

MAPS, ROWS, COLUMNS = 64, 1024, 1024  # 4 MiB a map
BYTES = MAPS * ROWS * COLUMNS * 4
ROUNDS_WRITE, ROUNDS_READ = 15, 31


def create(path, records=False):
    dims = (("time", MAPS, records), ("y", ROWS, False), ("x", COLUMNS, False))
    _squall.create_netcdf(
        str(path), dims, (("t2m", "<f4", ("time", "y", "x"), None, None), ("time", "<f8", ("time",), None, None)), None, None
    )


def write(kind, path, share, go, done):
    squall.set_options(threads=1)
    array = squall.open(path, mode="r+")["t2m"]
    values = np.random.default_rng(share).standard_normal((ROWS, COLUMNS), dtype="f4")
    swapped = values.astype(">f4").tobytes()
    fd = os.open(path, os.O_RDWR)
    go.wait()
    for i in range(share, MAPS, 2):
        if kind == "squall":
            array[i] = values
        else:
            os.pwrite(fd, swapped, 4096 + i * len(swapped))
    done.wait()
    os.close(fd)


def time_writes(kind, path):
    create(path)
    go, done = multiprocessing.Barrier(3), multiprocessing.Barrier(3)
    processes = [multiprocessing.Process(target=write, args=(kind, path, k, go, done)) for k in range(2)]
    for p in processes:
        p.start()
    go.wait()
    begin = time.perf_counter()
    done.wait()
    seconds = time.perf_counter() - begin
    for p in processes:
        p.join()
    path.unlink()
    return seconds


def writes(folder):
    best = {"bare pwrite": float("inf"), "squall": float("inf")}
    for _ in range(ROUNDS_WRITE):
        for kind in best:
            best[kind] = min(best[kind], time_writes(kind, folder / "write.nc"))
    show("region writes, 2 processes, MiB/s", best, 2**20, "bare pwrite")


def reads(folder):
    values = np.random.default_rng(0).standard_normal((MAPS, ROWS, COLUMNS), dtype="f4")
    for name, records in (("fixed.nc", False), ("records.nc", True)):
        create(folder / name, records)
        squall.open(folder / name, mode="r+")["t2m"][...] = values
    squall.create_array(folder / "raw.zarr", "t2m", data=values, chunks=(1, ROWS, COLUMNS), codecs="none")
    arrays = {name: squall.open(folder / name)["t2m"] for name in ("raw.zarr", "fixed.nc", "records.nc")}
    best = dict.fromkeys([*arrays, "netCDF4 (fixed.nc)"], float("inf"))
    out = np.zeros_like(values)
    with netCDF4.Dataset(folder / "fixed.nc") as d:
        d.set_auto_mask(False)
        for k in range(ROUNDS_READ):
            for name, array in arrays.items():
                begin = time.perf_counter()
                array.read(out=out)
                best[name] = min(best[name], time.perf_counter() - begin)
            if k % 8 == 0:
                begin = time.perf_counter()
                d["t2m"][...]
                best["netCDF4 (fixed.nc)"] = min(best["netCDF4 (fixed.nc)"], time.perf_counter() - begin)
    assert np.array_equal(out, values)
    show("whole reads, GiB/s", best, 2**30, "raw.zarr")


def show(title, best, unit, base):
    print(title)
    for name, seconds in best.items():
        print(f"  {name:20} {BYTES / seconds / unit:8.2f}  {best[base] / seconds:.3f} of {base}")


def main():
    multiprocessing.set_start_method("fork")
    base = sys.argv[1] if len(sys.argv) > 1 else "/dev/shm" if os.path.isdir("/dev/shm") else None
    folder = pathlib.Path(tempfile.mkdtemp(prefix="squall-netcdf3-", dir=base))
    try:
        writes(folder)
        reads(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
