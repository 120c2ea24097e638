"""The command on HDF5 and NetCDF files, patterns and Zarr stores: netCDF4, h5py and cftime write and say what is to be shown."""

import csv
import io
import json
import os
import re
import shutil
import subprocess

import cftime
import h5py
import netCDF4
import numpy as np
import pytest
import squall as package
import zarr


def write_day(path, day, *, units="K", name="t2m", kind="NETCDF4"):
    """Four maps of a day, compressed where the format can, with CF coordinates."""
    values = np.random.default_rng(day).normal(280, 9, (4, 3, 5)).astype("f4")
    with netCDF4.Dataset(path, "w", format=kind) as f:
        f.createDimension("time", None)
        f.createDimension("latitude", 3)
        f.createDimension("longitude", 5)
        f.createVariable("time", "f8", ("time",))[:] = day * 24 + np.arange(4) * 6
        f["time"].units, f["time"].calendar = "hours since 2020-01-01", "standard"
        f.createVariable("latitude", "f4", ("latitude",))[:] = [60, 57.5, 55]
        f["latitude"].units = "degrees_north"
        f.createVariable("longitude", "f4", ("longitude",))[:] = np.arange(5) * 2.5 - 5
        f["longitude"].units = "degrees_east"
        f.createVariable(name, "f4", ("time", "latitude", "longitude"), zlib=kind == "NETCDF4", chunksizes=(2, 3, 5))[:] = values
        f[name].units = units
    return values


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    folder = tmp_path_factory.mktemp("days")
    return folder, np.concatenate([write_day(folder / f"day{day}.nc", day) for day in range(3)])


@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF3_CLASSIC"])
def test_several_files_are_joined_along_a_dimension_that_is_named(squall, tmp_path, kind):
    values = np.stack([write_day(tmp_path / f"{i}.nc", 0, kind=kind) for i in range(3)])
    pattern = tmp_path / "*.nc"
    done = squall("info", pattern, check=False)
    assert done.code == 4 and "differ along no dimension" in done.err and "--concat-dim" in done.err
    for command in ("info", "ls", "bench"):
        assert squall(command, pattern, "--concat-dim", "member").err == ""
    rows = {row["name"]: row for row in json.loads(squall("ls", "--json", pattern, "--concat-dim=member").out)}
    assert rows["t2m"]["shape"] == [3, 4, 3, 5] and rows["t2m"]["dims"][0] == "member" and rows["time"]["shape"] == [4]
    assert json.loads(squall("bench", "--json", pattern, "--concat-dim", "member", "--array", "t2m").out)["points"] == values.size
    squall("get", pattern, "t2m", "--concat-dim", "member", "-o", tmp_path / "t.npy")
    assert np.array_equal(np.load(tmp_path / "t.npy"), values)


def test_info_counts_the_files_that_are_one_dataset(squall, days):
    folder, _ = days
    assert squall("info", folder / "*.nc").out.startswith(f"{folder}/*.nc: hdf5, 3 files, 4 arrays, ")
    assert json.loads(squall("info", "--json", folder / "*.nc").out)["files"] == 3
    one = folder / "day0.nc"
    assert squall("info", one).out.startswith(f"{one}: hdf5, 4 arrays, ")


@pytest.mark.parametrize("option", [("--concat-dim", "time"), ("--drift", "warn")])
@pytest.mark.parametrize("command", [("info",), ("ls",), ("bench",), ("get", "t")])
def test_options_that_join_files_are_refused_of_grib(squall, support, tmp_path, command, option):
    subprocess.run([support / "make_archive", tmp_path / "grib", *"--inits 1 --steps 1 --vars 1 --ny 3 --nx 4".split()], check=True)
    path = next((tmp_path / "grib").iterdir())
    done = squall(command[0], path, *command[1:], *option, check=False)
    assert (done.code, done.out) == (2, "")
    assert f"{path}: fields of GRIB tell themselves where they belong; {option[0]} is for other files: leave it out" in done.err


def test_files_that_drift_are_refused_told_or_taken_as_the_first(squall, tmp_path):
    values = [write_day(tmp_path / f"day{day}.nc", day, units="K" if day < 2 else "degC") for day in range(3)]
    pattern = tmp_path / "day*.nc"
    refused = squall("ls", pattern, "--drift", "error", check=False)
    assert refused.code == 4 and 'day2.nc: units of t2m is "degC"' in refused.err and "--drift warn" in refused.err
    told = squall("info", pattern, "--drift", "warn", check=False)
    assert told.code == 3 and 'day2.nc: units of t2m is "degC"' in told.err and "12 " in told.out
    assert squall("info", pattern, "--drift", "first").err == ""
    squall("get", pattern, "t2m", "--drift=first", "-o", tmp_path / "t.npy")
    assert np.array_equal(np.load(tmp_path / "t.npy"), np.concatenate(values))
    wrong = squall("info", pattern, "--drift", "ignore", check=False)
    assert wrong.code == 2 and "it takes error|warn|first" in wrong.err


