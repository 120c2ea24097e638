"""xarray's own tests of its engines, which are installed with it, with squall in place of netcdf4, h5netcdf and zarr."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("xarray")
MODULES = [f"xarray.tests.{name}" for name in ("test_backends", "test_backends_datatree", "test_distributed")]
# what no engine reads, or what waits for clusters, is left to the long run
SAMPLE = ["--every", "30", "-k", "not distributed and not rasterio and not manyfiles"]
WITHOUT = ["-p", "no:cacheprovider", "-W", "ignore"]


def run(folder, *options):
    """(exit code, number of tests that passed, what pytest printed)"""
    options = [*WITHOUT, *options, f"--basetemp={folder}/temp"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xarray_suite_plugin", *options, "--pyargs", *MODULES]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(pathlib.Path(__file__).parent), os.environ["PYTHONPATH"]])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    passed = re.search(r"(\d+) passed", done.stdout)
    return done.returncode, int(passed[1]) if passed else 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_a_sample_of_xarrays_own_tests_passes(tmp_path):
    code, passed, printed = run(tmp_path, *SAMPLE)
    assert code == 0 and passed > 60, printed


@pytest.mark.long
def test_xarrays_own_tests_pass(tmp_path):
    code, passed, printed = run(tmp_path, "-n", "2")
    assert code == 0 and passed > 2800, printed
