"""How `squall convert` lays a store out: shards, rounding, and what differs from variable to variable. zarr-python reads it;
values are those of a store without any of that, rounded by numcodecs."""

import itertools
import re
import subprocess

import numcodecs
import numpy as np
import pytest
import small_files
import xarray as xr
import zarr

VARIABLES = ("dpt", "r", "si10", "t")
PLAIN = ["--chunks", "init_time=1,step=all,y=10,x=10"]


@pytest.fixture(scope="module")
def archive(tmp_path_factory, support):
    """Five runs of four variables of 3 steps, 37 × 23 points."""
    folder = tmp_path_factory.mktemp("layouts") / "archive"
    subprocess.run([support / "make_archive", folder, *"--inits 5 --steps 3 --vars 4 --ny 37 --nx 23".split()], check=True)
    return folder


@pytest.fixture(scope="module")
def plain(archive, squall, tmp_path_factory):
    store = tmp_path_factory.mktemp("plain") / "plain.zarr"
    squall("convert", archive, store)
    with xr.open_zarr(store) as ds:
        return ds.load()


def array(store, name):
    return zarr.open_group(store, mode="r")[name]


def files(store):
    return {p.relative_to(store): p.read_bytes() for p in store.rglob("*") if p.is_file() and ".squall" not in p.parts}