def test_ls_of_a_pattern_lists_each_file_unless_they_are_joined(squall, days):
    folder, values = days
    assert len(squall("ls", folder / "*.nc").out.splitlines()) == 12
    rows = squall("ls", folder / "*.nc", "--concat-dim", "time").out.splitlines()
    assert len(rows) == 4 and any("time=12" in row for row in rows)


def folders(days, tmp_path):
    """Folders that are no dataset, and what is to be said of each."""
    folder, _ = days
    for name in ("empty", "deep/2020", "one", "text"):
        (tmp_path / name).mkdir(parents=True)
    for day in folder.iterdir():
        shutil.copy(day, tmp_path / "deep" / "2020")
    shutil.copy(folder / "day0.nc", tmp_path / "one" / "data")
    (tmp_path / "text" / "log").write_text("nothing of interest")
    for name in "ab":
        zarr.create_array(tmp_path / "stores" / f"{name}.zarr", shape=3, dtype="f4")
    yield folder, f"it holds 3 HDF5 or NetCDF files; a pattern opens many as one: '{folder}/*.nc'"
    yield tmp_path / "deep", f"{tmp_path}/deep/2020 holds 3 HDF5 or NetCDF files; a pattern opens many as one: '{tmp_path}/deep/2020/*.nc'"
    yield tmp_path / "one", f"what can be opened is {tmp_path}/one/data"
    yield tmp_path / "stores", f"it holds 2 Zarr stores; a pattern opens many as one: '{tmp_path}/stores/*.zarr'"
    yield tmp_path / "empty", "there is no file in it"
    yield tmp_path / "text", f"no file in it can be read: {tmp_path}/text/log: no GRIB message in 19 bytes"


def test_a_folder_that_is_no_dataset_says_what_to_open(squall, days, tmp_path):
    for folder, words in folders(days, tmp_path):
        for command in ("info", "bench"):
            done = squall(command, f"{folder}/", check=False)
            assert done.code == 1 and words in done.err, (folder, done.err)
        with pytest.raises(package.Error, match=re.escape(words)):
            package.open(folder)


def test_files_of_arrays_among_grib_are_named_as_what_they_are(squall, days, tmp_path, support):
    shutil.copy(days[0] / "day0.nc", tmp_path)
    write_day(tmp_path / "old.nc", 0, kind="NETCDF3_CLASSIC")
    subprocess.run([support / "make_archive", tmp_path / "grib", *"--inits 1 --steps 1 --vars 1 --ny 3 --nx 4".split()], check=True)
    done = squall("info", tmp_path, check=False)
    assert done.code == 3 and "grib, " in done.out
    assert "day0.nc: an HDF5 or NetCDF-4 file, not GRIB" in done.err and "old.nc: a NetCDF-3 file, not GRIB" in done.err


def test_an_array_within_a_file_may_be_named_behind_it(squall, days, tmp_path):
    path = days[0] / "day1.nc"
    with netCDF4.Dataset(tmp_path / "g.nc", "w") as f:
        f.createGroup("obs/raw").createVariable("n", "i4")[...] = 7
    assert package.open_array(path / "t2m").shape == (4, 3, 5) and package.open(tmp_path / "g.nc/obs").groups
    assert package.open_array(tmp_path / "g.nc/obs/raw/n")[()] == 7
    with pytest.raises(FileNotFoundError, match="day1.nc/t2: no t2 in .*there is time, latitude, longitude, t2m"):
        package.open_array(path / "t2")
    with pytest.raises(ValueError, match="is a group, not an array"):
        package.open_array(tmp_path / "g.nc/obs")
    done = squall("info", path / "t2m", check=False)
    assert done.code == 1 and f"{path} is a file, not a folder; an array in it is named apart from it: {path} t2m" in done.err


CALENDARS = ["standard", "proleptic_gregorian", "julian", "noleap", "365_day", "all_leap", "366_day", "360_day"]
UNITS = [
    "hours since 1850-01-31 06:00",
    "days since 1582-10-01",
    "seconds since 2000-02-28T23:59:30Z",
    "minutes since 1999-12-31 18:00 +06:00",
]


