"""Many files as one dataset: numpy's concatenate of what each file holds is the oracle; files that do not agree are named."""

import ctypes
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import squall

DAYS = 5


def write_day(path, day, *, hours=4, units="hours since 2020-01-01", start=None, lat=(10, 20, 30), kind="i8", name="t2m", attrs=()):
    times = np.arange(hours) * 6 + (24 * day if start is None else start)
    squall.create_group(path)
    a = {"units": "K", "long_name": f"of day {day}"} | dict(attrs)
    values = np.random.default_rng(day).normal(size=(hours, 3, 4)).astype("f4")
    for variable, data, dims, attributes in (
        ("time", times.astype(kind), ("time",), {"units": units, "calendar": "standard"}),
        ("lat", np.array(lat, "f8"), ("lat",), {}),
        (name, values, ("time", "lat", "x"), a),
        ("height", np.float32(2), (), {}),
    ):
        squall.create_array(path, variable, data=data, dims=dims, chunks=tuple(min(2, n) for n in data.shape), attributes=attributes)
    return values


@pytest.fixture
def days(tmp_path):
    paths = [tmp_path / f"day{day}.zarr" for day in range(DAYS)]
    return paths, np.concatenate([write_day(path, day) for day, path in enumerate(paths)])


def test_a_variable_is_its_parts_one_behind_the_other(days):
    paths, values = days
    ds = squall.open_many(paths, concat_dim="time")
    t2m = ds["t2m"]
    assert t2m.shape == values.shape and t2m.dims == ("time", "lat", "x") and not ds.problems
    assert np.array_equal(t2m[...], values) and ds["time"][...].tolist() == list(range(0, 24 * DAYS, 6))
    assert ds["time"].attrs["units"] == "hours since 2020-01-01"
    assert ds["height"][...] == 2 and ds["lat"][...].tolist() == [10, 20, 30] and t2m.attrs["long_name"] == "of day 0"
    for key in (np.s_[3:9], np.s_[::3], np.s_[1::5, 1, ::-1], np.s_[19], np.s_[-1, :, 2], np.s_[8:8], np.s_[::-1], np.s_[4:5, 0:1, 3:]):
        assert np.array_equal(t2m[key], values[key]), key
    assert np.array_equal(t2m.oindex[[0, 7, 19, 7], :, [1, 3]], values[[0, 7, 19, 7]][:, :, [1, 3]])
    assert np.array_equal(t2m.vindex[[0, 19, 4], [1, 2, 0], [3, 0, 1]], values[[0, 19, 4], [1, 2, 0], [3, 0, 1]])
    out = np.empty_like(values)
    assert t2m.read(np.s_[...], out=out) is out and np.array_equal(out, values)


def test_the_dimension_is_found_and_files_are_put_in_order(days):
    paths, values = days
    shuffled = [paths[i] for i in (2, 0, 4, 1, 3)]
    ds = squall.open_many(shuffled)
    assert np.array_equal(ds["t2m"][...], values) and (np.diff(ds["time"][...]) > 0).all()
    with pytest.raises(squall.Error, match=r"day0\.zarr: time begins at 0, but .*day2\.zarr ends at 66"):
        squall.open_many(shuffled, order="given")
    given = squall.open_many(shuffled, order="given", drift="first")
    assert np.array_equal(given["t2m"][:4], values[8:12]) and given["time"][0] == 48


def test_a_pattern_is_the_files_that_match(days):
    paths, values = days
    folder = paths[0].parent
    for ds in (squall.open_many(str(folder / "day*.zarr")), squall.open(folder / "day[0-4].zarr")):
        assert np.array_equal(ds["t2m"][...], values)
    with pytest.raises(FileNotFoundError, match="no file has such a name"):
        squall.open_many(str(folder / "night*.zarr"))
    with pytest.raises(ValueError, match="empty"):
        squall.open_many([])


def test_a_new_dimension_comes_first(tmp_path):
    paths = [tmp_path / f"member{i}.zarr" for i in range(3)]
    values = [write_day(path, i, start=0) for i, path in enumerate(paths)]
    ds = squall.open_many(paths, concat_dim="number")
    assert ds["t2m"].shape == (3, 4, 3, 4) and ds["t2m"].dims == ("number", "time", "lat", "x")
    assert np.array_equal(ds["t2m"][...], np.stack(values)) and ds["time"].shape == (4,) and ds["height"].dims == ("number",)
    assert np.array_equal(ds["t2m"][::2, 1, :, 3], np.stack(values)[::2, 1, :, 3])
    with pytest.raises(squall.Error, match="differ along no dimension; say along which"):
        squall.open_many([paths[0], paths[0]])


