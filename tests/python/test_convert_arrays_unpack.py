"""--dtype of packed integers: what xarray decodes is the oracle."""

import netCDF4
import numpy as np
import pytest
import xarray as xr
import zarr
from test_convert_arrays import opened, raw

KINDS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
PACKINGS = {
    "plain": {},
    "scale": {"scale_factor": 0.01},
    "offset": {"add_offset": -273.15},
    "both": {"scale_factor": 0.01, "add_offset": 273.15},
}


def write(path, kind, first=0, width=7, **attributes):
    """v(time, y, x) of every kind of number; attributes as they are given."""
    info = np.iinfo(kind)
    rng = np.random.default_rng([ord(kind[0]), int(kind[1]), first])
    lowest, highest = max(info.min, -(2**40)), min(info.max, 2**40)
    values = rng.integers(lowest, highest, (5, 4, width), "i8" if kind != "u8" else "u8", endpoint=True).astype(kind)
    values[0, 0, :3] = 1, 2, 3
    fill = attributes.pop("_FillValue", None)
    with netCDF4.Dataset(path, "w") as ds:
        for name, length in (("time", None), ("y", 4), ("x", width)):
            ds.createDimension(name, length)
        ds.createVariable("time", "i4", ("time",))[:] = np.arange(5) + first
        v = ds.createVariable("v", kind, ("time", "y", "x"), fill_value=fill, chunksizes=(2, 4, 3), zlib=True)
        v.set_auto_maskandscale(False)
        v.setncatts(attributes)
        v[:] = values
    return path


def decoded(*paths):
    """In double precision, whatever xarray would choose."""
    parts = []
    for path in paths:
        with xr.open_dataset(path, decode_cf=False) as ds, xr.open_dataset(path, decode_times=False) as shown:
            numbers = {k: np.float64(a) for k, a in ds.v.attrs.items() if k in ("scale_factor", "add_offset")}
            wide = xr.decode_cf(ds.assign(v=ds.v.assign_attrs(numbers)), decode_times=False).v.values.astype("f8")
            np.testing.assert_array_equal(np.isnan(wide), np.isnan(shown.v.values.astype("f8")))
            parts.append(wide)
    return np.concatenate(parts)


@pytest.fixture
def store(tmp_path):
    return tmp_path / "out.zarr"


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_unpacked_as_xarray_decodes(squall, tmp_path, store, kind, packing):
    path = write(tmp_path / "a.nc", kind, **PACKINGS[packing], _FillValue=2, missing_value=np.array(2, kind), units="K")
    squall("convert", path, store, "--dtype", "v=float64", "--chunks", "time=3,x=4")
    np.testing.assert_array_equal(raw(store).v.values, decoded(path))
    assert raw(store).v.attrs == {"units": "K"} and np.isnan(zarr.open_array(store / "v", mode="r").fill_value)
    np.testing.assert_array_equal(opened(store).v.values, decoded(path))
    squall("convert", path, store, "--dtype", "v=float32", "--overwrite")
    np.testing.assert_array_equal(raw(store).v.values, decoded(path).astype("f4"))


@pytest.mark.parametrize("kind, unsigned, fill", [("i1", "true", -1), ("i2", "true", -2), ("u1", "false", 255), ("u2", "false", 3)])
def test_the_sign_is_what_an_attribute_says(squall, tmp_path, store, kind, unsigned, fill):
    path = write(tmp_path / "a.nc", kind, scale_factor=0.5, _Unsigned=unsigned, _FillValue=fill, valid_range=np.array([0, 9], kind))
    squall("convert", path, store, "--dtype", "v=float64")
    np.testing.assert_array_equal(raw(store).v.values, decoded(path))
    assert raw(store).v.attrs == {}


def test_a_type_for_all_leaves_integers_packed(squall, tmp_path, store):
    path = write(tmp_path / "a.nc", "i2", scale_factor=0.5)
    squall("convert", path, store, "--dtype", "float32")
    assert raw(store).v.dtype == np.int16 and raw(store).v.attrs["scale_factor"] == 0.5


def test_more_files_are_unpacked_by_their_own_packing(squall, tmp_path, store):
    first = write(tmp_path / "a.nc", "i2", scale_factor=0.5, add_offset=7.0, _FillValue=1)
    second = write(tmp_path / "b.nc", "i2", 5, scale_factor=0.25, _FillValue=2)
    options = ["--dtype", "v=float64", "--chunks", "time=5"]
    squall("convert", first, store, *options)
    squall("convert", second, store, *options)
    np.testing.assert_array_equal(raw(store).v.values, decoded(first, second))
    assert "nothing new" in squall("convert", second, store, *options).out and raw(store).chunk_exists.values.all()
    done = squall("convert", write(tmp_path / "c.nc", "i2", 10, units="m"), store, *options, check=False)
    assert done.code == 4 and "units is" in done.err


def test_what_does_not_fit_is_as_asked(squall, tmp_path, store):
    path = write(tmp_path / "a.nc", "i4")
    done = squall("convert", path, store, "--dtype", "v=float16", check=False)
    assert done.code == 1 and "does not fit float16" in done.err and "a.nc" in done.err
    with np.errstate(over="ignore"):
        wanted = decoded(path).astype("f4").astype("f2")
    for how, values in (("inf", wanted), ("clip", np.clip(decoded(path), -65504, 65504).astype("f2"))):
        squall("convert", path, store, "--dtype", "v=float16", "--on-overflow", how, "--overwrite")
        np.testing.assert_array_equal(raw(store).v.values, values)


def test_a_place_that_no_source_has_is_missing(squall, tmp_path, store):
    group = zarr.open_group(tmp_path / "in.zarr", mode="w")
    a = group.create_array("v", shape=(6, 4), chunks=(1, 4), dtype="i2", fill_value=0, dimension_names=("time", "x"))
    a.attrs.update(scale_factor=100.0, add_offset=60000.0)
    a[...] = 10
    chunk = tmp_path / "in.zarr" / "v" / "c" / "2" / "0"
    chunk.write_bytes(b"nonsense")
    done = squall("convert", tmp_path / "in.zarr", store, "--dtype", "v=float16", "--chunks", "time=4", check=False)
    assert done.code == 3 and "chunk 2/0" in done.err
    wanted = np.full((6, 4), 61000, "f2")
    wanted[2] = np.nan
    np.testing.assert_array_equal(raw(store).v.values, wanted)


@pytest.mark.parametrize("kind", ["int16", "uint8"])
def test_other_casts_are_refused_by_name(squall, tmp_path, store, kind):
    done = squall("convert", write(tmp_path / "a.nc", "i4"), store, "--dtype", f"v={kind}", check=False)
    assert done.code == 2 and kind in done.err


def test_a_packing_that_is_no_number_is_refused_by_name(squall, tmp_path, store):
    done = squall("convert", write(tmp_path / "a.nc", "i4", scale_factor="0.01"), store, "--dtype", "v=float32", check=False)
    assert done.code == 2 and "its scale_factor is no number" in done.err