@pytest.mark.parametrize("calendar", CALENDARS)
@pytest.mark.parametrize("units", UNITS)
def test_times_are_dates_of_their_calendar(squall, tmp_path, calendar, units):
    units = units.replace("-31", "-30") if calendar == "360_day" else units
    per_day = {"h": 24, "d": 1, "s": 86400, "m": 1440}[units[0]]
    counts = np.concatenate([np.arange(9) * per_day / 4, np.random.default_rng(1).uniform(0, 9e5, 40).round(3) * per_day])
    counts = np.sort(counts).round(0 if units[0] == "s" else 6)
    path = tmp_path / "t.nc"
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("time", len(counts))
        for name in ("time", "v"):
            f.createVariable(name, "f8", ("time",))[:] = counts
        f["time"].setncatts({"units": units, "calendar": calendar})
    wanted = cftime.num2date(counts, units, calendar, only_use_cftime_datetimes=True)
    rows = [line.split(",") for line in squall("get", path, "v").out.splitlines()[1:]]
    assert [row[0] for row in rows] == squall("get", path, "time").out.splitlines()[1:]
    for (text, _), date in zip(rows, wanted, strict=True):
        whole, _, fraction = text.partition(".")
        told = cftime.datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S", calendar=date.calendar)
        error = (told - date).total_seconds() + float(f"0.{fraction or 0}")
        assert abs(error) < 2e-5, (text, date)  # a double tells days no better
    for i in (0, 7, 20, len(counts) - 1):
        done = squall("get", path, "v", "--nearest", f"time={rows[i][0]}")
        assert done.err == "" and float(done.out.splitlines()[1]) == counts[i]
    assert [row["time"] for row in json.loads(squall("get", "--json", path, "v").out)] == [row[0] for row in rows]
    squall("get", path, "time", "-o", tmp_path / "t.npy")
    assert np.array_equal(np.load(tmp_path / "t.npy"), counts)


@pytest.mark.parametrize(
    ("calendar", "date", "words"),
    [
        ("noleap", "2020-02-29", "2020-02-29 is no date of the calendar (noleap)"),
        ("360_day", "2020-01-31", "2020-01-31 is no date of the calendar (360_day)"),
        ("standard", "1582-10-10", "1582-10-10 is no date of the calendar (standard)"),
        ("standard", "48", "48 is no date"),
        ("standard", "2020-13-01", "2020-13-01 is no date"),
        ("standard", "2020-01-01T25", "2020-01-01T25 is no date"),
    ],
)
def test_a_day_that_the_calendar_has_not_is_no_date(squall, tmp_path, calendar, date, words):
    with netCDF4.Dataset(tmp_path / "t.nc", "w", format="NETCDF3_CLASSIC") as f:
        f.createDimension("time", 2)
        f.createVariable("time", "i4", ("time",))[:] = [0, 1]
        f["time"].setncatts({"units": "days since 1500-01-01", "calendar": calendar})
    done = squall("get", tmp_path / "t.nc", "time", "--nearest", f"time={date}", check=False)
    assert done.code == 2 and "a date is wanted, such as 2022-01-01T06:00" in done.err and words in done.err


def test_what_is_no_date_is_shown_as_the_number(squall, tmp_path):
    with netCDF4.Dataset(tmp_path / "t.nc", "w") as f:
        f.createDimension("x", 3)
        for name, units in (("a", "hours since 2000-01-01"), ("b", "months since 2000-01-01"), ("c", "hours since yesterday")):
            f.createVariable(name, "f8", ("x",))[:] = [1, np.nan, 1e30]
            f[name].units = units
    assert squall("get", tmp_path / "t.nc", "a").out.split() == ["x,a", "0,2000-01-01T01:00:00", "1,NaT", "2,1e+30"]
    assert [row["value"] for row in json.loads(squall("get", "--json", tmp_path / "t.nc", "a").out)] == ["2000-01-01T01:00:00", None, 1e30]
    for name in "bc":
        assert squall("get", tmp_path / "t.nc", name).out.split() == [f"x,{name}", "0,1", "1,nan", "2,1e+30"]


def test_an_index_and_a_date_are_told_apart(squall, days):
    path = days[0] / "day1.nc"
    done = squall("get", path, "t2m", "-s", "time=2020-01-02", check=False)
    assert done.code == 2 and "an index or a range of indices is wanted; by values: --nearest time=2020-01-02" in done.err
    done = squall("get", path, "t2m", "-s", "time=2020-01-02T06:00", check=False)
    assert done.code == 2 and "by values: --nearest time=VALUE" in done.err
    done = squall("get", path, "t2m", "-s", "time=4", check=False)
    assert done.code == 2 and "time=4: the index lies outside 0 to 3" in done.err