def test_scalars_become_the_coordinate_of_a_new_dimension(tmp_path):
    for i, hour in enumerate((12, 0, 6)):
        path = tmp_path / f"f{i}.zarr"
        squall.create_group(path)
        squall.create_array(path, "time", data=np.int32(hour), dims=(), attributes={"units": "hours since 2020-01-01"})
        squall.create_array(path, "v", data=np.full((2, 2), hour), dims=("y", "x"))
    ds = squall.open_many(sorted(tmp_path.iterdir()), concat_dim="time")
    assert ds["time"][...].tolist() == [0, 6, 12] and ds["v"][:, 0, 0].tolist() == [0, 6, 12] and ds["time"].dims == ("time",)


@pytest.mark.parametrize(
    ("units", "kind", "expected"),
    [
        ("hours since 2020-01-02", "i8", ([0, 6, 24, 30], "hours since 2020-01-01")),
        ("days since 2020-01-02 00:00:00", "i8", ([0, 6, 24, 168], "hours since 2020-01-01")),
        ("minutes since 2020-01-02T00:00Z", "i8", ([0, 360, 1440, 1446], "minutes since 2020-01-01")),
        ("seconds since 2020-01-02 01:00+01:00", "i4", ([0, 21600, 86400, 86406], "seconds since 2020-01-01")),
        ("days since 2020-01-02", "f8", ([0.0, 6.0, 24.0, 168.0], "hours since 2020-01-01")),
        ("milliseconds since 2100-01-01", "i4", (None, "milliseconds since 2020-01-01")),
        ("hours since 2020-01-02", "i1", ([0, 6, 24, 30], "hours since 2020-01-01")),
        ("days since 2020-02-01", "i1", (None, "hours since 2020-01-01")),
        ("days since 2020-02-01", "u1", (None, "hours since 2020-01-01")),
        ("hours since 2020-01-02", "u8", ([0, 6, 24, 30], "hours since 2020-01-01")),
    ],
)
def test_times_counted_from_different_moments_are_counted_alike(tmp_path, units, kind, expected):
    write_day(tmp_path / "a.zarr", 0, hours=2, kind=kind)
    write_day(tmp_path / "b.zarr", 1, hours=2, kind=kind, units=units, start=0)
    time = squall.open_many([tmp_path / "a.zarr", tmp_path / "b.zarr"], "time")["time"]
    numbers, told = expected
    assert time.attrs["units"] == told and time.dtype == (kind if numbers else "i8")
    import cftime

    moments = [
        cftime.num2date(np.arange(2) * 6, "hours since 2020-01-01"),
        cftime.num2date(np.arange(2) * 6, units.replace("T", " ").replace("Z", "")),
    ]
    assert cftime.num2date(time[...], time.attrs["units"]).tolist() == np.concatenate(moments).tolist()
    assert numbers is None or time[...].tolist() == numbers


def test_unsigned_times_before_the_first_files_epoch_become_signed(tmp_path):
    write_day(tmp_path / "a.zarr", 0, hours=2, kind="u8")
    write_day(tmp_path / "b.zarr", 1, hours=2, kind="u8", units="hours since 2019-12-31", start=0)
    time = squall.open_many([tmp_path / "a.zarr", tmp_path / "b.zarr"], "time")["time"]
    assert time.dtype == "i8" and time[...].tolist() == [-24, -18, 0, 6]


@pytest.mark.parametrize("calendar", ["standard", "gregorian", "proleptic_gregorian", "julian", "noleap", "365_day", "all_leap", "360_day"])
def test_every_calendar_has_its_own_days(tmp_path, calendar):
    import cftime

    moments = ["1999-02-27", "2000-03-01", "0850-12-30", "1582-10-04", "1582-10-15", "2100-02-28 12:30:00", "1600-02-29", "1900-03-01"]
    if calendar in ("noleap", "365_day"):
        moments.remove("1600-02-29")
    for i, moment in enumerate(moments):
        path = tmp_path / f"{i}.zarr"
        squall.create_group(path)
        squall.create_array(
            path, "time", data=np.array([i], "i8"), dims=("time",), attributes={"units": f"days since {moment}", "calendar": calendar}
        )
    ds = squall.open_many(sorted(tmp_path.iterdir()), "time", order="given", drift="first")
    wanted = [cftime.num2date(i, f"days since {moment}", calendar) for i, moment in enumerate(moments)]
    found = cftime.num2date(ds["time"][...], ds["time"].attrs["units"], calendar)
    assert found.tolist() == wanted


