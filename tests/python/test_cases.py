"""Situations that people reported, as ../shared/cases makes them: each GRIB case, converted, comes out as its own docstring says."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("eccodes")  # the cases are made with it
xr = pytest.importorskip("xarray")
pytest.importorskip("zarr")
FLAGS = {"chunk_exists", "field_count"}
GRID = np.arange(40).reshape(5, 8)


@pytest.fixture
def case(shared, squall, tmp_path):
    """Make a case and convert it: (dataset, report, source folder)."""

    def make(name):
        source, store = tmp_path / name, tmp_path / f"{name}.zarr"
        subprocess.run([sys.executable, shared / "cases" / f"{name}.py", source], check=True, capture_output=True)
        report = json.loads(squall("convert", "--json", source, store).out)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dataset = xr.open_zarr(store).load()
        return dataset, report, source

    return make


def variables(dataset):
    return sorted(set(dataset.data_vars) - FLAGS)


def test_layers_with_the_same_top_are_kept_apart_by_their_bounds(case):
    dataset, report, _ = case("layers_same_top")
    assert report["fields"] == {"found": 4, "placed": 4, "ignored": 0, "duplicates": 0, "not_selected": 0}
    assert variables(dataset) == ["r", "t"]
    sigma = [tuple(pair) for pair in dataset.sigmaLayer_bounds.values]
    assert sorted(sigma) == [(0.44, 0.72), (0.44, 1.0)]
    assert dataset.sigmaLayer.values.tolist() == [0.44, 0.44]
    soil = [tuple(pair) for pair in dataset.depthBelowLandLayer_bounds.values]
    assert soil == [(0.0, 0.1), (0.1, 0.4)]
    for name, bounds in (("r", sigma), ("t", soil)):
        for place, (_, bottom) in enumerate(bounds):
            # the case writes the bottom, in hundredths, into the values
            np.testing.assert_allclose(dataset[name].values[0, 0, place], round(bottom * 100) + GRID / 64, atol=1e-4)


def test_one_name_for_an_instant_and_a_mean_gives_distinct_variables(case):
    dataset, report, _ = case("gfs_tcc_instant_and_mean")
    assert report["fields"]["placed"] == 3
    first_values = {name: dataset[name].values[0, 0, 0, 0].round() for name in variables(dataset)}
    assert sorted(first_values.values()) == [0, 30, 60]
    instant, mean, layer = sorted(first_values, key=first_values.get)
    assert dataset[instant].attrs["GRIB_stepType"] == "instant"
    assert dataset[mean].attrs["GRIB_stepType"] == dataset[layer].attrs["GRIB_stepType"] == "avg"
    assert dataset[mean].attrs["GRIB_typeOfLevel"] != dataset[layer].attrs["GRIB_typeOfLevel"]
    assert all("tcc" in name for name in first_values)
    for number, name in enumerate((instant, mean, layer)):
        np.testing.assert_allclose(dataset[name].values[0, 0], GRID + 30 * number, atol=1e-3)


def test_many_parameters_on_many_levels_are_all_kept_in_no_time(case, squall):
    dataset, report, source = case("many_hypercubes")
    assert report["fields"] == {"found": 400, "placed": 400, "ignored": 0, "duplicates": 0, "not_selected": 0}
    expected = {1: 0, 8: 0, 10: 0, 101: 0}
    for name in variables(dataset):
        array = dataset[name]
        assert array.size == 12 and not np.isnan(array).any()
        surface = int(array.values.flat[0].round())
        np.testing.assert_allclose(array.values.ravel(), np.arange(12) + surface, atol=1e-3)
        expected[surface] += 1
    assert expected == {1: 100, 8: 100, 10: 100, 101: 100}
    assert len(json.loads(squall("ls", "--json", source / "many.grib2").out)) == 400


def test_both_fields_of_a_message_are_read(case):
    dataset, report, _ = case("multi_field")
    assert report["fields"]["placed"] == 4
    assert variables(dataset) == ["u", "v"]
    assert dataset.isobaricInhPa.values.tolist() == [500, 850]
    for name, number in (("u", 2), ("v", 3)):
        for place, level in enumerate((500, 850)):
            np.testing.assert_allclose(dataset[name].values[0, 0, place], GRID / 8 + level + 1000 * number, atol=1e-3)


def test_column_major_values_lie_at_their_coordinates(case):
    dataset, _, _ = case("column_major")
    assert variables(dataset) == ["t2m"]
    assert dataset.latitude.values.tolist() == [20, 15, 10, 5, 0]
    assert dataset.longitude.values.tolist() == list(range(0, 45, 5))
    expected = 100 * np.arange(5)[:, None] + np.arange(9)
    np.testing.assert_allclose(dataset.t2m.values[0, 0], expected, atol=0.01)


def test_holes_of_partial_runs_are_counted_and_named(case):
    dataset, report, _ = case("sparse_time_step")
    assert report["fields"]["placed"] == 72
    assert [(run["init_time"], run["fields"]) for run in report["partial"]] == [("1979-12-31T18:00", 7), ("1980-01-03T18:00", 5)]
    assert any("12 of 84" in note for note in report["notes"])
    assert dict(dataset.sizes)["init_time"] == 7 and dict(dataset.sizes)["step"] == 12
    empty = np.isnan(dataset.ssrd.values).all(axis=(2, 3))
    assert empty.sum() == 12 and empty[0, :5].all() and empty[6, 5:].all()
    assert dataset.field_count.values.tolist() == [7, 12, 12, 12, 12, 12, 5]
    # hour i of the three days has values from 100 i on
    hours = (dataset.valid_time.values - np.datetime64("1980-01-01")) // np.timedelta64(1, "h")
    found = dataset.ssrd.values[~empty]
    for hour, values in zip(hours[~empty], found, strict=True):
        np.testing.assert_allclose(values, GRID + 100 * hour, atol=0.2)


def test_quarters_of_an_hour_in_mixed_units_are_one_axis(case):
    dataset, report, _ = case("subhourly_mixed_units")
    assert report["fields"]["placed"] == 9
    assert len(variables(dataset)) == 1
    assert (dataset.step.values // np.timedelta64(1, "m")).tolist() == list(range(0, 121, 15))
    values = dataset[variables(dataset)[0]].values[0]
    for place, minutes in enumerate(range(0, 121, 15)):
        np.testing.assert_allclose(values[place], GRID / 8 + minutes, atol=1e-3)