@pytest.mark.parametrize(
    "shards, shape",
    [
        ("init_time=2,y=all,x=20", (2, 3, 40, 20)),
        ("init_time=4", (4, 3, 10, 10)),
        ("init_time=all,y=20", (5, 3, 20, 10)),
        ("x=1000", (1, 3, 10, 30)),
    ],
)
def test_shards_hold_the_values(squall, archive, plain, tmp_path, shards, shape):
    store = tmp_path / "s.zarr"
    squall("convert", archive, store, *PLAIN, "--shards", shards)
    for name in VARIABLES:
        assert array(store, name).shards == shape and array(store, name).chunks == (1, 3, 10, 10)
        np.testing.assert_array_equal(array(store, name)[:], plain[name].values)
    units = -(-5 // shape[0])
    assert len([p for p in (store / "t" / "c").iterdir()]) == units
    assert squall("verify", store).code == 0


@pytest.mark.parametrize("order", list(itertools.permutations((slice(0, 2), slice(2, 3), slice(3, 5))))[::2])
def test_shards_are_completed_as_runs_come(squall, archive, tmp_path, order):
    """Runs that share a shard arrive one after another: the store is the same as if they had come together."""
    runs, source, whole, grown = sorted(archive.iterdir()), tmp_path / "source", tmp_path / "whole.zarr", tmp_path / "grown.zarr"
    how = [*PLAIN, "--shards", "init_time=4,y=all,x=all", "--every", "6h"]
    squall("convert", archive, whole, *how)
    source.mkdir()
    first = sorted(order, key=lambda part: part.start != 0)  # a store never grows towards the past
    for part in first:
        for run in runs[part]:
            (source / run.name).symlink_to(run)
        squall("convert", source, grown, *how)
    assert files(grown) == files(whole)


@pytest.mark.parametrize("option", [["--bitround", "t=5,11"], ["--codec", "t=bitround:keepbits=5+zstd:level=1;bitround:keepbits=11"]])
@pytest.mark.parametrize("sharded", [[], ["--shards", "init_time=2,y=all"]])
def test_mantissas_are_rounded_as_numcodecs_rounds(squall, archive, plain, tmp_path, option, sharded):
    store = tmp_path / "r.zarr"
    squall("convert", archive, store, *PLAIN, *option, *sharded)
    with xr.open_zarr(store) as ds:  # which knows no bitround
        for name in VARIABLES:
            bits, exact = (5 if name == "t" else 11), plain[name].values
            rounded = np.frombuffer(numcodecs.BitRound(bits).encode(exact.copy()), "f4").reshape(exact.shape)
            np.testing.assert_array_equal(ds[name].values, np.where(np.isnan(exact), exact, rounded))
            assert ds[name].attrs["_QuantizeBitRoundNumberOfSignificantBits"] == bits
    assert squall("convert", archive, store, *PLAIN, *option, *sharded).out.count("nothing new") == 1


def test_each_variable_has_its_own(squall, archive, plain, tmp_path):
    store = tmp_path / "e.zarr"
    how = "--codec t=gzip:level=3;r=none;*=zstd:level=3 --dtype t=float64,*=float32 --shards t:y=40".split()
    squall("convert", archive, store, "--chunks", PLAIN[1] + ",t:y=20,r:step=1", *how)
    arrays = zarr.open_group(store, mode="r")
    assert [arrays[name].chunks for name in VARIABLES] == [(1, 3, 10, 10), (1, 1, 10, 10), (1, 3, 10, 10), (1, 3, 20, 10)]
    assert arrays["t"].shards == (1, 3, 40, 10) and arrays["t"].dtype == "f8" and arrays["r"].dtype == "f4"
    codecs = {name: [type(codec).__name__ for codec in arrays[name].compressors] for name in VARIABLES}
    assert codecs == {"dpt": ["ZstdCodec"], "r": [], "si10": ["ZstdCodec"], "t": ["GzipCodec"]}
    for name in ("dpt", "r", "si10"):
        np.testing.assert_array_equal(arrays[name][:], plain[name].values)
    np.testing.assert_array_equal(arrays["t"][:].astype("f4"), plain["t"].values)


@pytest.mark.parametrize(
    "args, words",
    [
        ("--bitround 30", "more than the 23 that float32 has"),
        ("--bitround t=0", '"0" is no number of bits'),
        ("--bitround q=5", 'no variable "q"; there are dpt'),
        ("--bitround 5,6", "given twice"),
        ("--codec bitround", "wants its keepbits"),
        ("--codec zstd:level=1+bitround:keepbits=3", "stands before those that work on bytes"),
        ("--bitround 9 --codec bitround:keepbits=3", "rounded twice"),
        ("--shards y=7", "no multiple of dpt's chunks, which have 37"),
        ("--shards q=1", 'no dimension "q"'),
        ("--shards q:y=37", 'no variable "q"'),
        ("--chunks t:init_time=2", "give all variables the same there"),
        ("--codec t=none;t=none", "two chains for t"),
        ("--codec q=none", 'no variable "q"'),
        ("--chunks t:=3", "VARIABLE:DIMENSION=LENGTH"),
        ("--chunks y=3,t:y=4,t:y=5", "y is given twice"),
    ],
)
def test_what_makes_no_sense_is_said(squall, archive, tmp_path, args, words):
    done = squall("convert", archive, tmp_path / "x.zarr", *args.split(), check=False)
    assert done.code == 2 and words in done.err and not (tmp_path / "x.zarr").exists()


def test_too_little_memory_names_the_option_that_makes_the_files(squall, archive, tmp_path):
    """And a length that it takes: a multiple of the chunks'."""
    how = ["--chunks", "init_time=3,step=all,y=all,x=all", "--memory", "64M"]
    done = squall("convert", archive, tmp_path / "x.zarr", *how, "--shards", "init_time=30000", check=False)
    (length,) = re.findall(r"give --shards init_time=(\d+), or --memory", done.err)
    assert done.code == 1 and int(length) % 3 == 0
    assert squall("convert", archive, tmp_path / "x.zarr", *how, "--shards", f"init_time={length}").code == 0
    small_files.write(tmp_path / "a.nc", 0)
    done = squall("convert", tmp_path / "a.nc", tmp_path / "a.zarr", "--memory", "64M", "--shards", "time=4000000", check=False)
    assert done.code == 1 and "or shorter --shards" in done.err


@pytest.mark.parametrize("change, words", [("--shards init_time=4", "--shards is [2,3,10,10] there and [4,3,10,10]"), ("", "--shards is")])
def test_another_layout_is_refused_by_name(squall, archive, tmp_path, change, words):
    store = tmp_path / "x.zarr"
    squall("convert", archive, store, *PLAIN, "--shards", "init_time=2")
    done = squall("convert", archive, store, *PLAIN, *change.split(), check=False)
    assert done.code == 4 and words in done.err


def test_the_plan_tells_of_it(squall, archive, tmp_path):
    how = [*PLAIN, "--shards", "init_time=2", "--codec", "t=none;zstd:level=3", "--bitround", "7"]
    text = squall("convert", archive, tmp_path / "x.zarr", "-n", *how).out
    assert "chunks 1 × 3 × 10 × 10 in shards 2 × 3 × 10 × 10" in text
    assert "codec of t: bitround(7) + bytes\n" in text and "codec of r: bitround(7) + bytes + zstd(3)\n" in text


def test_files_of_arrays_are_laid_out_so_too(squall, tmp_path):
    """Integers and flags are not rounded; what is fill is not stored, in shards, too."""
    paths = [tmp_path / f"{day}.nc" for day in range(3)]
    for day, path in enumerate(paths):
        small_files.write(path, day)
    how = "--chunks time=4,lat=3,lon=5 --shards time=8,lat=all,lon=all --bitround 6 --codec t=zstd:level=1;none".split()
    squall("convert", *paths, tmp_path / "a.zarr", "--chunks", "time=4")
    squall("convert", *paths, tmp_path / "b.zarr", *how)
    for name in small_files.FIELDS:
        exact, stored = array(tmp_path / "a.zarr", name)[:], array(tmp_path / "b.zarr", name)
        assert stored.shards == (8, 6, 10)
        if name == "t":
            rounded = np.frombuffer(numcodecs.BitRound(6).encode(exact.copy()), "f4").reshape(exact.shape)
            assert (exact == small_files.FILL).sum() and (rounded[exact == small_files.FILL] != small_files.FILL).all()
            exact = np.where(exact == small_files.FILL, exact, rounded)  # what is missing stays missing
        np.testing.assert_array_equal(stored[:], exact)
    done = squall("convert", *paths, tmp_path / "c.zarr", "--bitround", "p=6", check=False)
    assert done.code == 2 and "p is int16: only floats can be rounded" in done.err


def rows_of(path, positive, start):
    """Two steps of temperature on a regular grid of 4 × 3, as jScansPositively says; row k from the south holds 10 k + column + step."""
    import eccodes

    with open(path, "wb") as out:
        for step in (0, 6):
            handle = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
            south = 10.0 * np.arange(4)[:, None] + np.arange(3) + step
            keys = {"Ni": 3, "Nj": 4, "iDirectionIncrementInDegrees": 1, "jDirectionIncrementInDegrees": 2}
            keys |= {"longitudeOfFirstGridPointInDegrees": 0, "longitudeOfLastGridPointInDegrees": 2}
            first, last = (40, 46) if positive else (46, 40)
            keys |= {"latitudeOfFirstGridPointInDegrees": first, "latitudeOfLastGridPointInDegrees": last}
            keys |= {
                "jScansPositively": int(positive),
                "shortName": "2t",
                "dataDate": start,
                "dataTime": 0,
                "step": step,
                "bitsPerValue": 16,
            }
            for key, value in keys.items():
                eccodes.codes_set(handle, key, value)
            eccodes.codes_set_values(handle, (south if positive else south[::-1]).ravel())
            eccodes.codes_write(handle, out)
            eccodes.codes_release(handle)
    return path


@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("first", [True, False])
def test_rows_run_as_asked(squall, tmp_path, order, first):
    """Whatever way the files' rows run; of runs that come later, too."""
    paths = [rows_of(tmp_path / f"{day}.grib2", positive=first == (day == 0), start=20240101 + day) for day in range(2)]
    store, together = tmp_path / "grown.zarr", tmp_path / "together.zarr"
    for path in paths:
        squall("convert", path, store, "--y-order", order, "--every", "1d")
    squall("convert", *paths, together, "--y-order", order, "--every", "1d")
    assert files(store) == files(together)
    with xr.open_zarr(store) as ds:
        assert list(ds.latitude.values) == ([40, 42, 44, 46] if order == "ascending" else [46, 44, 42, 40])
        south = ds.t2m.sel(latitude=[40, 42, 44, 46]).values
        np.testing.assert_allclose(
            south, 10 * np.arange(4)[:, None] + np.arange(3) + np.array([0, 6])[:, None, None] + np.zeros((2, 1, 1, 1)), atol=1e-3
        )
        attributes = ds.t2m.attrs
        ends = [attributes[f"GRIB_latitudeOf{end}GridPointInDegrees"] for end in ("First", "Last")]
        assert ends == [ds.latitude.values[0], ds.latitude.values[-1]] and attributes["GRIB_jScansPositively"] == (order == "ascending")


def test_turned_rows_are_the_others_backwards(squall, archive, plain, tmp_path):
    """Of a projection, and of block means, whose last block is cut at the other end then."""
    squall("convert", archive, tmp_path / "up.zarr", "--y-order", "ascending")
    squall("convert", archive, tmp_path / "same.zarr", "--y-order", "descending")
    with xr.open_zarr(tmp_path / "up.zarr") as up, xr.open_zarr(tmp_path / "same.zarr") as same:
        for name in (*VARIABLES, "y"):
            np.testing.assert_array_equal(same[name].values, plain[name].values)
            np.testing.assert_array_equal(up.isel(y=slice(None, None, -1))[name].values, plain[name].values)
        squall("convert", archive, tmp_path / "coarse.zarr", "--y-order", "ascending", "--coarsen", "y=4,x=1")
        with xr.open_zarr(tmp_path / "coarse.zarr") as coarse:
            means = up.t.astype("f8").coarsen(y=4, boundary="pad").mean()
            np.testing.assert_allclose(coarse.t.values, means.values, rtol=1e-6)
            np.testing.assert_allclose(coarse.y.values, means.y.values)


def test_the_order_of_rows_is_part_of_the_layout(squall, archive, tmp_path):
    squall("convert", archive, tmp_path / "a.zarr", "--y-order", "ascending")
    done = squall("convert", archive, tmp_path / "a.zarr", check=False)
    assert done.code == 4 and '--y-order is "ascending" there and absent now' in done.err
    small_files.write(tmp_path / "x.nc", 0)
    done = squall("convert", tmp_path / "x.nc", tmp_path / "x.zarr", "--y-order", "ascending", check=False)
    assert done.code == 2 and "--y-order is for GRIB" in done.err