def test_times_that_cannot_be_told_together_are_refused(tmp_path):
    write_day(tmp_path / "a.zarr", 0)
    for units, calendar, words in (
        ("months since 2020-01-01", "standard", "months since"),
        ("hours since 2020-01-02", "360_day", "calendar 360_day"),
        ("hours since the flood", "standard", "the flood"),
        ("hours since 2001-02-29", "standard", "2001-02-29.* a date which that calendar has"),
    ):
        write_day(tmp_path / "b.zarr", 1, units=units)
        squall.open_array(tmp_path / "b.zarr" / "time", mode="r+").attrs["calendar"] = calendar
        with pytest.raises(squall.Error, match=words) as failure:
            squall.open_many([tmp_path / "a.zarr", tmp_path / "b.zarr"], "time", drift="first")
        assert "b.zarr" in str(failure.value) and "a.zarr" in str(failure.value) and failure.value.status == squall.Status.EREFUSED
        subprocess.run(["rm", "-r", tmp_path / "b.zarr"], check=True)


DRIFTS = {
    "units": ({"attrs": {"units": "degC"}}, r'b\.zarr: units of t2m is "degC", in .*a\.zarr it is "K"'),
    "scale": ({"attrs": {"scale_factor": 0.5}}, r"b\.zarr: scale_factor of t2m is 0\.5, in .*a\.zarr it is none"),
    "grid": ({"lat": (10, 20, 31)}, r"b\.zarr: the values of lat are others than in .*a\.zarr"),
    "overlap": ({"start": 17}, r"b\.zarr: time begins at 17, but .*a\.zarr ends at 18: the files overlap"),
    "missing": ({"name": "t2m_old"}, r"b\.zarr: there is no t2m, in .*a\.zarr there is"),
}


@pytest.mark.parametrize("what", DRIFTS)
def test_files_that_do_not_agree_are_named(tmp_path, what):
    changes, words = DRIFTS[what]
    values = write_day(tmp_path / "a.zarr", 0)
    write_day(tmp_path / "b.zarr", 1, **changes)
    paths = [tmp_path / "a.zarr", tmp_path / "b.zarr"]
    with pytest.raises(squall.Error, match=words) as failure:
        squall.open_many(paths, "time")
    assert 'drift "warn"' in str(failure.value)
    with pytest.warns(UserWarning) as told:
        ds = squall.open_many(paths, "time", drift="warn")
    assert any(re.search(words, line) for line in ds.problems) and [str(w.message) for w in told] == list(ds.problems)
    first = squall.open_many(paths, "time", drift="first")
    assert not first.problems and first["t2m"].shape == (8, 3, 4) and first["t2m"].attrs["units"] == "K"
    assert np.array_equal(np.sort(first["t2m"][:4].ravel()), np.sort(values.ravel()))
    if what == "missing":
        assert (first["t2m"][4:] == first["t2m"].fill_value).all() and "t2m_old" not in first


def test_types_and_shapes_must_agree(tmp_path):
    write_day(tmp_path / "a.zarr", 0)
    write_day(tmp_path / "b.zarr", 1)
    squall.create_array(tmp_path / "b.zarr", "t2m", data=np.zeros((4, 3, 4)), dims=("time", "lat", "x"), overwrite=True)
    write_day(tmp_path / "c.zarr", 2, lat=(1, 2))
    for name, words in (("b", r"b\.zarr: t2m is float64, in .*a\.zarr it is float32"), ("c", r"lat has the shape \(lat=2\)")):
        with pytest.raises(squall.Error, match=words) as failure:
            squall.open_many([tmp_path / "a.zarr", tmp_path / f"{name}.zarr"], "time", drift="first")
        assert "cannot be read as one array" in str(failure.value)


@pytest.mark.parametrize("kind", ["f2", "?"])
def test_units_hold_where_times_are_not_counted(tmp_path, kind):
    write_day(tmp_path / "a.zarr", 0, kind=kind)
    write_day(tmp_path / "b.zarr", 1, kind=kind, units="days since 1970-01-01")
    with pytest.raises(squall.Error, match=r'b\.zarr: units of time is "days since 1970-01-01", in .*a\.zarr it is "hours since'):
        squall.open_many([tmp_path / "a.zarr", tmp_path / "b.zarr"], "time")


