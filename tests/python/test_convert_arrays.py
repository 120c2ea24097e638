"""squall convert of HDF5, NetCDF and Zarr: what comes out is what xarray shows of the sources, joined by xarray.

netCDF4, h5py and zarr-python make the sources. A store is opened without an argument and without a warning.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import warnings

import h5py
import netCDF4
import numpy as np
import pytest
import small_archive
import small_files as small
import xarray as xr
import zarr
from test_convert import files, opened, peak_bytes, times


def raw(store):
    """What is stored, attributes and all; with no argument that a user would have to know, and no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return xr.open_zarr(store, decode_cf=False).load()


def report_of(squall, *args, code=0):
    done = squall("convert", *args, "--json", "--quiet", check=False)
    assert done.code == code, done.err
    return json.loads(done.out)


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    return small.make(tmp_path_factory.mktemp("days"))


@pytest.fixture
def store(tmp_path):
    return tmp_path / "out.zarr"


# ---- values, types, attributes -----------------------------------------------------------------------------------------------------------

FORMATS = ["NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]


@pytest.mark.parametrize("format", FORMATS)
def test_everything_is_as_xarray_shows_the_files(squall, tmp_path, store, format):
    paths = small.make(tmp_path / "in", 3, format)
    squall("convert", tmp_path / "in" / "*.nc", store)
    small.same_dataset(raw(store), small.shown(paths))
    ds = opened(store)
    xr.testing.assert_equal(ds.drop_vars(small.OURS), small.shown(paths, decode_cf=None))
    assert ds.chunk_exists.values.tolist() == [True] * 12 and ds.field_count.values.tolist() == [len(small.FIELDS)] * 12
    assert ds.chunk_exists.dims == ds.field_count.dims == ("time",)
    assert ds.chunk_exists.dtype == bool and ds.field_count.dtype == np.int32
    for name, array in zarr.open_group(store, mode="r").arrays():
        if name not in small.OURS:
            small.same_bits(np.asarray(array[...]), small.shown(paths)[name].values, name)


@pytest.mark.parametrize("version", [2, 3])
def test_stores_that_xarray_wrote_convert_too(squall, days, tmp_path, store, version):
    """In version 2 the fill value of an array is what xarray shows as _FillValue, in version 3 an attribute is."""
    paths = [tmp_path / f"day{i}.zarr" for i in range(2)]
    for path, day in zip(paths, days, strict=False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            xr.open_dataset(day, decode_cf=False).to_zarr(path, zarr_format=version)
    squall("convert", *paths, store)
    small.same_dataset(raw(store), small.shown(paths))
    xr.testing.assert_equal(opened(store).drop_vars(small.OURS), small.shown(paths, decode_cf=None))


@pytest.mark.parametrize(
    "options",
    [
        ["--chunks", "time=1"],
        ["--chunks", "time=all"],
        ["--chunks", "time=7,lat=4,lon=3"],
        ["--chunks", "lat=1"],
        ["--codec", "zstd:level=3"],
        ["--codec", "none", "--chunks", "time=5"],
        ["--codec", "gzip:level=1", "--chunks", "lon=9"],
    ],
)
def test_values_are_the_same_in_any_layout(squall, days, store, options):
    squall("convert", *days, store, *options)
    small.same_dataset(raw(store), small.shown(days))
    assert squall("verify", store).code == 0
    assert opened(store).chunk_exists.values.all()
    if "--chunks" in options:
        wanted = dict(part.split("=") for part in options[options.index("--chunks") + 1].split(","))
        group = zarr.open_group(store, mode="r")
        for name in ("t", "count"):
            for dim, chunk, length in zip(("time", "lat", "lon"), group[name].chunks, group[name].shape, strict=True):
                assert dim not in wanted or chunk == (length if wanted[dim] == "all" else int(wanted[dim])), (name, dim)


def test_missing_is_what_was_never_written(squall, days, store):
    squall("convert", *days, store)
    group, sources = zarr.open_group(store, mode="r"), small.shown(days)
    for name in ("t", "p", "series"):
        fill = sources[name].attrs["_FillValue"]
        np.testing.assert_array_equal(group[name].fill_value, fill)
        assert group[name].dtype == sources[name].dtype


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_the_same_bytes_for_any_number_of_threads(squall, days, tmp_path, threads):
    for n in (1, threads):
        squall("convert", *days, tmp_path / f"{n}.zarr", "--threads", n, "--chunks", "time=3,lat=2,lon=7")
    first = files(tmp_path / "1.zarr")
    assert len(first) > 100 and files(tmp_path / f"{threads}.zarr") == first


def test_the_store_is_consolidated_and_flags_are_cut_as_the_data(squall, days, store):
    squall("convert", *days, store)
    metadata = json.loads((store / "zarr.json").read_text())["consolidated_metadata"]["metadata"]
    assert set(metadata) == set(small.shown(days).variables) | small.OURS
    for flag in small.OURS:
        chunks = metadata[flag]["chunk_grid"]["configuration"]["chunk_shape"]
        assert chunks == metadata["t"]["chunk_grid"]["configuration"]["chunk_shape"][:1]
    for name, array in metadata.items():
        assert json.loads((store / name / "zarr.json").read_text()) == array


def test_select_rename_and_dtype(squall, days, store):
    """Variables are selected among those that grow; what has not the append dimension is small, and may be their coordinate."""
    squall("convert", *days, store, "--select", "name=t", "--select", "name=p|count", "--rename", "t=t2m", "--dtype", "t2m=float64")
    found, wanted = raw(store), small.shown(days)
    assert set(found.variables) - small.OURS == {"t2m", "p", "count", "orog", "crs", "time", "lat", "lon"}
    small.same_bits(found.p.values, wanted.p.values)
    t = wanted.t.values.astype("f8")
    np.testing.assert_array_equal(
        found.t2m.values, np.where(t == small.FILL, np.nan, t)
    )  # what is cast says NaN where something is missing
    assert found.t2m.dtype == np.float64 and "_FillValue" not in found.t2m.attrs and found.t2m.attrs["units"] == "K"
    np.testing.assert_array_equal(opened(store).t2m, small.shown(days, decode_cf=None).t)
    assert found.field_count.values.tolist() == [3] * 20


def test_a_cast_that_overflows_is_refused_or_as_chosen(squall, tmp_path, store):
    paths = [tmp_path / f"{i}.nc" for i in range(2)]
    values = np.array([[1, 1000], [1, 1e6]], "f4")
    for i, path in enumerate(paths):
        xr.Dataset({"v": (("time", "x"), values[i : i + 1]), "time": [i]}).to_netcdf(path, unlimited_dims="time")
    done = squall("convert", *paths, store, "--dtype", "float16", check=False)
    assert done.code == 1 and "v: 1000000" in done.err and "1.nc" in done.err and "--on-overflow" in done.err
    for how, last in (("inf", np.inf), ("clip", 65504)):
        squall("convert", *paths, store, "--dtype", "float16", "--on-overflow", how, "--overwrite")
        assert raw(store).v.dtype == np.float16 and raw(store).v.values.tolist() == [[1, 1000], [1, last]]


# ---- types -------------------------------------------------------------------------------------------------------------------------------


def numbers(kind, n, width, count=6):
    kind = np.dtype(kind)
    rng = np.random.default_rng(n)
    if kind.kind == "b":
        return rng.integers(0, 2, (count, width)).astype(bool)
    if kind.kind in "iu":
        return rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, (count, width), kind.newbyteorder("="), endpoint=True).astype(kind)
    values = rng.standard_normal((count, width)).astype(kind.newbyteorder("="))
    values[0, :4] = [np.nan, np.inf, -np.inf, -0.0]
    return values.astype(kind)


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ">f4", ">i2", "?"])
@pytest.mark.parametrize("width", [4, 40])
def test_numbers_of_every_type(squall, tmp_path, store, kind, width):
    for i in range(2):
        with h5py.File(tmp_path / f"{i}.h5", "w") as f:
            f["time"] = np.arange(6) + 6 * i
            f["time"].make_scale()
            f.create_dataset("v", data=numbers(kind, i, width), chunks=(4, 3), compression="gzip", maxshape=(None, width))
            f["v"].dims[0].attach_scale(f["time"])
    squall("convert", tmp_path / "*.h5", store)
    wanted = np.concatenate([numbers(kind, i, width) for i in range(2)])
    found = zarr.open_array(store / "v", mode="r")
    assert found.dtype == wanted.dtype.newbyteorder("=")
    small.same_bits(found[...], wanted.astype(wanted.dtype.newbyteorder("=")))
    assert raw(store).v.dims[0] == "time"


