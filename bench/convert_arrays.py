#!/usr/bin/env python3
"""NetCDF files and Zarr stores into a Zarr store: xarray with Dask, and squall convert, on the same sources; a line of JSON for each.

  small     1,000 files of one time and 12 variables (../shared/cases/many_small_files.py) → chunks of 250 times
  days      200 files of 4 variables, 4 × 181 × 360 (netcdf_many.py) → chunks of 20 times, 5 MB
  rechunk   240 maps, 361 × 720, a chunk each → series: chunks of all 240 times, 64 × 64

Both write Blosc zstd 5 with shuffle. xarray opens as its documentation says it is fastest (nested, override), on Dask's threads.
Each run is a process of its own; sources are in the cache, stores in memory (/dev/shm): the disk, which squall waits for and xarray does
not, is left out. Seconds are the best, peak memory is the most of all runs.

  .venv-peers/bin/python bench/convert_arrays.py FOLDER [small] [days] [rechunk] [--squall build/squall]
"""

import argparse
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


def make(work, folder):
    """The sources of a work: what squall convert is given, and xarray."""
    if work == "small":
        source = folder / "small"
        if not source.exists():
            subprocess.run([sys.executable, SHARED / "cases" / "many_small_files.py", source], check=True)
        return source / "*.nc"
    if not (folder / "netcdf" / "big.nc").exists():
        subprocess.run([sys.executable, SHARED / "bench" / "netcdf_many.py", "make", folder / "netcdf"], check=True)
    if work == "days":
        return folder / "netcdf" / "many" / "*.nc"
    source = folder / "maps.zarr"
    if not source.exists():
        import xarray as xr

        xr.open_dataset(folder / "netcdf" / "big.nc", chunks={"time": 1}).to_zarr(source, encoding={"t2m": {"compressors": codec()}})
    return source


CHUNKS = {"small": {"time": 250}, "days": {"time": 20}, "rechunk": {"time": -1, "lat": 64, "lon": 64}}


def codec():
    from zarr.codecs import BloscCodec

    return (BloscCodec(cname="zstd", clevel=5, shuffle="shuffle"),)


def by_xarray(work, source, out):
    import dask
    import xarray as xr

    warnings.filterwarnings("ignore")
    start = time.perf_counter()
    with dask.config.set(scheduler="threads"):
        if work == "rechunk":
            ds = xr.open_zarr(source)
        else:
            fast = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "override"}
            ds = xr.open_mfdataset(sorted(glob.glob(source)), combine="nested", concat_dim="time", **fast)
        ds = ds.chunk(CHUNKS[work])
        for variable in ds.variables.values():  # how the source's chunks and filters were is of no use here
            variable.encoding = {key: variable.encoding[key] for key in ("units", "calendar", "dtype") if key in variable.encoding}
        ds.to_zarr(out, encoding={name: {"compressors": codec()} for name in ds.data_vars})
    return time.perf_counter() - start


def by_squall(work, source, out, squall):
    chunks = ",".join(f"{dim}={'all' if n < 0 else n}" for dim, n in CHUNKS[work].items())
    start = time.perf_counter()
    process = subprocess.Popen([squall, "convert", source, out, "--chunks", chunks, "--quiet"])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"squall convert ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - start, usage.ru_maxrss


def once(work, impl, source, out, squall):
    shutil.rmtree(out, ignore_errors=True)
    if impl == "squall":
        return by_squall(work, source, out, squall)
    process = subprocess.Popen([sys.executable, __file__, "--one", work, source, out], stdout=subprocess.PIPE, text=True)
    line = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"xarray ended with {os.waitstatus_to_exitcode(status)}")
    return float(line), usage.ru_maxrss


def stored_mib(store):
    return sum(p.stat().st_size for p in store.rglob("*") if p.is_file()) / 2**20


def main():
    if sys.argv[1:2] == ["--one"]:
        print(by_xarray(*sys.argv[2:]))
        return
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("work", nargs="*", choices=[*CHUNKS, []])
    p.add_argument("--impl", default="xarray,squall")
    p.add_argument("--repeat", type=int, default=2)
    p.add_argument("--squall", default=str(ROOT / "build" / "squall"))
    a = p.parse_args()
    memory = pathlib.Path("/dev/shm")
    out = pathlib.Path(tempfile.mkdtemp(prefix="squall-convert-", dir=memory if memory.is_dir() else a.folder)) / "out.zarr"
    for work in a.work or CHUNKS:
        source = str(make(work, a.folder))
        best, peak_kib, mib = {}, {}, {}
        for _ in range(a.repeat):
            for impl in a.impl.split(","):
                seconds, kib = once(work, impl, source, str(out), a.squall)
                best[impl] = min(seconds, best.get(impl, seconds))
                peak_kib[impl] = max(kib, peak_kib.get(impl, 0))
                mib[impl] = stored_mib(out)
                shutil.rmtree(out)
        for impl, seconds in best.items():
            row = {"bench": "convert_arrays", "work": work, "impl": impl, "seconds": round(seconds, 3)}
            print(json.dumps(row | {"peak_mib": round(peak_kib[impl] / 1024), "stored_mib": round(mib[impl], 1)}), flush=True)
    out.parent.rmdir()


if __name__ == "__main__":
    main()