def write_bounds(path, units, times, bounds, *, kind="f8", name="bounds", calendar="standard", attributes=()):
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", len(times))
        file.createDimension("nv", 2)
        time = file.createVariable("time", kind, ("time",))
        time.setncatts({"units": units, "calendar": calendar, name: "time_bnds"})
        time[:] = times
        bnds = file.createVariable("time_bnds", kind, ("time", "nv"))
        bnds.set_auto_maskandscale(False)
        bnds.setncatts(dict(attributes))
        bnds[:] = bounds
        file.createVariable("v", "f4", ("time",))[:] = times


def moments_of(path, name):
    """What the file says by netCDF4 and cftime: bounds are counted as the times."""
    import cftime
    import netCDF4

    with netCDF4.Dataset(path) as file:
        return cftime.num2date(np.asarray(file[name][...]), file["time"].units, file["time"].calendar).tolist()


@pytest.mark.parametrize("name", ["bounds", "climatology"])
@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "i4", "i1"])
@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ("hours since 2000-01-01 02:00", [[0, 1], [1, 2], [2, 3], [3, 4]]),
        ("minutes since 2000-01-01 02:00", [[0, 60], [60, 120], [120, 121], [121, 122]]),
        ("days since 2000-01-01", [[0, 1], [1, 2], [0, 24], [24, 48]]),
    ],
)
def test_bounds_of_times_are_counted_as_the_times(tmp_path, units, expected, kind, name):
    paths = [tmp_path / "a.nc", tmp_path / "b.nc"]
    write_bounds(paths[0], "hours since 2000-01-01", [0, 1], [[0, 1], [1, 2]], kind=kind, name=name)
    write_bounds(paths[1], units, [0, 1], [[0, 1], [1, 2]], kind=kind, name=name)
    ds = squall.open_many(paths, "time", order="given", drift="first")
    import cftime

    bounds = ds["time_bnds"]
    assert bounds.dims == ("time", "nv") and not ds.problems
    told = cftime.num2date(bounds[...], ds["time"].attrs["units"], "standard").tolist()
    assert told == moments_of(paths[0], "time_bnds") + moments_of(paths[1], "time_bnds")
    assert cftime.num2date(ds["time"][...], ds["time"].attrs["units"]).tolist() == moments_of(paths[0], "time") + moments_of(
        paths[1], "time"
    )
    assert bounds[...].tolist() == expected and bounds[1:3, 1].tolist() == [row[1] for row in expected[1:3]]


def test_bounds_follow_the_order_of_their_times_and_the_index(tmp_path):
    paths = [tmp_path / f"{i:02}.nc" for i in range(20)]
    for i, path in enumerate(paths):
        write_bounds(path, f"days since 2000-01-{i + 1:02}", [0], [[0, 1]])
    time.sleep(2.1)  # an index holds files that were left alone for so long
    before = squall.set_options(cache_folder=tmp_path / "cache")
    try:
        for indexes in (0, 1):
            assert len(list(tmp_path.glob("cache/*.index"))) == indexes
            ds = squall.open_many(paths[:1] + paths[:0:-1], "time")
            assert ds["time"][...].tolist() == list(range(20)) and ds["time_bnds"][...].tolist() == [[i, i + 1] for i in range(20)]
    finally:
        squall.set_options(**before)


def test_bounds_of_scalar_times_are_counted_alike(tmp_path):
    for i in range(2):
        path = tmp_path / f"{i}.zarr"
        squall.create_group(path)
        attributes = {"units": f"hours since 2000-01-01 0{2 * i}:00", "bounds": "time_bnds"}
        squall.create_array(path, "time", data=np.int32(1), dims=(), attributes=attributes)
        squall.create_array(path, "time_bnds", data=np.array([0, 1], "i4"), dims=("nv",))
    ds = squall.open_many([tmp_path / "0.zarr", tmp_path / "1.zarr"], "time")
    assert (
        ds["time"][...].tolist() == [1, 3] and ds["time_bnds"][...].tolist() == [[0, 1], [2, 3]] and ds["time_bnds"].dims == ("time", "nv")
    )


