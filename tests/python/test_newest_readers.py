"""Stores of ours under the newest Python, zarr-python and xarray there: they read what the pinned ones read, and warn of nothing."""

import json
import subprocess
import sys

import pytest
import small_archive as archive
from conftest import ROOT, SHARED

NEWEST = ROOT / ".venv-newest" / "bin" / "python"
pytestmark = pytest.mark.skipif(not NEWEST.exists(), reason="no Python ≥ 3.12 here")
FOLDER = SHARED / "data" / "grib"
# members and levels, many variables, a projection, points, levels with bounds, two grids
FILES = "era5-levels-members.grib pygrib_gfs.grb iris_lambert.grib2 reduced_gg.grib soil-surface-level-mix.grib iris_3_layer.grib2".split()


def described(python, store):
    done = subprocess.run([python, ROOT / "tests" / "support" / "describe_store.py", store], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(store):
    pinned, newest = described(sys.executable, store), described(NEWEST, store)
    assert len(pinned["xarray"]) > 8
    assert pinned == newest


@pytest.mark.parametrize("name", FILES)
def test_stores_of_real_files(name, shared, squall, tmp_path):
    squall("convert", "-q", FOLDER / name, tmp_path / "store.zarr", check=False)
    check(tmp_path / "store.zarr")


@pytest.mark.parametrize("options", [[], ["--stack", "variable", "--dtype", "float16"], ["--dtype", "float64", "--codec", "gzip:level=1"]])
def test_stores_of_an_archive(options, squall, tmp_path):
    squall("convert", "-q", archive.make(tmp_path / "in", 3), tmp_path / "store.zarr", *options)
    check(tmp_path / "store.zarr")