def test_enum_is_its_numbers(squall, tmp_path, store):
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as d:
        d.createDimension("time", None)
        d.createVariable("time", "i4", ("time",))[:] = np.arange(5)
        kinds = d.createEnumType("u1", "kinds", {"clear": 0, "cloudy": 1, "lost": 255})
        d.createVariable("sky", kinds, ("time",), fill_value=255)[:] = np.array([0, 1, 1, 255, 0], "u1")
    squall("convert", tmp_path / "a.nc", store)
    assert raw(store).sky.dtype == np.uint8 and raw(store).sky.values.tolist() == [0, 1, 1, 255, 0]


def test_texts_stay_texts(squall, tmp_path, store):
    names = [["Zürich", "", "Ω"], ["a", "naïve", "0\n1"]]
    for i in range(2):
        with netCDF4.Dataset(tmp_path / f"{i}.nc", "w") as d:
            d.createDimension("time", None)
            d.createDimension("station", 3)
            d.createVariable("time", "i4", ("time",))[:] = [i]
            d.createVariable("height", "f4", ("time", "station"))[:] = [range(3)]
            d.createVariable("remark", str, ("time", "station"))[:] = np.array([names[i]], object)
            d.createVariable("name", str, ("station",))[:] = np.array(names[0], object)
    squall("convert", tmp_path / "0.nc", tmp_path / "1.nc", store)
    ds = opened(store)
    assert ds.remark.values.tolist() == names and ds.name.values.tolist() == names[0]
    assert zarr.open_group(store, mode="r")["remark"][...].tolist() == names


@pytest.mark.parametrize("format", ["NETCDF4", "NETCDF3_CLASSIC"])
def test_characters_read_as_texts(squall, tmp_path, store, format):
    names = [["Uccle", "De Bilt"], ["Payerne", "Kew"]]
    for i in range(2):
        with netCDF4.Dataset(tmp_path / f"{i}.nc", "w", format=format) as d:
            for dim, length in (("time", None), ("station", 2), ("letters", 8)):
                d.createDimension(dim, length)
            d.createVariable("time", "i4", ("time",))[:] = [i]
            d.createVariable("height", "f4", ("time", "station"))[:] = [range(2)]
            for name, dims, texts in (("seen", ("time", "station", "letters"), [names[i]]), ("name", ("station", "letters"), names[0])):
                d.createVariable(name, "S1", dims)[:] = netCDF4.stringtochar(np.array(texts, "S8"))
    squall("convert", tmp_path / "0.nc", tmp_path / "1.nc", store)
    ds = opened(store)
    for name, wanted in (("seen", names), ("name", names[0])):
        assert ds[name].values.tolist() == wanted and ds[name].dims[-1] == "station"


def test_what_cannot_be_stored_is_named_and_left_out(squall, tmp_path, store):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.arange(4.0)
        f["records"] = np.array([(1, 2.5)] * 4, dtype=[("a", "i4"), ("b", "f8")])
        f.create_dataset("ragged", (4,), h5py.vlen_dtype("f4"))[1] = [1, 2]
    done = squall("convert", tmp_path / "a.h5", store, check=False)
    assert done.code == 3 and "records" in done.err and "ragged" in done.err
    assert set(raw(store).variables) - small.OURS == {"v"} and raw(store).v.values.tolist() == [0, 1, 2, 3]
    again = squall("convert", tmp_path / "a.h5", store, check=False)
    assert again.code == 0, again.err  # known by now


def test_times_counted_from_different_moments_are_counted_alike(squall, tmp_path, store):
    paths = [small.write(tmp_path / f"{i}.nc", i, start=0, units=f"hours since 2024-01-0{i + 1}") for i in range(3)]
    squall("convert", *paths, store)
    ds = opened(store)
    np.testing.assert_array_equal(ds.time, small.shown(paths, decode_cf=None).time)
    assert raw(store).time.attrs["units"] == "hours since 2024-01-01" and raw(store).time.values.tolist() == [6.0 * i for i in range(12)]


def test_half_floats_of_the_collected_cases(squall, shared, tmp_path, store):
    subprocess.run([sys.executable, shared / "cases" / "float16.py", tmp_path], check=True)
    squall("convert", tmp_path / "half.h5", store)
    small.same_bits(raw(store).half.values, (np.arange(10) / 8).astype("f2"))


# ---- one store, other chunks -------------------------------------------------------------------------------------------------------------


def cube(path, shape=(40, 30, 50), chunks=(1, 30, 50), dims=("time", "lat", "lon"), kind="f4", **how):
    values = np.random.default_rng(1).standard_normal(shape).astype(kind)
    group = zarr.open_group(path, mode="w")
    group.create_array("v", data=values, chunks=chunks, dimension_names=dims, **how)
    group["v"].attrs["units"] = "K"
    for dim, length in zip(dims, shape, strict=True):
        group.create_array(dim, data=np.arange(length) * 2, dimension_names=[dim])
    return values


@pytest.mark.parametrize("how", [{}, {"shards": (10, 30, 50)}, {"compressors": None}], ids=["chunks", "shards", "raw"])
@pytest.mark.parametrize("chunks", [(40, 10, 10), (40, 7, 9), (7, 30, 1), (4, 5, 50), (11, 13, 17)])
def test_maps_become_series_and_back(squall, tmp_path, store, chunks, how):
    values = cube(tmp_path / "in.zarr", **how)
    wanted = ",".join(f"{dim}={'all' if n == 40 else n}" for dim, n in zip(("time", "lat", "lon"), chunks, strict=True))
    squall("convert", tmp_path / "in.zarr", store, "--chunks", wanted)
    found = zarr.open_group(store, mode="r")["v"]
    assert found.chunks == chunks and found.attrs["units"] == "K"
    small.same_bits(found[...], values)
    back = tmp_path / "back.zarr"
    squall("convert", store, back, "--chunks", "time=1,lat=all,lon=all")
    small.same_bits(zarr.open_group(back, mode="r")["v"][...], values)
    small.same_dataset(raw(back), xr.open_zarr(tmp_path / "in.zarr", consolidated=False, decode_cf=False))