@pytest.mark.parametrize(
    ("bounds", "attributes", "words"),
    [
        ([[0, 0.5], [1, 2]], {}, r'b\.nc: time_bnds counts "nanoseconds since 2000-01-02" and cannot be told exactly'),
        ([[0, 1], [1, 2]], {"scale_factor": 2.0}, r"a\.nc: time_bnds, the bounds of time, cannot be counted"),
    ],
)
def test_bounds_that_cannot_be_told_are_left_out(tmp_path, bounds, attributes, words):
    paths = [tmp_path / "a.nc", tmp_path / "b.nc"]
    write_bounds(paths[0], "nanoseconds since 2000-01-01", [0, 1], [[0, 1], [1, 2]], attributes=attributes)
    write_bounds(
        paths[1], "nanoseconds since 2000-01-02", [0, 1], np.array(bounds) + (2.0**-30 if not attributes else 0), attributes=attributes
    )
    with pytest.raises(squall.Error, match=words):
        squall.open_many(paths, "time")
    with pytest.warns(UserWarning, match=words):
        ds = squall.open_many(paths, "time", drift="warn")
    assert "time_bnds" not in ds and ds["time"][...].tolist() == [0, 1, 86400e9, 86400e9 + 1]
    assert "time_bnds" not in squall.open_many(paths, "time", drift="first")


def test_bounds_of_times_counted_alike_are_read_as_they_are(tmp_path):
    paths = [tmp_path / "a.nc", tmp_path / "b.nc"]
    for i, path in enumerate(paths):
        write_bounds(path, "hours since 2000-01-01", [2 * i, 2 * i + 1], [[2 * i, 2 * i + 1], [2 * i + 1, 2 * i + 2]])
    assert squall.open_many(paths, "time")["time_bnds"][...].tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]


def test_enumerations_of_other_names_are_told(tmp_path):
    netCDF4 = pytest.importorskip("netCDF4")
    for name, members in (("a", {"dry": 0, "wet": 1}), ("b", {"wet": 0, "dry": 1}), ("c", {"wet": 1, "dry": 0})):
        with netCDF4.Dataset(tmp_path / f"{name}.nc", "w") as file:
            file.createDimension("time", 2)
            kind = file.createEnumType("u1", "sky_t", members)
            file.createVariable("sky", kind, ("time",))[:] = [0, 1]
    with netCDF4.Dataset(tmp_path / "d.nc", "w") as file:
        file.createDimension("time", 2)
        file.createVariable("sky", "u1", ("time",), fill_value=False)[:] = [0, 1]
    a, b, c, d = (tmp_path / f"{name}.nc" for name in "abcd")
    with pytest.raises(squall.Error, match=r'b\.nc: the enumeration of sky is .*"wet": ?0.*, in .*a\.nc it is .*"dry": ?0'):
        squall.open_many([a, b], "time")
    with pytest.raises(squall.Error, match=r"d\.nc: the enumeration of sky is none, in .*a\.nc it is"):
        squall.open_many([a, d], "time")
    assert squall.open_many([a, c], "time")["sky"][...].tolist() == [0, 1, 0, 1]


def test_a_count_that_is_too_great_names_both_files(tmp_path):
    write_day(tmp_path / "a.zarr", 0, units="days since 1970-01-01", start=2**61)
    write_day(tmp_path / "b.zarr", 0, units="seconds since 1970-01-01")
    with pytest.raises(squall.Error, match=r'a\.zarr: time counts "days .*together with .*b\.zarr, "seconds'):
        squall.open_many([tmp_path / "a.zarr", tmp_path / "b.zarr"], "time")


def test_sequences_of_other_elements_are_not_joined(tmp_path):
    h5py = pytest.importorskip("h5py")
    for name, kind in (("a", "f4"), ("b", "f8")):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file.create_dataset("v", (1,), h5py.vlen_dtype(kind))[0] = [1, 2]
    with pytest.raises(squall.Error, match=r"b\.h5: v holds sequences of <f8, in .*a\.h5 of <f4: they cannot be read as one array"):
        squall.open_many([tmp_path / "a.h5", tmp_path / "b.h5"], "n", drift="first")


def test_a_matrix_that_has_the_dimension_twice_is_not_cut(tmp_path):
    for name, length in (("a", 3), ("b", 4)):
        squall.create_group(tmp_path / f"{name}.zarr")
        squall.create_array(tmp_path / f"{name}.zarr", "cov", data=np.eye(length), dims=("time", "time"))
    with pytest.raises(squall.Error, match=r"cov has the shape \(time=4, time=4\)"):
        squall.open_many([tmp_path / "a.zarr", tmp_path / "b.zarr"], "time", drift="first")


