"""A whole conversion in the build with the thread sanitizer: it ends a process that races with exit code 66."""

import subprocess

import pytest
from conftest import ROOT

TSAN = ROOT / "build-tsan" / "squall"


@pytest.mark.skipif(not TSAN.exists(), reason="no build with the thread sanitizer (make test makes one)")
def test_converting_listing_and_verifying_do_not_race(tmp_path, support):
    archive, store = tmp_path / "archive", tmp_path / "store.zarr"
    sizes = "--inits 3 --steps 3 --vars 9 --ny 60 --nx 50".split()
    subprocess.run([support / "make_archive", archive, *sizes], check=True)
    files = sorted(archive.iterdir())
    for args in (
        ["convert", archive, store, "--threads", "4", "--dtype", "float16", "--on-overflow", "inf"],
        ["convert", archive, store, "--threads", "4", "--dtype", "float16", "--on-overflow", "inf"],
        ["verify", store, "--threads", "4"],
        ["ls", "--threads", "4", *files],
        ["bench", store, "--threads", "4"],
    ):
        done = subprocess.run([TSAN, *map(str, args)], capture_output=True, text=True, env={"TSAN_OPTIONS": "halt_on_error=1"})
        assert done.returncode == 0, f"{args[0]}: {done.stdout}{done.stderr}"