def test_the_chunks_are_those_that_dask_would_write(squall, tmp_path, store):
    cube(tmp_path / "in.zarr")
    squall("convert", tmp_path / "in.zarr", store, "--chunks", "time=all,lat=10,lon=10")
    theirs = tmp_path / "theirs.zarr"
    ds = xr.open_zarr(tmp_path / "in.zarr").chunk(time=-1, lat=10, lon=10)
    ds.to_zarr(theirs, encoding={"v": {"chunks": (40, 10, 10)}})
    ours, other = zarr.open_group(store, mode="r")["v"], zarr.open_group(theirs, mode="r")["v"]
    for place in np.ndindex(1, 3, 5):
        np.testing.assert_array_equal(ours.blocks[place], other.blocks[place])
    assert {p.parts[-4:] for p in (store / "v" / "c").rglob("*") if p.is_file()} == {
        p.parts[-4:] for p in (theirs / "v" / "c").rglob("*") if p.is_file()
    }


@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF3_CLASSIC", "zarr"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_first_file_alone_tells_along_what_it_grows(squall, tmp_path, store, kind, times):
    """Though its grid's arrays come first, and are as large as variables of one time, or larger."""
    for i in range(2):
        grid = np.arange(12.0).reshape(3, 4)
        large = {} if kind == "zarr" else {"weights": (("y", "x", "corner"), np.zeros((3, 4, 50)))}
        v = np.full((times, 3, 4), i, "f4")
        ds = xr.Dataset({"lat": (("y", "x"), grid), **large, "v": (("time", "y", "x"), v), "time": np.arange(times) + i * times})
        if kind == "zarr":
            ds.to_zarr(tmp_path / f"{i}.zarr", zarr_format=2)
        else:
            ds.to_netcdf(tmp_path / f"{i}.nc", unlimited_dims="time", format=kind)
    ending = "zarr" if kind == "zarr" else "nc"
    squall("convert", tmp_path / f"0.{ending}", store, "--chunks", "time=1")
    assert opened(store).chunk_exists.dims == ("time",)
    squall("convert", tmp_path / f"[01].{ending}", store, "--chunks", "time=1")
    assert opened(store).v.values[:, 0, 0].tolist() == [0] * times + [1] * times


@pytest.mark.parametrize("dims", [("lat", "time", "lon"), ("lat", "lon", "time")])
def test_a_variable_whose_append_dimension_is_not_the_first_is_named(squall, tmp_path, store, dims):
    cube(tmp_path / "in.zarr", shape=(30, 20, 10), chunks=(30, 5, 10), dims=dims)
    zarr.open_group(tmp_path / "in.zarr").create_array(
        "w", data=np.zeros((dict(zip(dims, (30, 20, 10), strict=True))["time"], 40)), dimension_names=("time", "z")
    )
    done = squall("convert", tmp_path / "in.zarr", store, "--append-dim", "time", check=False)
    assert done.code == 3 and "v is left out: the append dimension is not its first" in done.err
    assert "v" not in raw(store) and raw(store).chunk_exists.dims == ("time",)


def test_chunks_that_no_source_has_stay_unwritten(squall, tmp_path, store):
    group = zarr.open_group(tmp_path / "in.zarr", mode="w")
    a = group.create_array("v", shape=(8, 4), chunks=(1, 4), dtype="f4", fill_value=-1, dimension_names=("time", "x"))
    a[2], a[5] = 3, 4
    squall("convert", tmp_path / "in.zarr", store, "--append-dim", "time", "--chunks", "time=1")
    found = zarr.open_group(store, mode="r")["v"]
    small.same_bits(found[...], a[...])
    assert found.fill_value == -1 and sorted(p.name for p in (store / "v" / "c").iterdir()) == ["2", "5"]


def test_groups_keep_their_places_or_are_named(squall, tmp_path, store):
    group = zarr.open_group(tmp_path / "in.zarr", mode="w", attributes={"title": "root"})
    group.create_array("v", data=np.arange(6.0), dimension_names=("x",))
    inner = group.create_group("levels/upper", attributes={"title": "inner"})
    inner.create_array("w", data=np.arange(8).reshape(2, 4), dimension_names=("a", "b"))
    done = squall("convert", tmp_path / "in.zarr", store, check=False)
    if done.code == 0:
        found = zarr.open_group(store, mode="r")
        assert found["v"][...].tolist() == list(range(6)) and found["levels/upper/w"][...].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert found["levels/upper"].attrs["title"] == "inner"
    else:
        assert done.code in (2, 3, 4) and "levels" in done.err


# ---- many files as one -------------------------------------------------------------------------------------------------------------------


def test_files_become_places_of_a_new_dimension(squall, tmp_path, store):
    paths = [small.write(tmp_path / f"member{i}.nc", 0, seed=i) for i in range(3)]
    squall("convert", *paths, store, "--concat-dim", "number")
    ds = raw(store)
    assert ds.t.dims == ("number", "time", "lat", "lon")
    small.same_bits(ds.t.values, np.stack([small.values_of("t", 0, seed=i) for i in range(3)]))
    assert ds.chunk_exists.dims == ("number",) and ds.chunk_exists.values.tolist() == [True] * 3


def test_files_that_do_not_agree_are_refused_warned_of_or_taken(squall, tmp_path, store):
    paths = [small.write(tmp_path / f"{i}.nc", i, attrs={"t": {"units": "degC"}} if i == 2 else ()) for i in range(4)]
    done = squall("convert", *paths, store, check=False)
    assert done.code in (1, 4) and '2.nc: units of t is "degC"' in done.err and not store.exists()
    done = squall("convert", *paths, store, "--drift", "warn", check=False)
    assert done.code in (0, 3) and '2.nc: units of t is "degC"' in done.err
    small.same_dataset(raw(store), small.shown(paths))
    done = squall("convert", *paths, tmp_path / "first.zarr", "--drift", "first")
    assert "degC" not in done.err
    small.same_dataset(raw(tmp_path / "first.zarr"), small.shown(paths))


@pytest.mark.parametrize("key, value", [("scale_factor", 0.02), ("add_offset", 5.0), ("missing_value", np.int16(7))])
@pytest.mark.parametrize("drift", ["error", "warn", "first"])
def test_numbers_that_mean_something_else_are_refused_whatever_drift_says(squall, tmp_path, store, key, value, drift):
    paths = [small.write(tmp_path / f"{i}.nc", i, attrs={"p": {key: value}} if i == 2 else ()) for i in range(4)]
    done = squall("convert", *paths, store, "--drift", drift, check=False)
    assert done.code == 4 and f"2.nc: {key} of p is" in done.err and not store.exists(), done.err
    assert drift == "error" or "no --drift makes them one array" in done.err


def test_a_variable_that_a_file_lacks_is_fill_and_counted(squall, tmp_path, store):
    paths = [small.write(tmp_path / f"{i}.nc", i, without=("t",) if i == 1 else ()) for i in range(3)]
    done = squall("convert", *paths, store, "--drift", "warn", check=False)
    assert done.code in (0, 3) and "1.nc: there is no t" in done.err
    ds = raw(store)
    n = len(small.FIELDS)
    assert ds.field_count.values.tolist() == [n] * 4 + [n - 1] * 4 + [n] * 4
    assert (ds.t.values[4:8] == small.FILL).all()
    small.same_bits(ds.t.values[8:], small.values_of("t", 2))
    small.same_bits(ds.p.values[4:8], small.values_of("p", 1))


def test_the_order_of_the_sources_does_not_matter(squall, days, tmp_path, store):
    squall("convert", *days, store)
    squall("convert", *reversed(days), tmp_path / "other.zarr")
    assert files(store) == files(tmp_path / "other.zarr")