def test_labels_come_from_the_group_of_the_array_or_the_nearest_above(squall, tmp_path):
    with netCDF4.Dataset(tmp_path / "g.nc", "w") as f:
        f.createDimension("lat", 2)
        f.createVariable("lat", "f4", ("lat",))[:] = [50, 60]
        f.createDimension("time", 1)
        g = f.createGroup("obs").createGroup("raw")
        g.createDimension("time", 2)
        g.createVariable("time", "i4", ("time",))[:] = [0, 6]
        g["time"].units = "hours since 2020-01-01"
        g.createVariable("v", "i4", ("time", "lat"))[:] = [[1, 2], [3, 4]]
    assert squall("get", tmp_path / "g.nc", "obs/raw/v").out.splitlines()[1:3] == ["2020-01-01T00:00:00,50,1", "2020-01-01T00:00:00,60,2"]
    assert squall("get", tmp_path / "g.nc", "obs/raw/v", "--nearest", "time=2020-01-01T05:00,lat=59").out.splitlines()[1] == "4"


WIND = np.dtype([("speed", "<f4"), ("from, to", "<i2", (2, 2))])
RECORD = np.dtype([("id", "S6"), ("wind", WIND), ("level", "<u8", (3,)), ("ok", "?"), ("z", "<c8"), ("big", ">f8")])


def plain(value):
    """What JSON is to say of a numpy value."""
    if isinstance(value, np.void):
        return {name: plain(value[name]) for name in value.dtype.names}
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value]
    value = value.item() if isinstance(value, np.generic) else value
    return value.decode() if isinstance(value, bytes) else f"{value.real:g}{value.imag:+g}j" if isinstance(value, complex) else value


def write_records(path):
    records = np.zeros(3, RECORD)
    rng = np.random.default_rng(3)
    for i in range(3):
        records[i] = (f"s{i}".encode(), (i / 4, rng.integers(-9, 9, (2, 2))), rng.integers(0, 2**63, 3), i % 2, i - 0.5j, i / 3)
    sequences = [[1, 2.5], [], [-3]]
    with h5py.File(path, "w") as f:
        f["records"] = records
        f.create_dataset("sequences", (3,), h5py.vlen_dtype("f8"))[...] = np.array([np.array(s, "f8") for s in sequences], object)
        f.create_dataset("pairs", (2,), h5py.vlen_dtype(np.dtype([("a", "<i2"), ("b", "<f4")])))
        f["pairs"][1] = np.array([(1, 0.5), (2, 1.5)], [("a", "<i2"), ("b", "<f4")])
        f.create_dataset("texts", data=["plain", 'says "a, b"', "größer"], dtype=h5py.string_dtype())
        f.create_dataset("sky", data=[0, 7, -3], dtype=h5py.enum_dtype({"clear": 0, "in cloud, or near": -3}, "i2"))
        f.create_dataset("flags", data=[True, False])
    return records, sequences


def test_structures_sequences_and_names_are_shown_as_what_they_are(squall, tmp_path):
    path = tmp_path / "r.h5"
    records, sequences = write_records(path)

    def told(name):
        return [row["value"] for row in json.loads(squall("get", "--json", path, name).out)]

    def cells(name):
        return list(csv.reader(io.StringIO(squall("get", path, name).out)))

    assert told("records") == plain(records)
    head, *rows = cells("records")
    assert head[1:] == [f"records.{n}" for n in ("id", "wind.speed", "wind.from, to", "level", "ok", "z", "big")]
    for row, record in zip(rows, records, strict=True):
        assert row[1] == record["id"].decode() and np.float32(row[2]) == record["wind"]["speed"]
        assert json.loads(row[3]) == record["wind"]["from, to"].tolist() and json.loads(row[4]) == record["level"].tolist()
        assert row[5] == str(bool(record["ok"])).lower() and float(row[7]) == record["big"]
    assert told("sequences") == sequences and [json.loads(row[1]) for row in cells("sequences")[1:]] == sequences
    assert told("pairs") == [[], [{"a": 1, "b": 0.5}, {"a": 2, "b": 1.5}]]
    assert told("texts") == ["plain", 'says "a, b"', "größer"] == [row[1] for row in cells("texts")[1:]]
    assert told("sky") == ["clear", 7, "in cloud, or near"] and [row[1] for row in cells("sky")[1:]] == ["clear", "7", "in cloud, or near"]
    assert told("flags") == [True, False]


