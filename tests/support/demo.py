#!/usr/bin/env python3
"""The main job on an archive that it makes: convert with progress, interrupt, go on, open in xarray, and say what happened."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SQUALL = ROOT / "build" / "squall"
MAKE_ARCHIVE = ROOT / "build" / "tests" / "support" / "make_archive"


def say(text):
    print(f"\n== {text}", flush=True)


def show(*args):
    print("$", "squall", *args[1:], flush=True)
    return subprocess.run([str(a) for a in args])


def interrupt_half_way(args, store):
    """Run a conversion and send SIGINT once its first run is recorded; returns the exit code."""
    print("$", "squall", *args[1:], "   … and Ctrl-C half-way", flush=True)
    process = subprocess.Popen([str(a) for a in args])
    flags = pathlib.Path(store) / "chunk_exists" / "c"
    while process.poll() is None and not (flags.is_dir() and any(flags.iterdir())):
        time.sleep(0.002)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    return process.wait()


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="squall-demo-"))
    archive, store = folder / "archive", folder / "forecasts.zarr"
    say("An archive: 6 runs of a UK model, 13 hourly steps, 9 variables, two files a run, with some damage in it")
    subprocess.run([MAKE_ARCHIVE, archive, "--inits", "6", "--steps", "13", "--vars", "9", "--traps"], check=True)
    size = sum(f.stat().st_size for f in archive.iterdir())
    print(f"{len(list(archive.iterdir()))} files, {size / 2**20:.0f} MiB")

    say("What would be done")
    convert = [SQUALL, "convert", archive, store, "--dtype", "prmsl=float32,float16"]
    show(*convert, "--dry-run")

    say("Convert, and interrupt it")
    code = interrupt_half_way(convert, store)
    print(f"exit code {code}")

    say("The same command goes on where it stopped (exit code 3: some inputs are damaged, and named)")
    start = time.monotonic()
    code = show(*convert).returncode
    print(f"exit code {code}, {time.monotonic() - start:.2f} s")
    if code not in (0, 3):
        return 1

    say("What the store holds")
    show(SQUALL, "status", store)
    if show(SQUALL, "verify", store).returncode:
        return 1

    say("xarray opens it without an argument")
    import xarray as xr

    ds = xr.open_zarr(str(store), chunks=None)
    print(ds)
    print("runs that are there:", ds["chunk_exists"].values, " fields in each:", ds["field_count"].values)
    print("mean dew point of each run:", ds["dpt"].astype("float32").mean(("step", "y", "x")).values.round(2))
    shutil.rmtree(folder) if not os.environ.get("KEEP") else print(f"kept: {folder}")
    say("Done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