@pytest.mark.parametrize("hours", [[4, 0, 4], [1, 7, 2], [0, 3, 5]])
def test_files_of_any_length_follow_each_other(squall, tmp_path, store, hours):
    starts = np.cumsum([0, *hours[:-1]]) * 6
    paths = [
        small.write(tmp_path / f"{i}.nc", i, hours=max(n, 1), start=s) for i, (n, s) in enumerate(zip(hours, starts, strict=True)) if n
    ]
    for i, n in enumerate(hours):
        if not n:
            with netCDF4.Dataset(paths[0]) as like, netCDF4.Dataset(tmp_path / f"{i}.nc", "w") as d:
                d.setncatts(like.__dict__)
                for name, dim in like.dimensions.items():
                    d.createDimension(name, None if dim.isunlimited() else len(dim))
                for name, v in like.variables.items():
                    fill = v.__dict__.get("_FillValue")
                    made = d.createVariable(name, v.dtype, v.dimensions, fill_value=fill)
                    made.setncatts({k: a for k, a in v.__dict__.items() if k != "_FillValue"})
                    if "time" not in v.dimensions:
                        made.set_auto_maskandscale(False)
                        made[...] = v[...]
    squall("convert", tmp_path / "*.nc", store, "--chunks", "time=3")
    wanted = small.shown([p for p in paths])
    found = raw(store)
    for name in wanted.variables:
        small.same_bits(found[name].values, wanted[name].values, name)


# ---- again, and more ---------------------------------------------------------------------------------------------------------------------


def test_a_rerun_does_nothing(squall, days, store):
    squall("convert", *days, store)
    before = times(store)
    done = squall("convert", *days, store)
    assert "nothing new" in done.out
    report = report_of(squall, *days, store)
    assert report["units"]["done"] == report["units"]["failed"] == 0 and report["units"]["skipped"] > 0
    assert times(store) == before


@pytest.mark.parametrize("chunk", [1, 4, 3, 7, "all"])
def test_new_files_go_on_behind(squall, days, tmp_path, store, chunk):
    source, whole = tmp_path / "in", tmp_path / "whole.zarr"
    source.mkdir()
    options = [] if chunk == "all" else ["--chunks", f"time={chunk}"]
    for some in (days[:2], days[2:3], days[3:]):
        for day in some:
            shutil.copy2(day, source)
        report = report_of(squall, source / "*.nc", store, *options)
        assert report["units"]["failed"] == 0
    ds = raw(store)
    small.same_dataset(ds, small.shown(days))
    assert ds.chunk_exists.values.tolist() == [1] * 20 and ds.field_count.values.tolist() == [len(small.FIELDS)] * 20
    if options:
        squall("convert", *days, whole, *options)
        assert files(store) == files(whole)
    assert squall("verify", store).code == 0
    assert report_of(squall, source / "*.nc", store, *options)["units"]["done"] == 0


def test_only_the_units_of_new_files_are_written(squall, days, tmp_path, store):
    source = tmp_path / "in"
    source.mkdir()
    for day in days[:3]:
        shutil.copy2(day, source)
    squall("convert", source / "*.nc", store, "--chunks", "time=4")
    before = times(store / "t" / "c")
    shutil.copy2(days[3], source)
    report = report_of(squall, source / "*.nc", store, "--chunks", "time=4")
    assert report["units"] == {"done": 1, "skipped": 3, "failed": 0}
    after = times(store / "t" / "c")
    assert {p: after[p] for p in before} == before and len(after) == 4


def test_sources_that_are_gone_are_no_reason_to_do_anything(squall, days, tmp_path, store):
    source = tmp_path / "in"
    source.mkdir()
    for day in days:
        shutil.copy2(day, source)
    squall("convert", source / "*.nc", store, "--chunks", "time=4")
    before = files(store)
    (source / "day00.nc").unlink()
    (source / "day03.nc").unlink()
    done = squall("convert", source / "*.nc", store, "--chunks", "time=4", check=False)
    assert done.code in (0, 3), done.err
    assert files(store) == before


def test_the_newest_files_alone_go_on_behind(squall, days, tmp_path, store):
    squall("convert", *days[:3], store, "--chunks", "time=4")
    squall("convert", *days[3:], store, "--chunks", "time=4")
    small.same_dataset(raw(store), small.shown(days))
    assert raw(store).chunk_exists.values.tolist() == [1] * 20
    squall("convert", *days, tmp_path / "whole.zarr", "--chunks", "time=4")
    assert files(store) == files(tmp_path / "whole.zarr")


def test_earlier_files_and_gaps_are_named(squall, days, store):
    squall("convert", *days[2:4], store, "--chunks", "time=4")
    before = files(store)
    done = squall("convert", *days[:4], store, "--chunks", "time=4", check=False)
    assert done.code in (3, 4) and "day00.nc" in done.err, done.err
    assert files(store) == before


def test_a_file_that_overlaps_what_is_stored_is_named(squall, days, tmp_path, store):
    squall("convert", *days[:2], store, "--chunks", "time=4")
    odd = small.write(tmp_path / "odd.nc", 2, start=39)
    done = squall("convert", *days[:2], odd, store, "--chunks", "time=4", "--drift", "first", check=False)
    assert done.code == 3 and "odd.nc: 1 of its places along time" in done.err, done.err
    ds = raw(store)
    assert ds.time.values.tolist() == [*range(0, 43, 6), 45, 51, 57]
    small.same_bits(ds.t.values, np.concatenate([small.values_of("t", 0), small.values_of("t", 1), small.values_of("t", 2)[1:]]))


def test_the_newest_file_is_enough_where_a_chunk_holds_places_of_earlier_ones(squall, tmp_path, store):
    paths = small.make(tmp_path / "in", 3)
    squall("convert", *paths[:2], store, "--chunks", "time=6")
    squall("convert", paths[2], store, "--chunks", "time=6")
    small.same_dataset(raw(store), small.shown(paths))
    assert raw(store).chunk_exists.values.all()


def test_a_changed_file_is_converted_again(squall, tmp_path, store):
    paths = small.make(tmp_path / "in", 4)
    squall("convert", *paths, store, "--chunks", "time=4")
    small.write(paths[1], 1, seed=9)
    report = report_of(squall, *paths, store, "--chunks", "time=4")
    assert report["units"] == {"done": 1, "skipped": 3, "failed": 0}
    small.same_dataset(raw(store), small.shown(paths))
    assert raw(store).chunk_exists.values.all()


def test_what_is_written_once_is_compared_on_later_runs(squall, tmp_path, store):
    paths = small.make(tmp_path / "in", 2)
    squall("convert", *paths, store, "--chunks", "time=4")
    orog = raw(store).orog.values
    small.write(paths[0], 0, orog=5)
    done = squall("convert", *paths, store, "--chunks", "time=4", "--drift", "first", check=False)
    assert done.code in (3, 4) and "orog" in done.err, done.err
    small.same_bits(raw(store).orog.values, orog)


def test_a_variable_that_the_store_has_not_is_ignored_and_named(squall, tmp_path, store):
    squall("convert", small.write(tmp_path / "0.nc", 0, without=("p",)), store, "--chunks", "time=4")
    done = squall("convert", small.write(tmp_path / "1.nc", 1), store, "--chunks", "time=4", check=False)
    assert done.code in (3, 4) and " p" in done.err, done.err
    assert "p" not in raw(store)