def test_npy_has_what_numpy_has_and_refuses_the_rest_by_name(squall, tmp_path):
    path, out = tmp_path / "r.h5", tmp_path / "x.npy"
    records, _ = write_records(path)
    squall("get", path, "records", "-o", out)
    assert all(np.array_equal(np.load(out)[name], records[name]) for name in RECORD.names)
    squall("get", path, "sky", "-o", out)
    assert np.load(out).tolist() == [0, 7, -3]
    squall("get", path, "texts", "-o", out)
    assert np.load(out).tolist() == ["plain", 'says "a, b"', "größer"]
    out.unlink()
    for name in ("sequences", "pairs"):
        done = squall("get", path, name, "-o", out, check=False)
        assert done.code == 2 and f"{name}: its elements are sequences, vlen(" in done.err and ".csv" in done.err and not out.exists()


def test_structures_of_zarr_are_shown_in_either_order_of_bytes(squall, tmp_path):
    values = np.array([(1, 0.5), (-2, 1e300)], [("a", ">i4"), ("b", "<f8")])
    zarr.create_array(tmp_path / "s.zarr", data=values, zarr_format=2, fill_value=None)
    rows = json.loads(squall("get", "--json", tmp_path / "s.zarr", "s.zarr").out)
    assert [row["value"] for row in rows] == plain(values)


def info_lines(squall, path, *options):
    return [" ".join(line.split()) for line in squall("info", path, *options).out.splitlines()]


@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF3_64BIT_OFFSET"])
def test_info_tells_the_range_of_each_dimension(squall, tmp_path, kind):
    write_day(tmp_path / "d.nc", 1, kind=kind)
    with netCDF4.Dataset(tmp_path / "d.nc", "a") as f:
        f.createDimension("one", 1)
        f.createVariable("one", "f8", ("one",))[:] = 0.1
        f.createDimension("month", 3)
        f.createVariable("month", "f8", ("month",))[:] = [15.5, 45, 74.5]
        f["month"].setncatts({"units": "days since 2001-01-01", "calendar": "noleap"})
        f.createDimension("bnds", 2)
        f.createVariable("b", "i1", ("one", "month", "bnds"))
    lines = info_lines(squall, tmp_path / "d.nc")
    lines = lines[lines.index("dimensions:") + 1 :][:6]
    assert lines == [
        "time 4 2020-01-02T00:00:00 to 2020-01-02T18:00:00 by 6h",
        "latitude 3 60 to 55 by -2.5 degrees_north",
        "longitude 5 -5 to 5 by 2.5 degrees_east",
        "one 1 0.1",
        "month 3 2001-01-16T12:00:00 to 2001-03-16T12:00:00 by 708h",
        "bnds 2",
    ]
    told = {d["name"]: d for d in json.loads(squall("info", "--json", tmp_path / "d.nc").out)["dimensions"]}
    assert told["time"] == {
        "name": "time",
        "length": 4,
        "first": "2020-01-02T00:00:00",
        "last": "2020-01-02T18:00:00",
        "spacing": "6h",
        "units": None,
    }
    assert (told["latitude"]["first"], told["latitude"]["last"], told["latitude"]["units"]) == (60, 55, "degrees_north")
    assert told["bnds"]["first"] is None and told["one"]["first"] == 0.1


def test_info_reads_only_the_ends_of_a_long_coordinate(squall, tmp_path):
    values = np.arange(4000) * 0.5
    zarr.create_array(tmp_path / "s.zarr/x", data=values, chunks=(4,), dimension_names=["x"])
    zarr.open_group(tmp_path / "s.zarr", mode="a")
    for chunk in range(1, 999):
        (tmp_path / "s.zarr/x/c" / str(chunk)).write_bytes(b"nonsense")
    assert "x 4000 0 to 1999.5" in info_lines(squall, tmp_path / "s.zarr")


def test_a_damaged_coordinate_costs_its_range_only(squall, tmp_path):
    zarr.create_array(tmp_path / "s.zarr/x", data=np.arange(4.0), dimension_names=["x"])
    zarr.open_group(tmp_path / "s.zarr", mode="a")
    (tmp_path / "s.zarr/x/c/0").write_bytes(b"nonsense")
    done = squall("info", tmp_path / "s.zarr", check=False)
    assert done.code == 3 and done.err.count("x/c/0") == 1 and "* x float64" in done.out
    done = squall("info", "--json", tmp_path / "s.zarr", check=False)
    assert done.code == 3 and "x/c/0" in json.loads(done.out)["problems"][0] and json.loads(done.out)["dimensions"][0]["first"] is None


