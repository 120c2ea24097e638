"""The command on HDF5 and NetCDF files, patterns and Zarr stores: netCDF4, h5py and cftime write and say what is to be shown."""

import json
import re
import shutil
import subprocess

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
