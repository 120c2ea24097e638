"""squall status of stores that were made from arrays: their places by date, index and state. cftime tells the dates."""

import json

import cftime
import netCDF4
import numpy as np
import pytest

CALENDARS = ["standard", "proleptic_gregorian", "noleap", "365_day", "all_leap", "366_day", "360_day", "julian"]


def series(path, times, units=None, **attributes):
    """t(time, x), as many places as there are times."""
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", None)
        ds.createDimension("x", 40)
        time = ds.createVariable("time", "f8", ("time",))
        time.setncatts(attributes | ({"units": units} if units else {}))
        time[:] = times
        ds.createVariable("t", "f4", ("time", "x"))[:] = np.arange(len(times) * 40).reshape(-1, 40)
    return path


def places(squall, store):
    return json.loads(squall("status", store, "--json").out)["places"]


def minute(date):
    return f"{date.year:04}-{date.month:02}-{date.day:02}T{date.hour:02}:{date.minute:02}"


@pytest.mark.parametrize("units", ["days since 1850-01-01", "hours since 2000-02-27 06:00", "seconds since 1580-12-30"])
@pytest.mark.parametrize("calendar", CALENDARS)
def test_times_are_dates_of_their_calendar(squall, tmp_path, calendar, units):
    step = {"days": 15.25, "hours": 366, "seconds": 1317600}[units.split()[0]]
    times = np.arange(60) * step + (150 if units.startswith("days") else 0)
    store = tmp_path / "out.zarr"
    squall("convert", series(tmp_path / "in.nc", times, units, calendar=calendar), store, "--chunks", "time=7")
    wanted = [minute(date) for date in cftime.num2date(times, units, calendar)]
    assert [place["time"] for place in places(squall, store)] == wanted
    text = squall("status", store).out
    assert f"60 places along time, {wanted[0]} to {wanted[-1]}, " in text
    days = [line[:10] for line in text.splitlines()[2:-3]]
    assert days == sorted({date[:10] for date in wanted})


@pytest.mark.parametrize("calendar", ["noleap", "360_day"])
def test_times_that_are_not_regular_begin_rows_by_their_date(squall, tmp_path, calendar):
    units, times = "days since 2001-01-01", np.cumsum([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] * 6) - 15.5
    store = tmp_path / "out.zarr"
    squall("convert", series(tmp_path / "in.nc", times, units, calendar=calendar), store)
    wanted = [minute(date) for date in cftime.num2date(times, units, calendar)]
    lines = squall("status", store).out.splitlines()
    assert lines[1:3] == [f"{wanted[0]}  {'#' * 60}", f"{wanted[60]}  {'#' * 12}"]
    assert wanted[0] in squall("convert", tmp_path / "in.nc", tmp_path / "b.zarr", "--dry-run").out


def test_the_words_are_those_of_arrays(squall, tmp_path):
    store = tmp_path / "out.zarr"
    squall("convert", series(tmp_path / "in.nc", [0, 6, 12], "hours since 2024-01-01"), store)
    status = json.loads(squall("status", store, "--json").out)
    assert status["append_dim"] == "time" and status["step_seconds"] == 6 * 3600 and status["usual_variable_count"] == 1
    assert status["places"][2] == {"place": 2, "time": "2024-01-01T12:00", "state": "complete", "variables": 1}
    assert not {"runs", "runs_left_out", "cadence_seconds", "usual_field_count"} & set(status) and status["places_left_out"] == 0


@pytest.mark.parametrize(
    "times, attributes, step", [([0, 1, 3], {"units": "hours since 2024-01-01"}, None), ([0, 1, 2], {}, None), ([5], {}, None)]
)
def test_a_step_is_told_where_times_have_one(squall, tmp_path, times, attributes, step):
    store = tmp_path / "out.zarr"
    squall("convert", series(tmp_path / "in.nc", times, **attributes), store)
    status = json.loads(squall("status", store, "--json").out)
    assert status["step_seconds"] is step
    assert [place["place"] for place in status["places"]] == list(range(len(times)))
    assert all(("time" in place) == bool(attributes) for place in status["places"])
    assert ("1 place along time" if len(times) == 1 else "3 places along time") in squall("status", store).out


def test_verify_calls_a_place_by_its_date(squall, tmp_path):
    store = tmp_path / "out.zarr"
    squall("convert", series(tmp_path / "in.nc", [58, 59], "days since 2001-01-01", calendar="360_day"), store, "--chunks", "time=1")
    for journal in (store / "chunk_exists" / ".squall").glob("*"):
        if journal.name != "layout.json" and journal.is_file():
            journal.unlink()
    done = squall("verify", store, check=False)
    assert done.code == 5 and "chunk_exists is true for time 2001-02-30T00:00, but no record says so" in done.out, done.out + done.err