@pytest.mark.parametrize("length", [2**40, 2**60])
def test_a_coordinate_may_not_claim_more_than_the_memory(tmp_path, length):
    for name in "ab":
        squall.create_group(tmp_path / f"{name}.zarr")
        squall.create_array(tmp_path / f"{name}.zarr", "time", shape=(length,), dtype="f8", chunks=(1000,), dims=("time",))
    with pytest.raises(MemoryError, match=rf"[ab]\.zarr: time has {length} values"):
        squall.open_many([tmp_path / "a.zarr", tmp_path / "b.zarr"], "time")


def test_a_damaged_chunk_names_its_file(days):
    paths, _ = days
    (paths[3] / "t2m" / "c" / "0" / "0" / "0").write_bytes(b"x")
    t2m = squall.open_many(paths)["t2m"]
    assert t2m[:12].shape == (12, 3, 4)
    with pytest.raises(squall.Error, match=r"array t2m: .*day3\.zarr: array t2m, chunk 0/0/0"):
        t2m[...]


def test_texts_are_joined_and_freed(tmp_path):
    for i in range(3):
        squall.create_group(tmp_path / f"{i}.zarr")
        squall.create_array(tmp_path / f"{i}.zarr", "name", data=np.array([f"a{i}", f"b{i}"], "T"), dims=("station",))
    ds = squall.open_many(sorted(tmp_path.iterdir()), "station")
    assert ds["name"][...].tolist() == ["a0", "b0", "a1", "b1", "a2", "b2"] and ds["name"][4:2:-1].tolist() == ["a2", "b1"]


def test_it_pickles_small_and_refuses_other_files(days):
    paths, values = days
    ds = squall.open_many(paths, "time")
    for thing in (ds, ds["t2m"]):
        assert len(pickle.dumps(thing)) < 1000 + 16 * DAYS
    again = pickle.loads(pickle.dumps(ds["t2m"]))
    assert np.array_equal(again[5:9], values[5:9])
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer)[5:9].sum())"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(ds["t2m"]), capture_output=True, env=env, check=True)
    assert np.float32(done.stdout) == pytest.approx(values[5:9].sum(), rel=1e-5)


class Allocated(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


def allocated_bytes():
    """Of the C library, in all threads: counted, where the size of the process only tells of pages."""
    count = ctypes.CDLL(None).mallinfo2
    count.restype = Allocated
    found = count()
    return found.uordblks + found.hblkhd


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="no mallinfo2 in this C library")
def test_an_open_file_takes_little_memory(tmp_path):
    netCDF4 = pytest.importorskip("netCDF4")
    files, wanted_bytes = 200, 10 << 10
    with netCDF4.Dataset(tmp_path / "0000.nc", "w") as nc:
        nc.title = "of which each file has the same " * 20
        for name, length in (("time", None), ("lat", 18), ("lon", 36)):
            nc.createDimension(name, length)
            nc.createVariable(name, "f8", (name,))[:] = np.arange(length or 4)
        for name in ("t2m", "u10", "v10", "msl"):
            v = nc.createVariable(name, "f4", ("time", "lat", "lon"), zlib=True, shuffle=True, chunksizes=(1, 18, 36))
            v.setncatts({"units": "K", "long_name": name * 10, "standard_name": name * 10, "cell_methods": "time: mean"})
            v[:] = np.ones((4, 18, 36))
    paths = [tmp_path / "0000.nc"]
    for i in range(1, files + 1):
        paths.append(shutil.copy(paths[0], tmp_path / f"{i:04}.nc"))
    squall.open_many(paths[:2], "file")
    before = allocated_bytes()
    ds = squall.open_many(paths, "file")
    each = (allocated_bytes() - before) / files
    assert ds["t2m"].shape == (files + 1, 4, 18, 36) and 0 < each <= wanted_bytes


