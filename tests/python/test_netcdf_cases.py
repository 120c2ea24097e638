"""Situations that people reported with NetCDF and HDF5, as ../shared/cases makes them, read as their docstrings say is right."""

import subprocess
import sys

import numpy as np
import pytest
import squall

pytest.importorskip("h5py")  # the cases are made with these
pytest.importorskip("netCDF4")


@pytest.fixture
def case(shared, tmp_path):
    """Make a case; its folder."""

    def make(name):
        subprocess.run([sys.executable, shared / "cases" / f"{name}.py", tmp_path / name], check=True, capture_output=True)
        return tmp_path / name

    return make


def test_half_floats_and_compounds_with_text_are_values(case):
    folder = case("float16")
    half = squall.open(folder / "half.h5")["half"]
    assert half.dtype == np.float16 and half[...].tolist() == [n / 8 for n in range(10)]
    assert squall.open(folder / "records.h5")["rec"][...].tolist() == [(1.0, b"alpha"), (3.0, b"beta")]


@pytest.mark.long
def test_a_thousand_small_files_are_one_dataset(case):
    many = squall.open_many(str(case("many_small_files") / "*.nc"))
    assert many["time"][...].tolist() == list(range(1000)) and not many.problems
    for k in range(12):
        assert np.array_equal(many[f"v{k}"][...], (many["lat"][...] + k + np.arange(1000)[:, None, None]).astype("f4"))
