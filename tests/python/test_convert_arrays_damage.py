"""Sources of HDF5, NetCDF and Zarr with parts that cannot be decoded: what that costs, what is said of it, and what mends it."""

import json
import os

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr
from test_convert_arrays import break_chunk, raw

DAMAGE = "zlib"


def write(path, day, places=4):
    """All in chunks that can be damaged: v(time, x), a grid, a coordinate of it, texts, bounds, the times."""
    with netCDF4.Dataset(path, "w") as ds:
        for name, length in (("time", None), ("x", 40), ("y", 6), ("two", 2)):
            ds.createDimension(name, length)

        def add(name, kind, dims, values, chunks, **attributes):
            v = ds.createVariable(name, kind, dims, zlib=True, chunksizes=chunks)
            v.setncatts(attributes)
            v[...] = values

        times = np.arange(places) + places * day
        add("time", "f8", ("time",), times, (places,), units="hours since 2024-01-01", bounds="time_bnds")
        add("time_bnds", "f8", ("time", "two"), np.stack([times, times + 1], 1), (2, 2))
        add("x", "f4", ("x",), np.arange(40) / 4, (40,), units="m")
        add("orog", "f4", ("y", "x"), np.arange(240).reshape(6, 40), (3, 40), units="m")
        add("names", "S1", ("y", "two"), np.array([[b"a", b"b"]] * 6), (6, 2))
        add("v", "f4", ("time", "x"), 1 + np.arange(places * 40).reshape(places, 40) + 1000 * day, (1, 40))
    return path


@pytest.fixture
def days(tmp_path):
    return [write(tmp_path / f"day{i}.nc", i) for i in range(3)]


@pytest.fixture
def store(tmp_path):
    return tmp_path / "out.zarr"


def run(squall, sources, store, *options, code):
    done = squall("convert", *sources, store, "--chunks", "time=4", *options, check=False)
    assert done.code == code, (done.out, done.err)
    return done


def shown(paths):
    """By xarray, before anything is damaged."""
    whole = [xr.open_dataset(p, decode_cf=False).load() for p in paths]
    return xr.concat(whole, "time", data_vars="minimal", coords="minimal", compat="override")


def same(found, wanted, but=()):
    for name in set(wanted.variables) - set(but):
        values = wanted[name].values
        values = values.astype(str).astype(object).sum(axis=-1) if values.dtype.kind == "S" else values
        np.testing.assert_array_equal(found[name].values, values, err_msg=name)


def mend(path, name, number, whole):
    break_chunk(path, name, number, whole)
    os.utime(path)


@pytest.mark.parametrize("name, number, chunk", [("orog", 1, "1/0"), ("x", 0, "0"), ("names", 0, "0/0")])
@pytest.mark.parametrize("files", [1, 3])
def test_what_is_written_once_costs_only_itself(squall, days, store, name, number, chunk, files):
    if files > 1 and name == "x":
        pytest.skip("a file of many whose grid is unknown is left out as a whole")
    some = days[:files]
    wanted, whole = shown(some), break_chunk(days[0], name, number)
    done = run(squall, some, store, code=3)
    assert done.err.count("day0.nc") == 1 and f"array {name}, chunk {chunk}" in done.err and DAMAGE in done.err, done.err
    assert done.err.count(f"array {name}") == 1 and "day0.nc" not in done.out.replace(str(store), ""), done.out
    same(raw(store), wanted, [name])
    assert not (store / name / "c").exists() and raw(store).chunk_exists.values.all()
    assert f"not read: {name}: array {name}, chunk {chunk}" in squall("status", store).out
    assert list(json.loads(squall("status", store, "--json").out)["not_read"]) == [name]
    bad = squall("verify", store, check=False)
    assert bad.code == 5 and bad.out.count(f"{name} could not be read from the sources") == 1 and ": 1 bad" in bad.out, bad.out

    again = run(squall, some, store, code=0)  # no news
    assert "nothing new" in again.out and squall("verify", store, check=False).code == 5
    mend(days[0], name, number, whole)
    os.utime(days[0], ns=(os.stat(days[0]).st_atime_ns, 10**18))
    before = (store / "x" / "zarr.json").stat().st_mtime_ns
    run(squall, some, store, code=0)
    assert (store / "x" / "zarr.json").stat().st_mtime_ns == before
    same(raw(store), wanted)
    assert squall("verify", store).code == 0 and "not read" not in squall("status", store).out