def test_info_shows_groups_one_by_one(squall, tmp_path):
    with netCDF4.Dataset(tmp_path / "g.nc", "w") as f:
        f.title = "whole"
        f.createDimension("x", 2)
        f.createVariable("top", "i4", ("x",))
        for name, length in (("b", 3), ("a-b", 4), ("a/c", 2), ("a/c/d", 5)):
            g = f.createGroup(name)
            g.label = name
            g.createDimension("x", length)
            g.createVariable("x", "i4", ("x",))[:] = np.arange(length)
            g.createVariable("v", "f4", ("x",))
    lines = info_lines(squall, tmp_path / "g.nc")
    assert lines[0].endswith(": hdf5, 9 arrays, 5 groups, 120 B in memory")
    dimensions = lines[2 : lines.index("arrays (* coordinate of its dimension):")]
    assert sorted(dimensions) == ["a-b/x 4 0 to 3 by 1", "a/c/d/x 5 0 to 4 by 1", "b/x 3 0 to 2 by 1", "x 2"]
    at = [lines.index(f"group {name}") for name in ("a", "a/c", "a/c/d", "a-b", "b")]
    assert at == sorted(at) and lines[at[1] + 1].startswith("* x int32 (x=2)") and lines[at[1] + 2].startswith("v float32 (x=2)")
    assert lines[at[1] + 3] == 'a/c:label = "a/c"' and lines.index(':title = "whole"') < at[0]


def test_info_cuts_long_types_and_lists_no_dimensions_without_names(squall, tmp_path):
    with h5py.File(tmp_path / "t.h5", "w") as f:
        for i in range(400):
            f.create_group(f"run{i:03}/level/{i % 7}")["v"] = np.arange(3)
    lines = info_lines(squall, tmp_path / "t.h5")
    assert sum(line.startswith("v int64") for line in lines) == 400 and "dimensions:" not in lines
    kind = np.dtype([(f"field{i}", "f4") for i in range(20)])
    with h5py.File(tmp_path / "c.h5", "w") as f:
        f["v"] = np.zeros(1, kind)
    assert "..." in squall("info", tmp_path / "c.h5").out and "field19: float32" in squall("info", "-v", tmp_path / "c.h5").out


def write_packed(path):
    with h5py.File(path, "w") as f:
        f.create_dataset("runs/deep/zipped", data=np.zeros((40, 30), "i4"), chunks=(8, 30), compression="gzip", shuffle=True)
        f.create_dataset("runs/whole", data=np.arange(10.0))
        f.create_dataset("nothing", (5,), "f4", chunks=(2,))
        f.create_dataset("texts", data=["a", "bc"], dtype=h5py.string_dtype())
        f.create_dataset("record", data=np.zeros(2, [(f"member{i}", "f8") for i in range(40)]))


def test_ls_tells_what_arrays_take_on_the_disk(squall, tmp_path):
    path = tmp_path / "p.h5"
    write_packed(path)
    rows = {row["name"]: row for row in json.loads(squall("ls", "--json", path).out)}
    with h5py.File(path) as f:
        for name, row in rows.items():
            assert row["stored"] == f[name].id.get_storage_size(), name
            assert row["size"] == (None if name == "texts" else f[name].nbytes)
            wanted = row["size"] and row["stored"] and round(row["size"] / row["stored"], 2)
            assert row["ratio"] == (wanted or None), name
    assert rows["runs/deep/zipped"]["chunks"] == [8, 30] and rows["runs/deep/zipped"]["ratio"] > 10
    assert rows["record"]["type"].endswith("member39: float64}")  # whole for programs, cut for people
    lines = squall("ls", path).out.splitlines()
    assert any("compound{member0: float64, member1: f... " in line for line in lines)
    ends = {line.index(" (") for line in lines}
    assert len(ends) == 1, "shapes begin in one column"
    assert squall("ls", path, "-p", "name", "-w", "stored=0").out == "nothing\n"
    assert "stored" in squall("ls", path, "-p", "size,nonsense", check=False).err


def test_ls_counts_the_bytes_of_a_stores_chunks(squall, tmp_path):
    values = np.random.default_rng(0).normal(size=(20, 30)).astype("f4")
    zarr.create_array(tmp_path / "s.zarr/a", data=values, chunks=(5, 7))
    zarr.open_group(tmp_path / "s.zarr", mode="a")
    (row,) = json.loads(squall("ls", "--json", tmp_path / "s.zarr").out)
    assert row["stored"] == sum(p.stat().st_size for p in (tmp_path / "s.zarr/a/c").rglob("*") if p.is_file())
    assert row["size"] == values.nbytes


def test_ls_of_a_damaged_chunk_index_says_so(squall, tmp_path):
    path = tmp_path / "p.h5"
    with h5py.File(path, "w", libver="earliest") as f:
        f.create_dataset("v", data=np.zeros((40, 30), "i4"), chunks=(8, 30), compression="gzip")
        f["w"] = np.arange(3)
    raw = path.read_bytes()
    path.write_bytes(re.sub(rb"TREE\x01", b"TREX\x01", raw))
    done = squall("ls", path, check=False)
    assert done.code == 3 and "v " in done.out and "w " in done.out and str(path) in done.err


