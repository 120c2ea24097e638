#!/usr/bin/env python3
"""squall and its peers on the same files, in one run on one machine: JSON lines as they come, a table of ratios at the end.

The workloads are the scripts in ../shared/bench (grib_decode.py, archive_to_zarr.py, zarr_read.py, netcdf_many.py); their
peers are installed into .venv-peers. Absolute figures move from machine to machine; the ratios are what counts.

  bench/run.py [decode] [scan] [archive] [zarr] [cold] [netcdf] [xarray] [arrays] [--folder DIR]      everything where nothing is named
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPTS = ROOT.parent / "shared" / "bench"
MAKE_UKV = ROOT.parent / "shared" / "tools" / "make_ukv_archive.py"
PEERS = ROOT / ".venv-peers" / "bin" / "python"
SQUALL = ROOT / "build" / "squall"


def install_peers():
    if PEERS.exists():
        return
    pythons = sorted(pathlib.Path.home().glob(".pyenv/versions/3.1[2-9].*/bin/python3")) or [pathlib.Path("/usr/bin/python3")]
    subprocess.run([pythons[-1], "-m", "venv", PEERS.parent.parent], check=True)
    subprocess.run([PEERS, "-m", "pip", "install", "-q", "-r", SCRIPTS / "requirements.txt"], check=True)


def lines_of(*args):
    """Run a benchmark script; print its JSON lines as they come and return them."""
    rows = []
    with subprocess.Popen([str(a) for a in (PEERS, *args)], stdout=subprocess.PIPE, text=True, cwd=SCRIPTS) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            rows.append(json.loads(line))
    return rows


def grib_files(folder):
    files = folder / "grib"
    if not files.exists():
        subprocess.run([str(PEERS), str(SCRIPTS / "grib_decode.py"), "make", str(files)], check=True)
    return files


def decode(folder):
    rates = {}
    for row in lines_of(SCRIPTS / "grib_decode.py", "run", grib_files(folder), "--impl", "eccodes,squall", "--squall", SQUALL):
        rates.setdefault(row["file"], {})[row["impl"]] = row.get("mpoints_per_s")
    print(f"\n{'file':<28}{'ecCodes':>10}{'squall':>10}{'ratio':>8}   million points a second")
    for name, rate in rates.items():
        if rate.get("eccodes") and rate.get("squall"):
            print(f"{name:<28}{rate['eccodes']:>10.1f}{rate['squall']:>10.1f}{rate['squall'] / rate['eccodes']:>8.2f}")


def scan(folder):
    many = grib_files(folder) / "many.grib2"
    for row in lines_of(SCRIPTS / "grib_decode.py", "scan", many, "--impl", "eccodes,gribberish,squall", "--squall", SQUALL):
        print(f"{row['impl']:<28}{row.get('seconds', float('nan')):>10.4f} s to list 5,000 fields")


def archive(folder):
    source = folder / "ukv"
    if not source.exists():
        subprocess.run([str(PEERS), str(MAKE_UKV), str(source), "--inits", "4", "--steps", "13", "--vars", "17"], check=True)
    impls = "eccodes,squall,squall-default"
    rows = lines_of(SCRIPTS / "archive_to_zarr.py", source, folder / "out.zarr", "--impl", impls, "--squall", SQUALL)
    by_name = {row["impl"]: row for row in rows}
    if "eccodes" not in by_name:
        return
    hand = by_name["eccodes"]
    print(f"\n{'':<20}{'s':>8}{'faster':>8}{'peak MiB':>10}{'share':>8}{'stored MiB':>12}")
    for name, row in by_name.items():
        faster, share = hand["seconds"] / row["seconds"], row["peak_mib"] / hand["peak_mib"]
        print(f"{name:<20}{row['seconds']:>8.2f}{faster:>8.2f}{row['peak_mib']:>10.0f}{share:>8.0%}{row['stored_mib']:>12.1f}")


def zarr_stores(folder):
    stores = folder / "zarr"
    if not stores.exists():
        subprocess.run([str(PEERS), str(SCRIPTS / "zarr_read.py"), "make", str(stores)], check=True)
    os.environ["PYTHONPATH"] = str(ROOT / "build" / "python")
    return stores


def zarr(folder):
    stores, rates = zarr_stores(folder), {}
    rows = lines_of(SCRIPTS / "zarr_read.py", "run", stores, "--impl", "zarrs,tensorstore,zarr-python,squall,squall-pipeline")
    (ROOT / "bench" / "zarr.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for row in rows:
        rates.setdefault((row["store"], row["task"]), {})[row["impl"]] = row["seconds"]
    print(f"\n{'store':<14}{'task':<11}{'best peer':>22}{'squall':>9}{'ratio':>7}{'pipeline to that of zarrs':>27}")
    for (store, task), s in rates.items():
        peer = min(("zarrs", "tensorstore", "zarr-python"), key=lambda name: s.get(name, float("inf")))
        pipeline = s["zarrs"] / s["squall-pipeline"] if "squall-pipeline" in s else float("nan")
        print(f"{store:<14}{task:<11}{peer:>14}{s[peer]:>8.3f}{s['squall']:>9.3f}{s[peer] / s['squall']:>7.2f}{pipeline:>27.2f}")


def netcdf_files(folder):
    files = folder / "netcdf"
    if not (files / "big.nc").exists():
        subprocess.run([str(PEERS), str(SCRIPTS / "netcdf_many.py"), "make", str(files)], check=True)
    os.environ["PYTHONPATH"] = str(ROOT / "build" / "python")
    return files


def netcdf(folder):
    files = netcdf_files(folder)
    times = {}
    for task in ("open", "load", "mean", "threads", "series"):
        for row in lines_of(SCRIPTS / "netcdf_many.py", "run", files, "--impl", "netcdf4,squall-arrays", "--task", task):
            times.setdefault(row["task"], {})[row["impl"]] = row["seconds"]
    print(f"\n{'task':<10}{'netcdf4, s':>12}{'squall, s':>11}{'ratio':>7}   (squall's arrays; netcdf4 through xarray)")
    for task, s in times.items():
        print(f"{task:<10}{s['netcdf4']:>12.3f}{s['squall-arrays']:>11.4f}{s['netcdf4'] / s['squall-arrays']:>7.1f}")


# what is wanted of squall under xarray, times as fast as the other engine
WANTED = {"open": 1.8, "load": 2.5, "mean": 1.8, "processes": 1.2, "threads": 2.5, "series": 4}
WANTED |= {"open_list": 15, "load_list": 8, "mean_list": 6, "processes_list": 5, "small": 2.25, "weather": 1.5}


def xarray(folder):
    """Engines side by side; "nothing" is one that reads nothing, so that no engine can be faster."""
    files, stores, times = netcdf_files(folder), zarr_stores(folder), {}
    for task in WANTED:
        if task in ("small", "weather"):
            source = files / "small.nc" if task == "small" else stores / "weather.zarr"
            rows = lines_of(ROOT / "bench" / "xarray_open.py", source)
        else:
            impls = "nothing,squall" if task.endswith("_list") else "netcdf4,nothing,squall"
            rows = lines_of(SCRIPTS / "netcdf_many.py", "run", files, "--impl", impls, "--task", task)
        times[task] = {row["impl"]: row["seconds"] for row in rows}
    print(f"\n{'task':<16}{'theirs, s':>11}{'nothing, s':>12}{'squall, s':>11}{'ratio':>7}{'wanted':>8}")
    for task, s in times.items():
        peer = times[task.removesuffix("_list")]
        theirs, nothing = peer.get("netcdf4") or peer.get("zarr"), s.get("nothing", float("nan"))
        print(f"{task:<16}{theirs:>11.4f}{nothing:>12.4f}{s['squall']:>11.4f}{theirs / s['squall']:>7.1f}{WANTED[task]:>8}")


def arrays(folder):
    rows = {}
    for row in lines_of(ROOT / "bench" / "convert_arrays.py", folder, "--squall", SQUALL):
        rows.setdefault(row["work"], {})[row["impl"]] = row
    print(f"\n{'sources':<10}{'xarray, s':>11}{'squall, s':>11}{'ratio':>7}{'xarray, MiB':>13}{'squall, MiB':>13}   (peak memory)")
    for work, by in rows.items():
        theirs, ours = by["xarray"], by["squall"]
        seconds = theirs["seconds"], ours["seconds"], theirs["seconds"] / ours["seconds"]
        print(f"{work:<10}{seconds[0]:>11.2f}{seconds[1]:>11.2f}{seconds[2]:>7.1f}{theirs['peak_mib']:>13}{ours['peak_mib']:>13}")


def cold(folder):
    stores = zarr_stores(folder)
    rows = lines_of(ROOT / "bench" / "cold.py", *(stores / name for name in ("cube_raw", "cube_zstd", "weather")))
    print(f"\n{'store':<14}{'stored MiB':>12}{'files, s':>10}{'by two, s':>11}{'squall, s':>11}{'warm, s':>9}{'share':>7}")
    for row in rows:
        seconds = [row[name] for name in ("files_s", "files_by_two_s", "squall_s", "squall_warm_s")]
        print("{:<14}{:>12}{:>10.3f}{:>11.3f}{:>11.3f}{:>9.3f}{:>7.0%}".format(row["store"], row["stored_mib"], *seconds, row["share"]))


WORK = {work.__name__: work for work in (decode, scan, archive, zarr, cold, netcdf, xarray, arrays)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", nargs="*", choices=[*WORK, []])
    p.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / "squall-bench")
    a = p.parse_args()
    if not SCRIPTS.is_dir():
        print("bench: ../shared/bench is not there; the workloads are its scripts", file=sys.stderr)
        return 1
    install_peers()
    a.folder.mkdir(parents=True, exist_ok=True)
    for name in a.what or WORK:
        WORK[name](a.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