def test_another_layout_is_refused_and_the_setting_named(squall, days, store):
    squall("convert", *days, store)
    before = files(store, records=True)
    for options in (
        ["--dtype", "t=float64"],
        ["--chunks", "lat=5"],
        ["--codec", "zstd:level=1"],
        ["--select", "name=t"],
        ["--rename", "t=x"],
    ):
        done = squall("convert", *days, store, *options, check=False)
        assert done.code == 4 and options[0] in done.err, (options, done.err)
    assert files(store, records=True) == before


def test_overwrite_replaces_a_store_of_ours_and_nothing_else(squall, days, tmp_path, store):
    squall("convert", *days[:2], store)
    squall("convert", *days[2:], store, "--chunks", "lat=2", "--overwrite")
    small.same_dataset(raw(store), small.shown(days[2:]))
    assert [p.name for p in tmp_path.iterdir()] == ["out.zarr"]
    other = tmp_path / "other.zarr"
    xr.Dataset({"a": ("x", [1, 2])}).to_zarr(other)
    before = files(other)
    done = squall("convert", *days, other, "--overwrite", check=False)
    assert done.code == 4 and "without squall's records" in done.err and files(other) == before


def test_dry_run_touches_nothing_and_tells_the_plan(squall, days, store):
    done = squall("convert", *days, store, "--dry-run", "--json")
    assert not store.exists()
    plan = json.loads(done.out)
    assert plan["kind"] == "new" and plan["units"]["write"] > 0 and plan["units"]["done"] == 0
    arrays = {a["name"]: a for a in plan["arrays"]}
    assert arrays["t"]["shape"] == [20, small.ROWS, small.COLUMNS] and arrays["t"]["dtype"] == "float32"
    assert 0 < plan["peak_memory_bytes"] <= plan["memory_budget_bytes"]
    text = squall("convert", *days, store, "--dry-run").out
    assert "t float32" in text and "to write" in text


# ---- default chunks ----------------------------------------------------------------------------------------------------------------------


def one_map_files(folder, shape, count, chunks=None, kind="f4"):
    """Files of one time each; NetCDF-3 where `chunks` is None."""
    folder.mkdir()
    for i in range(count):
        ds = xr.Dataset({"v": (("time", "y", "x"), np.full((1, *shape), i, kind)), "time": np.array([i], "f8")})
        encoding = {"v": {"chunksizes": chunks, "zlib": True, "complevel": 1}} if chunks else {}
        ds.to_netcdf(folder / f"{i:04}.nc", unlimited_dims="time", encoding=encoding, engine="netcdf4" if chunks else None)
    return folder / "*.nc"


@pytest.mark.parametrize(
    "shape, count, chunks, wanted",
    [
        ((512, 512), 9, (1, 512, 512), (4, 512, 512)),  # 1 MiB a map: four of them are 4 MiB
        ((512, 384), 13, (1, 256, 384), (11, 256, 384)),  # 384 KiB a chunk, whole source chunks: 11 are the first to reach 4 MiB
        ((1024, 1024), 2, (1, 1024, 1024), (1, 1024, 1024)),  # just 4 MiB
        ((4096, 3072), 2, (1, 4096, 3072), None),  # 48 MiB: halved until at most 16
    ],
)
def test_chunks_follow_the_source_s(squall, tmp_path, store, shape, count, chunks, wanted):
    pattern = one_map_files(tmp_path / "in", shape, count, chunks)
    squall("convert", pattern, store)
    found = zarr.open_group(store, mode="r")["v"]
    if wanted is None:
        size = int(np.prod(found.chunks)) * 4
        assert size <= 16 << 20 < 4 * size and found.chunks[0] == 1
    else:
        assert found.chunks == wanted
    assert (found[:, 0, 0] == np.arange(count)).all() and (found[:, -1, -1] == np.arange(count)).all()
    squall("convert", pattern, tmp_path / "b.zarr", "--chunks", "x=100")
    other = zarr.open_group(tmp_path / "b.zarr", mode="r")["v"]
    assert other.chunks[2] == 100 and (wanted is None or other.chunks[1] == wanted[1])


# ---- memory ------------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """192 MiB, one map a chunk and a file: NetCDF-4."""
    return one_map_files(tmp_path_factory.mktemp("maps") / "in", (1024, 1024), 48, (1, 1024, 1024))


@pytest.mark.parametrize("chunks", ["time=all,y=64,x=64", "time=1,y=all,x=all", "time=5,y=100,x=all", "time=24,y=all,x=8"])
def test_memory_stays_within_what_was_given(squall, support, maps, store, chunks):
    options = ["--chunks", chunks, "--threads", "2", "--memory", "96M"]
    plan = json.loads(squall("convert", maps, store, *options, "--dry-run", "--json").out)
    assert plan["peak_memory_bytes"] <= 96 << 20
    peak = peak_bytes([support.parents[1] / "squall", "convert", maps, store, "-q", *options])
    assert plan["peak_memory_bytes"] / 8 < peak <= 96 << 20
    found = zarr.open_group(store, mode="r")["v"][...]
    assert (found == np.arange(48)[:, None, None]).all()


def test_memory_is_planned_without_being_told(squall, support, maps, store):
    options = ["--chunks", "time=all,y=128,x=128", "--threads", "2"]
    plan = json.loads(squall("convert", maps, store, *options, "--dry-run", "--json").out)
    peak = peak_bytes([support.parents[1] / "squall", "convert", maps, store, "-q", *options])
    assert peak <= plan["peak_memory_bytes"] <= plan["memory_budget_bytes"]


def test_a_chunk_that_memory_cannot_hold_is_refused_by_name(squall, maps, store):
    options = ["--chunks", "time=all,y=all,x=all", "--memory", "96M"]
    done = squall("convert", maps, store, *options, check=False)
    assert done.code == 1 and not store.exists(), done.err
    for words in ("v", "memory", "--chunks"):
        assert words in done.err
    done = squall("convert", maps, store, *options, "--dry-run", check=False)
    assert done.code == 1 and not store.exists()


# ---- what is damaged ---------------------------------------------------------------------------------------------------------------------


def break_chunk(path, name, number, with_bytes=None):
    """Overwrites a chunk of an HDF5 file; returns what was there."""
    with h5py.File(path) as f:
        at = f[name].id.get_chunk_info(number)
    with open(path, "r+b") as f:
        f.seek(at.byte_offset)
        old = f.read(at.size)
        f.seek(at.byte_offset)
        f.write(with_bytes or b"\xff" * at.size)
    return old


def test_an_unreadable_chunk_is_named_and_never_fill_that_pretends(squall, tmp_path, store):
    paths = small.make(tmp_path / "in", 3)
    whole = break_chunk(paths[1], "t", 2)
    done = squall("convert", *paths, store, "--chunks", "time=1", check=False)
    assert done.code == 3 and "day01.nc" in done.err and "t" in done.err, done.err
    ds, wanted = raw(store), np.concatenate([small.values_of("t", day) for day in range(3)])
    there = np.arange(12) != 6
    assert ds.chunk_exists.values.tolist() == there.tolist()
    assert ds.field_count.values.tolist() == [len(small.FIELDS) - (not ok) for ok in there]
    small.same_bits(ds.t.values[there], wanted[there])
    for name in ("p", "count", "flag", "series"):
        small.same_bits(ds[name].values, np.concatenate([small.values_of(name, day) for day in range(3)]), name)
    assert "day01.nc" in squall("status", store).out
    again = squall("convert", *paths, store, "--chunks", "time=1", check=False)
    assert again.code == 0, again.err  # no news
    assert not raw(store).chunk_exists.values[6]
    break_chunk(paths[1], "t", 2, whole)
    os.utime(paths[1])
    squall("convert", *paths, store, "--chunks", "time=1")
    small.same_bits(raw(store).t.values, wanted)
    assert raw(store).chunk_exists.values.all()


