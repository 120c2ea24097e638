"""Situations that people reported, as ../shared/cases makes them, opened through xarray: as their docstrings say, and whole."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("eccodes")  # the cases are made with it
xr = pytest.importorskip("xarray")

GRID = np.arange(40).reshape(5, 8)


@pytest.fixture
def opened(shared, tmp_path):
    """Make a case and open it, without a warning."""

    def make(name):
        subprocess.run([sys.executable, shared / "cases" / f"{name}.py", tmp_path], check=True, capture_output=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return xr.open_dataset(tmp_path / "*.grib*", engine="squall", read_keys=["bottomLevel"])

    return make


def close(found, expected, dims=("latitude", "longitude")):
    assert found.dims == dims
    np.testing.assert_allclose(found.values, expected, atol=0.2)


def test_layers_with_the_same_top(opened):
    found = opened("layers_same_top")
    assert set(found.data_vars) == {"r", "r_2", "t"}
    for name, bottom in (("r", 1.0), ("r_2", 0.72)):
        assert found[name].attrs["GRIB_bottomLevel"] == bottom and found[name].sigmaLayer == 0.44
        close(found[name], round(bottom * 100) + GRID / 64)
    assert found["t"].depthBelowLandLayer.values.tolist() == [0.0, 0.1]
    for place, bottom in enumerate((10, 40)):
        close(found["t"][place], bottom + GRID / 64)


def test_one_name_for_an_instant_and_a_mean(opened):
    found = opened("gfs_tcc_instant_and_mean")
    assert {(v.attrs["GRIB_stepType"], v.attrs["GRIB_typeOfLevel"]) for v in found.data_vars.values()} == {
        ("instant", "atmosphere"),
        ("avg", "atmosphere"),
        ("avg", "boundaryLayerCloudLayer"),
    }
    assert all(name.startswith("tcc") for name in found.data_vars)
    by_first = sorted(found.data_vars.values(), key=lambda v: v.values.flat[0])
    for number, variable in enumerate(by_first):
        close(variable, GRID + 30 * number)


def test_many_parameters_on_many_levels(opened):
    found = opened("many_hypercubes")
    assert len(found.data_vars) == 400
    firsts = [variable.values.flat[0].round() for variable in found.data_vars.values()]
    assert {surface: firsts.count(surface) for surface in (1, 8, 10, 101)} == dict.fromkeys((1, 8, 10, 101), 100)


def test_both_fields_of_a_message(opened):
    found = opened("multi_field")
    assert set(found.data_vars) == {"u", "v"}
    for name, number in (("u", 2), ("v", 3)):
        for level in (500, 850):
            close(found[name].sel(isobaricInhPa=level), GRID / 8 + level + 1000 * number)


def test_values_whose_columns_come_first(opened):
    found = opened("column_major")
    assert found.latitude.values.tolist() == [20, 15, 10, 5, 0]
    close(found["t2m"], 100 * np.arange(5)[:, None] + np.arange(9))


def test_runs_of_which_only_a_part_is_there(opened):
    found = opened("sparse_time_step")["ssrd"].stack(run=("time", "step"))
    there = found.dropna("run", how="all")
    assert found.sizes["run"] == 7 * 12 and there.sizes["run"] == 72
    hours = (there.valid_time.values - np.datetime64("1980-01-01")) // np.timedelta64(1, "h")
    assert sorted(hours) == list(range(72))
    for place, hour in enumerate(hours):
        close(there.isel(run=place).drop_vars(["run", "time", "step"]), GRID + 100 * hour)


def test_quarters_of_an_hour_in_mixed_units(opened):
    (variable,) = opened("subhourly_mixed_units").data_vars.values()
    minutes = variable.step.values / np.timedelta64(1, "m")
    assert minutes.tolist() == list(range(0, 121, 15))
    for place, minute in enumerate(minutes):
        close(variable[place], GRID / 8 + minute)


def test_a_level_type_is_a_group_of_the_tree(opened, tmp_path):
    opened("many_hypercubes")
    tree = xr.open_datatree(tmp_path / "many.grib2", engine="squall")
    found = {node.name: len(node.data_vars) for node in tree.leaves}
    assert found == dict.fromkeys(("surface", "nominalTop", "atmosphere", "meanSea"), 100)