def cut_off(path, size):
    path.write_bytes(path.read_bytes()[:size])
    return path


def damaged(folder):
    """What cannot be opened, and what info, get and bench are to say of it."""
    write_day(folder / "a.nc", 0)
    write_day(folder / "b.nc", 0, kind="NETCDF3_CLASSIC")
    (folder / "empty.nc").touch()
    (folder / "page.nc").write_text("<!DOCTYPE html><html>not found</html>")
    yield folder / "missing.nc", "missing.nc: no such file or folder"
    yield folder / "empty.nc", "empty.nc: the file is empty"
    yield folder / "page.nc", 'page.nc: neither a Zarr store nor an HDF5, NetCDF-3 or GRIB file; it begins with "<!DOCTYP"'
    yield folder / "none*.nc", "none*.nc: no file has such a name"
    yield "/dev/null", "/dev/null: a device or pipe, not a file"
    for size, words in (
        (100, "a.nc: byte 48: the file ends within an object header"),
        (20, "a.nc: byte 0: the file ends within its superblock"),
    ):
        yield cut_off(folder / "a.nc", size), words
    for size, words in ((100, "b.nc: byte "), (5, "b.nc: byte 4: the file ends within its header")):
        yield cut_off(folder / "b.nc", size), words


def test_what_cannot_be_opened_is_told_by_every_command_alike(squall, tmp_path):
    for path, words in damaged(tmp_path):
        for command in (["info", path], ["ls", path], ["get", path, "t2m"], ["bench", path], ["info", "--json", path]):
            done = squall(*command, check=False)
            assert done.code == 1 and done.out == "" and done.err.startswith("squall: "), (command, done.err)
            assert words in done.err and done.err.count("\n") == 1, (command, done.err)


def test_a_file_that_was_cut_off_is_read_as_far_as_it_goes(squall, tmp_path):
    for kind, words in (("NETCDF4", "cut off: it has "), ("NETCDF3_CLASSIC", "but the file ends at ")):
        path = tmp_path / f"{kind}.nc"
        write_day(path, 0, kind=kind)
        cut_off(path, path.stat().st_size - 40)
        for command in ("info", "ls"):
            done = squall(command, path, check=False)
            assert done.code == 3 and "t2m" in done.out and words in done.err, (kind, command, done.err)
        done = squall("get", path, "latitude", check=False)
        assert done.code == 3 and done.out.split() == ["latitude", "60", "57.5", "55"]