@pytest.mark.parametrize("when", ["before pickling", "after pickling"])
@pytest.mark.parametrize("how", ["replaced", "rewritten", "gone"])
def test_a_pickle_names_the_file_that_is_another_than_was_opened(tmp_path, when, how):
    h5py = pytest.importorskip("h5py")
    paths = [tmp_path / f"{i}.h5" for i in range(3)]
    for i, path in enumerate(paths):
        with h5py.File(path, "w") as f:
            f["v"] = np.full(4, i)
    array = squall.open_many(paths, "file")["v"]
    packed = pickle.dumps(array) if when == "after pickling" else None
    if how == "gone":
        paths[1].unlink()
    else:
        with h5py.File(tmp_path / "new", "w") as f:
            f["v"] = np.full(4, 7)
        if how == "replaced":
            os.replace(tmp_path / "new", paths[1])
        else:
            paths[1].write_bytes((tmp_path / "new").read_bytes())
    packed = packed or pickle.dumps(array)
    with pytest.raises((squall.Error, FileNotFoundError), match=r"1\.h5") as failure:
        pickle.loads(packed)
    assert how == "gone" or "1.h5 changed since it was opened" in str(failure.value)


def test_arguments_are_checked(days):
    paths, _ = days
    for wrong in ({"order": "time"}, {"drift": "ignore"}):
        with pytest.raises(ValueError, match="possible are"):
            squall.open_many(paths, **wrong)
    with pytest.raises(FileNotFoundError):
        squall.open_many([*paths, paths[0].parent / "none.zarr"], "time")


def test_grib_files_make_one_hypercube(shared):
    path = shared / "data" / "grib" / "era5-levels-members.grib"
    assert squall.open_many([path]).format == "grib"


def test_the_command_takes_patterns(days):
    paths, values = days
    command = os.environ.get("SQUALL", "build/squall")
    done = subprocess.run([command, "info", str(paths[0].parent / "day*.zarr")], capture_output=True, text=True)
    assert done.returncode == 0 and "t2m" in done.stdout and "time=20" in done.stdout.replace(" ", ""), done


@pytest.mark.parametrize(("first", "second", "wanted"), [("i4", "i8", "i8"), ("f8", "i8", "f8"), ("i2", "f4", "f8"), ("u4", "i4", "i8")])
def test_times_of_different_types_are_told_in_one(tmp_path, first, second, wanted):
    write_day(tmp_path / "a.zarr", 0, kind=first)
    write_day(tmp_path / "b.zarr", 1, kind=second)
    ds = squall.open_many([tmp_path / "b.zarr", tmp_path / "a.zarr"])
    assert ds["time"].dtype == wanted and ds["time"][...].tolist() == list(range(0, 48, 6))


def test_a_nan_is_the_same_as_a_nan(tmp_path):
    for i in range(2):
        write_day(tmp_path / f"{i}.zarr", i, attrs={"comment": f"{i}"})
        attrs = squall.open_array(tmp_path / f"{i}.zarr" / "t2m", mode="r+").attrs
        attrs["missing_value"] = float("nan")
    ds = squall.open_many(sorted(tmp_path.iterdir()))
    assert np.isnan(ds["t2m"].attrs["missing_value"])


def test_a_dimension_that_no_file_has_is_told_where_files_differ(days):
    paths, _ = days
    words = "no file has a dimension tiem, so each is one place of a new one; .*the values of time are others"
    with pytest.raises(squall.Error, match=words):
        squall.open_many(paths, concat_dim="tiem")


def test_a_list_of_files_is_told_as_such(days):
    paths, _ = days
    assert f"{paths[0]} and 4 more" in repr(squall.open_many(paths))


def test_the_command_prints_what_has_no_dimension(days):
    paths, _ = days
    command = os.environ.get("SQUALL", "build/squall")
    done = subprocess.run([command, "get", str(paths[0].parent / "day*.zarr"), "height"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split() == ["height", "2"], done


def test_the_command_measures_patterns(days):
    paths, values = days
    command = os.environ.get("SQUALL", "build/squall")
    done = subprocess.run([command, "bench", "--json", str(paths[0].parent / "day*.zarr")], capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)["points"] >= values.size, done


def test_a_scalar_is_the_first_files(tmp_path):
    netCDF4 = pytest.importorskip("netCDF4")
    for i in range(3):
        with netCDF4.Dataset(tmp_path / f"{i}.nc", "w") as file:
            file.createDimension("time", 1)
            file.createVariable("time", "i4", "time")[:] = i
            file.createVariable("number", "i4")[...] = 42
            file.createVariable("text", str)[...] = "a text"
    ds = squall.open_many(str(tmp_path / "*.nc"))
    assert ds["number"][()] == 42 and ds["text"][()] == "a text"
