"""NetCDF-3: region writes by two processes beside bare pwrite of the same bytes; whole reads of it and of contiguous HDF5 beside Zarr's raw
chunks, plain pread of the same files, and netCDF4; and chunked HDF5 on one thread and on two.

python bench/contiguous.py [FOLDER]      a folder in memory (/dev/shm) unless another is given; both sides in turn, the best of each
"""

import concurrent.futures
import multiprocessing
import os
import pathlib
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build" / "python"))

import h5py
import hdf5plugin
import netCDF4
import numpy as np
import squall
from squall import _squall

MAPS, ROWS, COLUMNS = 64, 1024, 1024  # 4 MiB a map
BYTES = MAPS * ROWS * COLUMNS * 4
ROUNDS_WRITE, ROUNDS_READ, ROUNDS_SCALING = 15, 31, 15
FILTERS = {
    "no filter": {},
    "deflate": {"compression": "gzip", "compression_opts": 4, "shuffle": True},
    "zstd": dict(hdf5plugin.Zstd(clevel=3), shuffle=True),
    "lz4": dict(hdf5plugin.LZ4()),
    "bitshuffle": dict(hdf5plugin.Bitshuffle()),
}


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


def plain_read(path, begin, distance, out):
    """The same bytes by the system alone: a map at a time on two threads, straight into the result."""
    fd = os.open(path, os.O_RDONLY)
    whole, map_bytes = memoryview(out).cast("B"), BYTES // MAPS
    maps = [whole[i * map_bytes : (i + 1) * map_bytes] for i in range(MAPS)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda i: os.preadv(fd, [maps[i]], begin + i * distance), range(MAPS)))
    os.close(fd)


def make_files(folder, values):
    """Path → where the first value lies, and how far it is from a map to the next. Copied, so that the pages of all lie alike in memory."""
    made, map_bytes = folder / "made", BYTES // MAPS
    made.mkdir()
    for name, records in (("fixed.nc", False), ("records.nc", True)):
        create(made / name, records)
        squall.open(made / name, mode="r+")["t2m"][...] = values
    with h5py.File(made / "contiguous.h5", "w") as f:
        f["t2m"] = values
        offset = f["t2m"].id.get_offset()
    squall.create_array(made / "raw.zarr", "t2m", data=values, chunks=(1, ROWS, COLUMNS), codecs="none")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    shutil.rmtree(made)
    records = os.path.getsize(folder / "records.nc") - MAPS * (map_bytes + 8)
    return {
        folder / "raw.zarr": None,
        folder / "fixed.nc": (4096, map_bytes),
        folder / "contiguous.h5": (offset, map_bytes),
        folder / "records.nc": (records, map_bytes + 8),
    }


def reads(folder):
    values = np.random.default_rng(0).standard_normal((MAPS, ROWS, COLUMNS), dtype="f4")
    files = make_files(folder, values)
    arrays = {path: squall.open(path)["t2m"] for path in files}
    best, plain, by_netcdf4 = (dict.fromkeys(files, float("inf")) for _ in range(3))
    out = arrays[folder / "raw.zarr"][...]  # memory of squall's own, which begins at a page
    for k in range(ROUNDS_READ):
        for path, array in arrays.items():
            best[path] = min(best[path], timed(lambda a=array: a.read(out=out)))
            if k == 0:
                assert np.array_equal(out, values)
            if files[path]:
                plain[path] = min(plain[path], timed(lambda p=path: plain_read(p, *files[p], out)))
    with netCDF4.Dataset(folder / "fixed.nc") as d:
        d.set_auto_mask(False)
        by_netcdf4 = min(timed(lambda: d["t2m"][...]) for _ in range(3))
    print("whole reads, GiB/s")
    raw = best[folder / "raw.zarr"]
    for path, seconds in best.items():
        beside = f"  plain pread {BYTES / plain[path] / 2**30:6.2f}: {plain[path] / seconds:.3f} of it" if files[path] else ""
        print(f"  {path.name:20} {BYTES / seconds / 2**30:8.2f}  {raw / seconds:.3f} of raw.zarr{beside}")
    print(f"  {'netCDF4 (fixed.nc)':20} {BYTES / by_netcdf4 / 2**30:8.2f}")


def timed(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def scaling(folder):
    """Chunked HDF5, whole, on one thread and on two."""
    rng = np.random.default_rng(1)
    values = (np.cumsum(rng.standard_normal((MAPS, ROWS, COLUMNS), dtype="f4"), axis=2) * 16).round() / 16
    with h5py.File(folder / "chunked.h5", "w") as f:
        for name, how in FILTERS.items():
            f.create_dataset(name, data=values, chunks=(1, ROWS // 2, COLUMNS // 2), **how)
    datasets = {}
    for threads in (1, 2):
        squall.set_options(threads=threads)
        datasets[threads] = squall.open(folder / "chunked.h5")
    out = np.empty_like(values)
    print("chunked HDF5, whole, MiB/s")
    for name in FILTERS:
        best = dict.fromkeys(datasets, float("inf"))
        for _ in range(ROUNDS_SCALING):
            for threads, ds in datasets.items():
                best[threads] = min(best[threads], timed(lambda a=ds[name]: a.read(out=out)))
        assert np.array_equal(out, values)
        one, two = (BYTES / best[threads] / 2**20 for threads in (1, 2))
        print(f"  {name:20} one thread {one:8.0f}  two {two:8.0f}  {two / one:.2f} times")


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
        scaling(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