def test_strict_writes_no_unit_with_a_bad_input(squall, tmp_path, store):
    paths = small.make(tmp_path / "in", 3)
    break_chunk(paths[1], "t", 2)
    for _ in range(2):
        done = squall("convert", *paths, store, "--chunks", "time=4", "--strict", check=False)
        assert done.code == 3 and "day01.nc" in done.err
        assert raw(store).chunk_exists.values.tolist() == [True] * 4 + [False] * 4 + [True] * 4


def test_a_store_s_damaged_chunk_is_named(squall, tmp_path, store):
    values = cube(tmp_path / "in.zarr", chunks=(4, 30, 50))
    (tmp_path / "in.zarr" / "v" / "c" / "3" / "0" / "0").write_bytes(b"nonsense")
    done = squall("convert", tmp_path / "in.zarr", store, "--append-dim", "time", "--chunks", "time=4", check=False)
    assert done.code == 3 and "v" in done.err and "3/0/0" in done.err, done.err
    there = np.arange(40) // 4 != 3
    assert raw(store).chunk_exists.values.tolist() == there.tolist()
    small.same_bits(raw(store).v.values[there], values[there])


@pytest.mark.parametrize("bad", [b"", b"<html>503</html>", "cut"])
def test_a_file_that_is_none_is_named(squall, tmp_path, store, bad):
    paths = small.make(tmp_path / "in", 3)
    paths[1].write_bytes(paths[1].read_bytes()[:200] if bad == "cut" else bad)
    done = squall("convert", *paths, store, check=False)
    assert done.code in (1, 3) and "day01.nc" in done.err, done.err
    if done.code == 1:
        assert not store.exists()


def test_status_and_verify(squall, days, store):
    squall("convert", *days, store, "--chunks", "time=4")
    status = json.loads(squall("status", store, "--json").out)
    assert status["command"].startswith("squall convert --chunks time=4")
    assert "to go on: squall convert" in squall("status", store).out
    assert json.loads(squall("verify", store, "--json").out)["bad"] == []
    chunk = store / "t" / "c" / "2" / "0" / "0"
    chunk.unlink()
    done = squall("verify", store, check=False)
    assert done.code == 5 and str(chunk) in done.out
    squall("convert", *days, store, "--chunks", "time=4")
    assert squall("verify", store).code == 0
    small.same_dataset(raw(store), small.shown(days))


def test_status_names_what_the_user_gave(squall, days, tmp_path, store):
    pattern = days[0].parent / "day0[0-4].nc"
    squall("convert", pattern, store)
    command = json.loads(squall("status", store, "--json").out)["command"]
    assert command == f"squall convert '{pattern}' {store}"
    assert "nothing new" in squall(*shlex.split(command)[1:]).out
    squall("convert", "-", tmp_path / "b.zarr", input="".join(f"{day}\n" for day in days))
    command = json.loads(squall("status", tmp_path / "b.zarr", "--json").out)["command"]
    assert shlex.split(command)[2:] == [*map(str, days), str(tmp_path / "b.zarr")]


# ---- what is refused ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.grib2", "z.grib2", "zz"])
@pytest.mark.parametrize("options", [[], ["--concat-dim", "time"]])
def test_grib_and_arrays_are_not_mixed(squall, tmp_path, store, name, options):
    days = small.make(tmp_path, 3)
    small_archive.write(tmp_path / name, small_archive.run(0))
    done = squall("convert", *days, tmp_path / name, store, *options, check=False)
    assert done.code == 2 and name in done.err and "day00.nc" in done.err, done.err
    assert not store.exists()


@pytest.mark.parametrize("options", [["--stack", "variable"], ["--every", "6h"], ["--coarsen", "lat=2"]])
def test_options_of_grib_s_are_refused_by_name(squall, days, store, options):
    done = squall("convert", *days, store, *options, check=False)
    assert done.code == 2 and options[0] in done.err and not store.exists(), done.err


@pytest.mark.parametrize(
    "options, words",
    [
        (["--chunks", "height=1"], "height"),
        (["--chunks", "lat=0"], "--chunks"),
        (["--dtype", "sst=float32"], "sst"),
        (["--codec", "zip"], "zip"),
        (["--select", "name=sst"], "sst"),
        (["--select", "level=850"], "level"),
        (["--rename", "sst=x"], "sst"),
        (["--rename", "t=p"], "p"),
        (["--drift", "ignore"], "--drift"),
    ],
)
def test_wrong_values_of_options_are_usage_errors(squall, days, store, options, words):
    done = squall("convert", *days, store, *options, check=False)
    assert done.code == 2 and words in done.err and not store.exists(), done.err


@pytest.mark.parametrize("dim", ["lat", "lon", "height"])
def test_files_that_follow_each_other_along_another_dimension_than_asked(squall, days, store, dim):
    done = squall("convert", *days, store, "--append-dim", dim, check=False)
    assert done.code == 2 and not store.exists(), done.err
    assert f"--append-dim {dim}: the files follow each other along time, and a store of several files grows as they do" in done.err
    squall("convert", days[0], store, "--append-dim", "time")


@pytest.mark.parametrize("options", [[], ["-v"], ["-q"]])
def test_a_problem_of_a_source_is_told_once(squall, tmp_path, store, options):
    path = one_variable(tmp_path / "in.nc", [1, 2], [0, 1])
    with h5py.File(path, "a") as f:
        f["elsewhere"] = h5py.ExternalLink("other.h5", "/x")
    done = squall("convert", path, store, *options)
    assert done.err.count("elsewhere is left out") == 1, done.err
    assert ["elsewhere is left out" in note for note in report_of(squall, path, tmp_path / "b.zarr")["notes"]] == [True]


def test_a_store_made_of_arrays_takes_no_grib_and_the_other_way_round(squall, days, tmp_path, store):
    small_archive.write(tmp_path / "a.grib2", small_archive.run(0))
    squall("convert", *days, store)
    assert squall("convert", tmp_path / "a.grib2", store, check=False).code == 4
    squall("convert", tmp_path / "a.grib2", tmp_path / "b.zarr")
    assert squall("convert", *days, tmp_path / "b.zarr", check=False).code == 4


def test_the_destination_is_not_a_source(squall, tmp_path):
    cube(tmp_path / "in.zarr")
    before = files(tmp_path / "in.zarr")
    for options in ([], ["--overwrite"]):
        done = squall("convert", tmp_path / "in.zarr", tmp_path / "in.zarr", *options, check=False)
        assert done.code in (2, 4) and files(tmp_path / "in.zarr") == before


def test_a_store_that_squall_made_is_a_source(squall, days, tmp_path, store):
    """Its flags and records are its own: the copy has others."""
    squall("convert", *days, store)
    squall("convert", store, tmp_path / "copy.zarr", "--chunks", "time=5")
    copy = raw(tmp_path / "copy.zarr")
    small.same_dataset(copy, small.shown(days))
    assert copy.chunk_exists.values.all()