def test_verify_decodes_files_and_names_what_fails_and_what_was_never_written(squall, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        v = f.create_dataset("v", (4, 100), "f4", chunks=(1, 100), compression="gzip")
        v[0], v[2] = np.random.default_rng(1).random((2, 100))
        where = v.id.get_chunk_info(1)
    done = squall("verify", tmp_path / "a.h5")
    assert done.out == "".join(
        f"{tmp_path / 'a.h5'}: {what}\n"
        for what in ("v: chunk 1/0: absent, reads as fill", "v: chunk 3/0: absent, reads as fill", "4 chunks decoded: 0 bad, 2 absent")
    )
    data = bytearray((tmp_path / "a.h5").read_bytes())
    data[where.byte_offset + 20 : where.byte_offset + 60] = b"\xff" * 40
    (tmp_path / "bad.h5").write_bytes(data)
    done = squall("verify", tmp_path / "bad.h5", check=False)
    assert done.code == 5
    assert done.out.startswith(f"{tmp_path / 'bad.h5'}: v: chunk 2/0: byte {where.byte_offset}: zlib: ")
    assert "4 chunks decoded: 1 bad, 2 absent" in done.out


@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF3_CLASSIC"])
def test_verify_of_a_pattern_looks_into_every_file(squall, tmp_path, kind):
    for day in (1, 2, 3):
        write_day(tmp_path / f"{day}.nc", day, kind=kind)
    assert " 0 bad, 0 absent" in squall("verify", tmp_path / "*.nc").out
    cut_off(tmp_path / "2.nc", -40)
    done = squall("verify", tmp_path / "*.nc", check=False)
    assert done.code in (1, 5) and str(tmp_path / "2.nc") in done.out + done.err


def test_an_array_that_is_not_there_is_answered_with_what_may_be_meant(squall, tmp_path):
    path = tmp_path / "g.nc"
    write_day(path, 0)
    with netCDF4.Dataset(path, "a") as f:
        f.createGroup("obs").createVariable("wind", "f4", ("time",))[:] = 1
    for name, words in (
        ("T2M", "is t2m meant?"),
        ("t2n", "is t2m meant?"),
        ("wind", "is obs/wind meant?"),
        ("obs", "obs is a group, in which obs/wind lies"),
        ("salinity", "there is time, latitude, longitude, t2m, obs/wind\n"),
    ):
        done = squall("get", path, name, check=False)
        assert done.code == 1 and f"no array {name}; there is time" in done.err and words in done.err, done.err
    assert squall("get", path, "/obs/wind", "-s", "time=0").out == "obs/wind\n1\n"
    whole, group = (json.loads(squall("bench", "--json", path, *more).out)["points"] for more in ([], ["--array", "obs"]))
    assert group == 4 and whole == 4 * 3 * 5 + 4 + 4 + 3 + 5
    done = squall("bench", path, "--array", "ob", check=False)
    assert done.code == 1 and "no array ob" in done.err


def test_what_cannot_be_read_is_named_with_the_reason(squall, tmp_path):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("v", data=np.ones(8, "f4"), chunks=(4,), compression="gzip")
        f["w"] = [b"a", b"bc"]
        f["texts"] = ["a", "bc"]
    raw = path.read_bytes()
    at = raw.index(b"deflate\0") - 8
    path.write_bytes(raw[:at] + (32019).to_bytes(2, "little") + raw[at + 2 :])
    assert "not readable: filter 32019" in squall("info", path).out and "filter 32019" in squall("ls", path, "-p", "name,reason").out
    for command in (["get", path, "v"], ["bench", path, "--array", "v"]):
        done = squall(*command, check=False)
        assert done.code == 1 and "array v cannot be read: filter 32019" in done.err
    assert json.loads(squall("bench", "--json", path).out)["points"] == 4


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can become somebody who may not read a file")
def test_what_may_not_be_read_is_said_to_be_that(squall, tmp_path):
    write_day(tmp_path / "a.nc", 0)
    secret = tmp_path / "secret"
    secret.mkdir()
    write_day(secret / "b.nc", 0)
    for path in [tmp_path, *tmp_path.parents[:2]]:
        path.chmod(0o755)
    (tmp_path / "a.nc").chmod(0o600)
    secret.chmod(0o700)
    binary = os.path.abspath(squall.binary)
    become = ["setpriv", "--reuid", "65534", "--clear-groups"]
    if subprocess.run([*become, binary, "--version"], capture_output=True).returncode:
        pytest.skip("nobody may run the command from where it was built")
    for path in (tmp_path / "a.nc", secret, secret / "b.nc", secret / "*.nc"):
        for command in ("info", "bench", "status"):
            done = subprocess.run([*become, binary, command, path], capture_output=True, text=True)
            assert done.returncode == 1 and "Permission denied" in done.stderr and str(path.parent) in done.stderr, (command, done.stderr)


def test_paths_of_two_kinds_are_listed_as_one_kind(squall, tmp_path, support):
    write_day(tmp_path / "a.nc", 0)
    (tmp_path / "text").write_text("nothing")
    done = squall("ls", tmp_path / "a.nc", tmp_path / "text", tmp_path / "missing.nc", check=False)
    assert done.code == 3 and len(done.out.splitlines()) == 4
    assert "text: neither a Zarr store" in done.err and "missing.nc: no such file or folder" in done.err
    subprocess.run([support / "make_archive", tmp_path / "grib", *"--inits 1 --steps 1 --vars 1 --ny 3 --nx 4".split()], check=True)
    grib = next((tmp_path / "grib").iterdir())
    done = squall("ls", tmp_path / "a.nc", grib, check=False)
    assert done.code == 3 and "a.nc: arrays, which are listed apart from GRIB fields" in done.err and str(grib) in done.out


def test_dimensions_go_by_name_short_name_or_place(squall, tmp_path):
    write_day(tmp_path / "a.nc", 0)
    with h5py.File(tmp_path / "b.h5", "w") as f:
        f["v"] = np.arange(24).reshape(2, 3, 4)
    wanted = squall("get", tmp_path / "a.nc", "t2m", "-s", "time=0,latitude=1,longitude=2").out
    assert squall("get", tmp_path / "a.nc", "t2m", "-s", "time=0,lat=1", "--nearest", "lon=0").out == wanted
    assert squall("get", tmp_path / "a.nc", "t2m", "-s", "0=0,2=2,1=1").out == wanted
    assert squall("get", tmp_path / "b.h5", "v", "-s", "0=1,1=0,2=1").out == "v\n13\n"
    for name in ("3", "-1", "00"):
        assert f"no dimension {name}; it has" in squall("get", tmp_path / "b.h5", "v", "-s", f"{name}=0", check=False).err