@pytest.mark.parametrize("name", ["orog", "names", "time_bnds"])
def test_strict_ends_with_an_error(squall, days, store, name):
    break_chunk(days[0], name, 0)
    done = run(squall, days, store, "--strict", code=1)
    assert done.err.count("day0.nc") == 1 and f"array {name}, chunk 0/0" in done.err, done.err


def test_bounds_cost_only_their_places(squall, days, store):
    later = write(days[0].parent / "day3.nc", 3)
    wanted = shown([*days, later])
    whole = break_chunk(days[1], "time_bnds", 1)  # places 6 and 7
    done = run(squall, days, store, code=3)
    assert done.err.count("array time_bnds") == 1 and "day1.nc: array time_bnds, chunk 1/0" in done.err, done.err
    found = raw(store)
    same(found, wanted.isel(time=slice(12)), ["time_bnds"])
    there = np.isin(np.arange(12), [6, 7], invert=True)
    np.testing.assert_array_equal(found.time_bnds.values[there, 0], np.arange(12.0)[there])
    fill = zarr.open_group(store, mode="r")["time_bnds"].fill_value
    assert (found.time_bnds.values[~there] == fill).all()
    assert "not read: time_bnds, places 6-7: array time_bnds, chunk 1/0" in squall("status", store).out
    bad = squall("verify", store, check=False)
    assert bad.code == 5 and "time_bnds, places 6-7 could not be read" in bad.out
    # more files do not make it whole, and what is stored stays
    run(squall, [later], store, code=0)
    assert raw(store).time_bnds.values[:, 0].tolist() == [*range(6), fill, fill, *range(8, 16)]
    assert squall("verify", store, check=False).code == 5
    mend(days[1], "time_bnds", 1, whole)
    run(squall, [*days, later], store, code=0)
    same(raw(store), wanted)
    assert squall("verify", store).code == 0


def test_stored_values_stay_where_their_source_is_damaged_later(squall, days, store):
    run(squall, days, store, code=0)
    break_chunk(days[1], "time_bnds", 0)
    break_chunk(days[0], "orog", 0)
    done = run(squall, days, store, code=3)
    assert "array time_bnds, chunk 0/0" in done.err and "array orog, chunk 0/0" in done.err
    found = raw(store)
    assert found.time_bnds.values[:, 0].tolist() == list(range(12)) and found.orog.values[0, 1] == 1
    assert squall("verify", store).code == 0


@pytest.mark.parametrize("name", ["time", "x"])
def test_a_file_of_many_whose_places_are_unknown_costs_itself(squall, days, store, name):
    wanted = shown([days[0], days[2]])
    break_chunk(days[1], name, 0)
    done = run(squall, days, store, code=3)
    assert done.err.count("day1.nc") == 1 and f"array {name}, chunk 0" in done.err, done.err
    same(raw(store), wanted)
    assert run(squall, days, store, "--strict", code=3)


def test_damage_is_said_once(squall, days, store):
    break_chunk(days[1], "v", 2)
    done = run(squall, days, store, code=3)
    assert done.err.count("day1.nc") == 1 and done.err.count("array v") == 1 and "day1.nc: array v, chunk 2/0: byte" in done.err, done.err
    assert "could not be read: 1, named in the warnings" in done.out and "day1.nc" not in done.out
    report = json.loads(squall("convert", *days, store, "--chunks", "time=4", "--json").out)
    assert [(b["file"], b["known"]) for b in report["bad"]] == [] or report["bad"][0]["known"]
    assert "  day1.nc: array v, chunk 2/0: byte" in squall("status", store).out


def test_what_is_left_out_keeps_its_reason(squall, tmp_path, store):
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", None)
        pair = ds.createCompoundType(np.dtype([("a", "i4"), ("b", "f8")]), "pair")
        ds.createVariable("pairs", pair, ("time",))[:] = np.zeros(3, [("a", "i4"), ("b", "f8")])
    done = squall("convert", path, store, check=False)
    assert done.code == 1 and f"no variable along time is left to convert: {path}: pairs is left out: " in done.err, done.err
    with netCDF4.Dataset(path, "a") as ds:
        ds.createVariable("v", "f4", ("time",))[:] = [1, 2, 3]
    report = json.loads(squall("convert", path, store, "--json", check=False).out)
    assert "pairs is left out: " in report["ignored"][0]["what"]
    assert "pairs is left out: " in squall("status", store).out