def test_arrays_in_groups_are_refused_by_name(squall, tmp_path, store):
    with netCDF4.Dataset(tmp_path / "g.nc", "w") as ds:
        ds.createDimension("time", None)
        ds.createGroup("model").createVariable("t", "f4", ("time",))[:] = [1, 2]
    done = squall("convert", tmp_path / "g.nc", store, check=False)
    assert done.code == 1 and "its arrays lie in groups; --group model converts those of one" in done.err
    assert not store.exists()


# ---- what must not be done in silence -------------------------------------------------------------------------------------------------


def one_variable(path, values, coordinate=None, **more):
    """A file of v(time) without a coordinate, or with one that counts seconds."""
    with netCDF4.Dataset(path, "w") as ds:
        ds.createDimension("time", None)
        ds.createDimension("y", 2)
        ds.createVariable("v", "f4", ("time",))[:] = values
        if coordinate is not None:
            time = ds.createVariable("time", "i8", ("time",))
            time.units = "seconds since 1970-01-01"
            time[:] = coordinate
        for name, dims in more.items():
            ds.createVariable(name, "f4", dims)[:] = 1
    return path


def test_without_a_coordinate_files_keep_their_order(squall, tmp_path, store):
    a, b = (one_variable(tmp_path / f"n{i}.nc", [i, i]) for i in range(2))
    squall("convert", a, store)
    done = squall("convert", b, store, check=False)
    assert done.code == 4 and "no coordinate time" in done.err and "n0.nc" in done.err
    squall("convert", a, b, store, "--concat-dim", "time")
    assert raw(store).v.values.tolist() == [0, 0, 1, 1]
    assert squall("convert", b, a, store, "--concat-dim", "time").out.startswith(f"{store}: nothing new")  # sorted by path


def test_files_along_a_new_dimension_keep_their_places(squall, tmp_path, store):
    members = [tmp_path / f"m{i}.nc" for i in range(3)]
    for i, path in enumerate(members):
        xr.Dataset({"v": ("x", np.full(2, i, "f4"))}).to_netcdf(path)
    squall("convert", *members, store, "--concat-dim", "number")
    for some in (members[1:], members[2:]):
        assert squall("convert", *some, store, "--concat-dim", "number", check=False).code == 4
    assert raw(store).v.values.tolist() == [[0, 0], [1, 1], [2, 2]]


def test_times_that_no_clock_has_are_numbers(squall, tmp_path, store):
    path = one_variable(tmp_path / "far.nc", [1, 2], [2**56, 2**56 + 1])
    squall("convert", path, store)
    assert "nothing new" in squall("convert", path, store).out
    assert "2 places along time, 0 to 1" in squall("status", store).out
    squall("verify", store)


def test_names_that_a_store_keeps_for_itself_are_left_out_by_name(squall, tmp_path, store):
    path = one_variable(tmp_path / "names.nc", [1, 2], [0, 1], field_count=("time", "y"), chunk_exists=("y",))
    done = squall("convert", path, store, check=False)
    assert done.code == 3 and "field_count is left out" in done.err and "chunk_exists is left out" in done.err
    assert raw(store).chunk_exists.values.tolist() == [True, True]


def test_dimensions_of_length_0_verify(squall, tmp_path, store):
    root = zarr.create_group(tmp_path / "in.zarr")
    root.create_array("v", shape=(2, 0), chunks=(1, 1), dtype="f4", dimension_names=["time", "y"])
    root.create_array("w", shape=(2, 4), chunks=(1, 4), dtype="f4", dimension_names=["time", "x"])[:] = 1
    squall("convert", tmp_path / "in.zarr", store)
    squall("verify", store)
    done = squall("convert", tmp_path / "in.zarr", tmp_path / "in.zarr" / "sub", check=False)
    assert done.code == 2 and "the destination lies in this source" in done.err


def test_a_chunk_of_a_store_is_tried_again(squall, tmp_path, store):
    root = zarr.create_group(tmp_path / "in.zarr")
    values = np.arange(16, dtype="f4").reshape(4, 4)
    root.create_array("w", shape=(4, 4), chunks=(1, 4), dtype="f4", dimension_names=["time", "x"])[:] = values
    chunk = tmp_path / "in.zarr" / "w" / "c" / "1" / "0"
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:5])
    assert squall("convert", tmp_path / "in.zarr", store, check=False).code == 3
    assert raw(store).chunk_exists.values.tolist() == [True, False, True, True]
    chunk.write_bytes(whole)
    squall("convert", tmp_path / "in.zarr", store)
    assert raw(store).chunk_exists.values.all() and np.array_equal(raw(store).w.values, values)
    assert "nothing new" in squall("convert", tmp_path / "in.zarr", store).out


def test_a_dimension_beyond_all_memory_is_refused_at_once(squall, tmp_path, store):
    with netCDF4.Dataset(tmp_path / "long.nc", "w") as ds:
        ds.createDimension("n", 400_000_000)
        ds.createVariable("v", "f4", ("n",), chunksizes=(1000,), fill_value=0)[0] = 1
    done = squall("convert", tmp_path / "long.nc", store, "--memory", "100M", check=False)
    assert done.code == 1 and "long.nc: n has 400000000 places" in done.err


def test_flags_of_a_unit_are_one_chunk(squall, tmp_path, store):
    """A long axis of small values must not become two files a place, and chunks along it are alike for Dask."""
    path = tmp_path / "station.nc"
    xr.Dataset({"t": (("time", "x"), np.ones((20000, 40), "f4"))}, {"time": np.arange(20000.0)}).to_netcdf(path, unlimited_dims="time")
    squall("convert", path, store, "--chunks", "time=5000")
    assert len([f for f in store.rglob("*") if f.is_file()]) < 50
    assert raw(store).chunk_exists.values.all() and (raw(store).field_count.values == 1).all()
    assert xr.open_zarr(store, decode_cf=False).chunks["time"] == (5000,) * 4
    assert json.loads(squall("status", store, "--json").out)["complete"] == 20000
    squall("verify", store)


def test_a_file_cut_off_costs_only_itself(squall, tmp_path, store):
    paths = [tmp_path / f"m{i}.nc" for i in range(3)]
    for i, path in enumerate(paths):
        t = np.random.default_rng(i).random((4, 40, 50), "f4")
        ds = xr.Dataset({"t": (("time", "y", "x"), t)}, {"time": np.arange(4) + 4 * i, "x": np.arange(50)})
        ds.to_netcdf(path, unlimited_dims="time")
    wanted = xr.open_mfdataset([paths[0], paths[2]], decode_times=False, combine="nested", concat_dim="time", data_vars="minimal").load()
    paths[1].write_bytes(paths[1].read_bytes()[:20000])
    done = squall("convert", *paths, store, "--chunks", "time=4", check=False)
    assert done.code == 3 and "m1.nc" in done.err
    found = raw(store)
    assert found.time.values.tolist() == wanted.time.values.tolist() and np.array_equal(found.t.values, wanted.t.values)


# ---- what values mean --------------------------------------------------------------------------------------------------------------------

MEANINGS = {
    "units": ("K", "degC"),
    "calendar": ("noleap", "360_day"),
    "standard_name": ("air_temperature", "sea_surface_temperature"),
    "_Unsigned": ("false", "true"),
    "flag_values": ([1, 2], [1, 3]),
    "flag_masks": ([1, 2], [1, 4]),
    "flag_meanings": ("rain snow", "snow rain"),
    "valid_range": ([0, 5], [0, 6]),
    "valid_min": (0, 1),
    "valid_max": (5, 6),
    "missing_value": (-1, -2),
    "_FillValue": (-1, -2),
}


def attributed(path, values, time, **attributes):
    """v(time, x) with attributes as they are given, whatever they say."""
    with h5py.File(path, "w") as f:
        f["time"] = np.asarray(time)
        f["time"].make_scale("time")
        f["v"] = values
        f["v"].dims[0].attach_scale(f["time"])
        for key, value in attributes.items():
            f["v"].attrs[key] = value
    return path


@pytest.mark.parametrize("key", MEANINGS)
def test_a_source_that_means_something_else_is_not_added(squall, tmp_path, store, key):
    first, second = (np.array(v, "i4") if isinstance(v, int | list) else v for v in MEANINGS[key])
    values = np.arange(40, dtype="i4").reshape(2, 20)
    squall("convert", attributed(tmp_path / "a.h5", values, [0.0, 1.0], **{key: first}), store)
    before = files(store)
    for name, attributes in (("b", {key: second}), ("c", {})):
        source = attributed(tmp_path / f"{name}.h5", values, [2.0, 3.0], **attributes)
        done = squall("convert", source, store, check=False)
        assert done.code == 4 and f"v: {key} is" in done.err, done.err
        assert files(store) == before
    squall("convert", attributed(tmp_path / "d.h5", values, [2.0, 3.0], **{key: first}), store)
    assert raw(store).v.shape == (4, 20)


@pytest.mark.parametrize("missing", [[1, 5, 7], [np.nan, 5], [5]])
def test_a_cast_masks_every_missing_value(squall, tmp_path, store, missing):
    values = np.arange(40, dtype="f4").reshape(2, 20)
    attributes = {"missing_value": np.array(missing, "f4"), "_FillValue": np.float32(3)}
    squall("convert", attributed(tmp_path / "a.h5", values, [0.0, 1.0], **attributes), store, "--dtype", "float16")
    ds = raw(store)
    assert ds.v.dtype == np.float16 and not {"missing_value", "_FillValue"} & set(ds.v.attrs)
    np.testing.assert_array_equal(ds.v.values, np.where(np.isin(values, [*missing, 3]), np.nan, values).astype("f2"))


def test_a_cast_masks_the_fill_value_that_a_zarr_store_spells(squall, tmp_path, store):
    values = np.arange(40, dtype="f4").reshape(2, 20)
    source = xr.Dataset({"v": (("time", "x"), values, {"_FillValue": np.float32(7)})}, {"time": [0.0, 1.0]})
    source.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    squall("convert", tmp_path / "a.zarr", store, "--dtype", "float16")
    np.testing.assert_array_equal(raw(store).v.values, np.where(values == 7, np.nan, values).astype("f2"))


def test_a_missing_value_that_is_no_number_stays_an_attribute(squall, tmp_path, store):
    values = np.arange(40, dtype="f4").reshape(2, 20)
    squall("convert", attributed(tmp_path / "a.h5", values, [0.0, 1.0], missing_value="-999"), store, "--dtype", "float16")
    assert raw(store).v.attrs["missing_value"] == "-999"
    np.testing.assert_array_equal(raw(store).v.values, values.astype("f2"))


@pytest.mark.parametrize(
    "kind, fill", [("i2", "NaN"), ("i4", 1.5), ("i4", np.array([1, 2], "i4")), ("f4", "abc"), ("f8", np.array([1.0, 2.0])), ("u1", -1)]
)
def test_a_fill_value_of_another_type_is_named_and_left_out(squall, tmp_path, store, kind, fill):
    values = np.arange(40).reshape(2, 20).astype(kind)
    source = attributed(tmp_path / "a.h5", values, [0.0, 1.0], _FillValue=fill)
    done = squall("convert", source, store)
    assert "a.h5: v has a _FillValue" in done.err, done.err
    np.testing.assert_array_equal(opened(store).v.values, values)
    assert "_FillValue" not in raw(store).v.attrs
    squall("convert", source, attributed(tmp_path / "b.h5", values, [2.0, 3.0], _FillValue=fill), store)
    np.testing.assert_array_equal(opened(store).v.values, np.concatenate([values, values]))


def test_another_type_than_the_store_s_is_refused(squall, tmp_path, store):
    squall("convert", attributed(tmp_path / "a.h5", np.ones((2, 20), "f4"), [0.0, 1.0], _FillValue=np.float32("nan")), store)
    before = files(store)
    done = squall("convert", attributed(tmp_path / "b.h5", np.ones((2, 20), "i4"), [2.0, 3.0]), store, check=False)
    assert done.code == 4 and "v" in done.err and files(store) == before, done.err


@pytest.mark.parametrize("name", ["__x", "zarr.json", ".hidden"])
def test_a_name_that_no_array_of_a_store_may_have_is_left_out(squall, tmp_path, store, name):
    source = attributed(tmp_path / "a.h5", np.arange(40, dtype="f4").reshape(2, 20), [0.0, 1.0])
    with h5py.File(source, "a") as f:
        f[name] = f["v"][...]
        f[name].dims[0].attach_scale(f["time"])
    done = squall("convert", source, store, check=False)
    assert done.code == 3 and f"{name} is left out" in done.err, done.err
    assert name not in raw(store) and raw(store).v.shape == (2, 20)
    assert squall("convert", source, store).code == 0
    squall("convert", source, tmp_path / "b.zarr", "--rename", f"{name}=other")
    np.testing.assert_array_equal(raw(tmp_path / "b.zarr").other, raw(store).v)


@pytest.mark.parametrize("time", [[0.0, 1.0, 1.0], [0.0, np.nan, 2.0], [2.0, 0.0, 1.0]])
def test_places_that_do_not_go_one_way_stay_where_they_are(squall, tmp_path, store, time):
    values = np.arange(60, dtype="f4").reshape(3, 20)
    source = attributed(tmp_path / "a.h5", values, time)
    done = squall("convert", source, store)
    assert "time does not go one way" in done.err, done.err
    before = times(store)
    done = squall("convert", source, store)
    assert "nothing new" in done.out and times(store) == before
    np.testing.assert_array_equal(raw(store).v.values, values)
    np.testing.assert_array_equal(raw(store).time.values, time)
    attributed(source, values + 1, time)
    squall("convert", source, store)
    np.testing.assert_array_equal(raw(store).v.values, values + 1)
    done = squall("convert", attributed(tmp_path / "b.h5", values, [3.0, 4.0, 5.0]), store, check=False)
    assert done.code == 4 and "does not go one way" in done.err


def test_bounds_of_times_are_counted_as_the_store_counts(squall, tmp_path, store):
    for i, name in enumerate("ab"):
        with netCDF4.Dataset(tmp_path / f"{name}.nc", "w") as ds:
            ds.createDimension("time", None)
            ds.createDimension("n", 2)
            ds.createDimension("x", 30)
            time = ds.createVariable("time", "f8", ("time",))
            time.setncatts({"units": f"hours since 2000-01-01 {2 * i:02d}:00", "bounds": "time_bnds"})
            time[:] = [0, 1]
            ds.createVariable("time_bnds", "f8", ("time", "n"))[:] = [[0, 1], [1, 2]]
            ds.createVariable("v", "f4", ("time", "x"))[:] = i
    squall("convert", tmp_path / "a.nc", store, "--chunks", "time=1")
    squall("convert", tmp_path / "b.nc", store, "--chunks", "time=1")
    assert raw(store).time.values.tolist() == [0, 1, 2, 3]
    assert raw(store).time_bnds.values.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
