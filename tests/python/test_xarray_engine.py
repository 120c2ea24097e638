"""xarray's engine "squall": what is read when, keys, sources, keywords, encodings, groups; against xarray in memory and its engines."""

import asyncio
import inspect
import io
import os
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
h5py = pytest.importorskip("h5py")
import squall  # noqa: E402
import squall.xarray as squall_xarray  # noqa: E402
from squall.xarray import ArrayOfFile, SquallBackendEntrypoint  # noqa: E402
from xarray.core import indexing  # noqa: E402


def example(seed=0):
    rng = np.random.default_rng(seed)
    return xr.Dataset(
        {
            "t": (("time", "y", "x"), rng.normal(280, 10, (6, 20, 30)).astype("f4"), {"units": "K"}),
            "packed": (("time", "y"), rng.integers(-100, 100, (6, 20)) * 0.5, {"long_name": "packed"}),
            "names": (("y",), np.array([f"row {i} ä" for i in range(20)], dtype=object)),
            "flag": ((), np.int8(3)),
        },
        coords={
            "time": ("time", np.array("2026-01-01", "M8[ns]") + np.arange(6) * np.timedelta64(6, "h")),
            "lat": ("y", np.linspace(50, 60, 20)),
        },
        attrs={"title": "an example", "numbers": np.array([1, 2, 3])},
    )


ENCODING = {
    "t": {"chunksizes": (2, 7, 30), "zlib": True, "complevel": 3, "shuffle": True, "_FillValue": np.float32(-1)},
    "packed": {"dtype": "i2", "scale_factor": 0.5, "add_offset": 1.0, "_FillValue": np.int16(-32768)},
}


@pytest.fixture
def netcdf4(tmp_path):
    path = tmp_path / "example.nc"
    example().to_netcdf(path, engine="netcdf4", encoding=ENCODING, unlimited_dims=["time"])
    return path


@pytest.fixture
def netcdf3(tmp_path):
    path = tmp_path / "example3.nc"
    example().drop_vars("names").to_netcdf(path, engine="netcdf4", format="NETCDF3_64BIT", unlimited_dims=["time"])
    return path


@pytest.fixture(params=[2, 3])
def zarr(request, tmp_path):
    pytest.importorskip("zarr")
    path = tmp_path / f"example{request.param}.zarr"
    ds = example()
    ds.to_zarr(path, zarr_format=request.param, encoding={"t": {"chunks": (2, 7, 30)}}, consolidated=request.param == 2)
    return path


# ---- the same as xarray's engines ------------------------------------------------------------------------------------------------------


def compared(found, expected, encodings):
    xr.testing.assert_identical(found.load(), expected.load())
    for name in expected.variables:
        assert found[name].dtype == expected[name].dtype, name
        assert found[name].encoding["dtype"] == expected[name].encoding["dtype"], name
        told = {key: expected[name].encoding[key] for key in encodings if key in expected[name].encoding}
        assert repr({key: found[name].encoding.get(key) for key in told}) == repr(told), name
        assert list(found[name].attrs) == list(expected[name].attrs)


NETCDF = [
    "chunksizes",
    "contiguous",
    "zlib",
    "complevel",
    "shuffle",
    "fletcher32",
    "preferred_chunks",
    "_FillValue",
    "scale_factor",
    "source",
]


def test_netcdf4_is_as_engine_netcdf4_has_it(netcdf4):
    found, expected = xr.open_dataset(netcdf4, engine="squall"), xr.open_dataset(netcdf4, engine="netcdf4")
    assert found.encoding == expected.encoding | {"source": str(netcdf4)}
    names = found.names.encoding["dtype"]
    assert names.kind == "O" and names.metadata == {"element_type": str}
    found, expected = found.drop_vars("names"), expected.drop_vars("names")
    compared(found, expected, [*NETCDF, "original_shape", "units", "calendar"])


def test_texts_are_as_engine_h5netcdf_has_them(netcdf4):
    found, expected = (xr.open_dataset(netcdf4, engine=engine).names.load() for engine in ("squall", "h5netcdf"))
    xr.testing.assert_identical(found, expected)
    as_bytes = xr.open_dataset(netcdf4, engine="squall", decode_vlen_strings=False).names
    assert as_bytes.values[1] == "row 1 ä".encode()


@pytest.mark.parametrize("decoders", [{"decode_cf": False}, {"mask_and_scale": False}, {"decode_times": False}, {"decode_coords": "all"}])
def test_decoding_is_xarrays(netcdf4, decoders):
    found, expected = (xr.open_dataset(netcdf4, engine=engine, **decoders).drop_vars("names") for engine in ("squall", "netcdf4"))
    compared(found, expected, [])


def test_netcdf3_is_as_engine_netcdf4_has_it(netcdf3):
    found, expected = xr.open_dataset(netcdf3, engine="squall"), xr.open_dataset(netcdf3, engine="netcdf4")
    compared(found, expected, ["_FillValue", "units", "source"])
    assert found.encoding["unlimited_dims"] == {"time"}


def test_zarr_is_as_engine_zarr_has_it(zarr):
    with pytest.warns(RuntimeWarning) if zarr.name == "example3.zarr" else pytest.MonkeyPatch.context():
        expected = xr.open_dataset(zarr, engine="zarr")
    found = xr.open_dataset(zarr, engine="squall")
    compared(found, expected, ["chunks", "preferred_chunks", "compressors", "filters", "shards", "serializer", "_FillValue"])


@pytest.mark.parametrize("shards", [None, (4, 14, 30)])
def test_zarr_again_is_stored_as_before(tmp_path, shards):
    zarr_python = pytest.importorskip("zarr")
    codec = zarr_python.codecs.BloscCodec(cname="lz4", clevel=3, shuffle="bitshuffle")
    encoding = {"t": {"chunks": (2, 7, 30), "shards": shards, "compressors": [codec], "fill_value": 5.0}}
    example().to_zarr(tmp_path / "first.zarr", encoding=encoding, zarr_format=3, consolidated=False)
    xr.open_dataset(tmp_path / "first.zarr", engine="squall").to_zarr(tmp_path / "second.zarr", zarr_format=3, consolidated=False)
    first, second = ((tmp_path / name / "t" / "zarr.json").read_text() for name in ("first.zarr", "second.zarr"))
    assert first == second


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_netcdf_again_is_stored_as_before(netcdf4, tmp_path, engine):
    xr.open_dataset(netcdf4, engine="squall").to_netcdf(tmp_path / "again.nc", engine=engine)
    with h5py.File(netcdf4) as first, h5py.File(tmp_path / "again.nc") as second:
        assert list(first) == list(second)
        for name, a in first.items():
            b = second[name]
            assert (a.dtype, a.shape, a.maxshape, a.chunks) == (b.dtype, b.shape, b.maxshape, b.chunks), name
            assert (a.compression, a.compression_opts, a.shuffle) == (b.compression, b.compression_opts, b.shuffle), name
            if a.dtype.kind != "O":
                assert np.array_equal(a[()], b[()]), name


def test_enumerations_are_stored_again(tmp_path):
    nc4 = pytest.importorskip("netCDF4")
    names = {"clear": 0, "cloudy": 1, "missing": 255}
    with nc4.Dataset(tmp_path / "first.nc", "w") as file:
        kind = file.createEnumType(np.uint8, "cloud_type", names)
        file.createDimension("x", 3)
        for name in ("a", "b"):
            file.createVariable(name, kind, ("x",), fill_value=255)[:] = [0, 1, 255]
    ds = xr.open_dataset(tmp_path / "first.nc", engine="squall")
    assert ds.a.encoding["dtype"].metadata == ds.b.encoding["dtype"].metadata == {"enum": names, "enum_name": "a_t"}
    for engine in ("netcdf4", "h5netcdf"):
        again = tmp_path / f"{engine}.nc"
        ds.to_netcdf(again, engine=engine)
        with nc4.Dataset(again) as file:
            assert file["b"].datatype.enum_dict == names and file["b"][:].tolist() == [0, 1, None]


def test_texts_of_an_index_are_of_one_length(tmp_path):
    xr.Dataset({"names": ("x", ["a", "bc"])}, {"x": ["foo", "bär"]}).to_netcdf(tmp_path / "a.nc", engine="netcdf4")
    found, expected = (xr.open_dataset(tmp_path / "a.nc", engine=engine) for engine in ("squall", "netcdf4"))
    assert found.x.dtype == expected.x.dtype == "U3" and found.x.encoding["dtype"] == expected.x.encoding["dtype"]
    xr.testing.assert_identical(found, expected)


# ---- what is read when -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def damaged(tmp_path):
    """Chunks that cannot be decoded, but for the first one."""
    path = tmp_path / "damaged.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=np.arange(6000.0).reshape(60, 100), chunks=(10, 100), compression="gzip")
        texts = file.create_dataset(
            "texts", data=[f"text {i}" for i in range(60)], chunks=(10,), compression="gzip", dtype=h5py.string_dtype()
        )
        places = [d.id.get_chunk_info(i) for d in (file["a"], texts) for i in range(6)]
    content = bytearray(path.read_bytes())
    for place in places[1:]:
        content[place.byte_offset : place.byte_offset + place.size] = b"\xff" * place.size
    path.write_bytes(content)
    return path


def test_neither_opening_nor_repr_reads_a_chunk(damaged):
    ds = xr.open_dataset(damaged, engine="squall")
    assert "texts" in repr(ds) and "a" in ds._repr_html_()
    for name in ("a", "texts"):
        with pytest.raises(squall.Error, match=name):
            ds[name].load()


def test_only_what_is_selected_is_read(damaged):
    ds = xr.open_dataset(damaged, engine="squall")
    whole = np.arange(6000.0).reshape(60, 100)
    rows, columns = ds.dims
    assert np.array_equal(ds.a[:10].values, whole[:10])
    assert np.array_equal(ds.a.isel({rows: [3, 1], columns: [5, 7]}).values, whole[np.ix_([3, 1], [5, 7])])
    points = {rows: xr.DataArray([0, 9, 2], dims="p"), columns: xr.DataArray([1, 1, 99], dims="p")}
    assert np.array_equal(ds.a.isel(points).values, whole[[0, 9, 2], [1, 1, 99]])
    assert np.array_equal(ds.a.isel({rows: slice(0, 10)}).T.values, whole[:10].T)
    with pytest.raises(squall.Error):
        ds.a[:11].load()


def test_loading_opens_no_file_for_good(netcdf4):
    before = squall.set_options(max_open_files=1)
    try:
        datasets = [xr.open_dataset(netcdf4, engine="squall").load() for _ in range(20)]
    finally:
        squall.set_options(**before)
    assert squall.handles().open <= max(1, squall.handles().limit) and len(datasets) == 20


# ---- keys ------------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cube(tmp_path_factory):
    values = np.arange(7 * 11 * 13).reshape(7, 11, 13)
    path = tmp_path_factory.mktemp("cube") / "cube.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=values, chunks=(3, 4, 5), compression="gzip")
    return values, squall.open(path)["a"]


def random_indexer(rng, length):
    kind = rng.randrange(5)
    if kind == 0:
        return rng.randrange(length)
    if kind == 1:
        start, stop = sorted(rng.sample(range(length + 1), 2))
        return slice(start, stop, rng.choice([1, 1, 2, 3]))
    if kind == 2:
        return slice(None, None, rng.choice([-1, -2]))
    if kind == 3:
        return np.array([rng.randrange(length) for _ in range(rng.randrange(0, 6))], int)
    return slice(None)


@pytest.mark.parametrize("seed", range(40))
def test_chains_of_selections_give_what_they_give_in_memory(cube, seed):
    rng, (values, array) = random.Random(seed), cube
    dims = ("a", "b", "c")
    lazy = xr.Variable(dims, indexing.LazilyIndexedArray(ArrayOfFile(array, array.dtype)))
    here = xr.Variable(dims, values)
    for _ in range(3):
        if not here.ndim or 0 in here.shape:
            break
        if rng.random() < 0.4:
            order = rng.sample(here.dims, here.ndim)
            lazy, here = lazy.transpose(*order), here.transpose(*order)
        elif rng.random() < 0.5:
            key = {d: random_indexer(rng, n) for d, n in here.sizes.items()}
            lazy, here = lazy.isel(key), here.isel(key)
        else:
            chosen = rng.sample(here.dims, rng.randrange(1, here.ndim + 1))
            shape = rng.choice([(4,), (2, 3), (1,), (0,)])
            points = [f"p{rng.random()}" for _ in shape]
            picks = np.random.default_rng(seed)
            key = {d: xr.Variable(points, picks.integers(0, here.sizes[d], shape)) for d in chosen}
            lazy, here = lazy.isel(key), here.isel(key)
    xr.testing.assert_identical(lazy.load(), here)


@pytest.mark.parametrize("dense", [False, True])
def test_a_mesh_is_read_dimension_by_dimension(cube, dense, monkeypatch):
    values, array = cube
    y, x = np.meshgrid([5, 0, 9], [12, 3], indexing="ij") if dense else np.ix_([5, 0, 9], [12, 3])
    backend, asked = ArrayOfFile(array, array.dtype), []
    monkeypatch.setattr("squall._select.read_points", lambda *_: asked.append(_))
    for key in [(slice(1, 4), y, x), (slice(None), x % 11, y), (slice(None), y.T, x.T)]:
        expected = np.moveaxis(values[key[0]][:, key[1], key[2]], 0, -1)
        assert np.array_equal(backend[indexing.VectorizedIndexer(key)], expected)
    one = np.full((1, 1), 2)
    assert np.array_equal(backend[indexing.VectorizedIndexer((one, y, x))], values[one, y, x])
    assert asked == []


def test_points_decode_each_chunk_once(tmp_path):
    path = tmp_path / "large.h5"
    values = np.arange(4000 * 600).reshape(4000, 600)
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=values, chunks=(1000, 600), compression="gzip", compression_opts=1)
    ds = xr.open_dataset(path, engine="squall")
    rng = np.random.default_rng(1)
    y, x = xr.DataArray(rng.choice([5, 3999], 3000), dims="p"), xr.DataArray(rng.integers(0, 600, 3000), dims="p")
    before = squall.handles().hits
    found = ds.a[y, x].values
    assert squall.handles().hits - before <= 40  # two chunks, and the metadata that tell where they lie
    assert np.array_equal(found, values[y.values, x.values])


def test_load_async_reads_the_same(netcdf4):
    ds = xr.open_dataset(netcdf4, engine="squall")
    expected = ds.load().copy()

    async def load():
        return await xr.open_dataset(netcdf4, engine="squall").load_async()

    xr.testing.assert_identical(asyncio.run(load()), expected)


def test_what_one_turn_of_the_loop_asks_for_is_read_together(netcdf4, monkeypatch):
    calls, together = [], squall_xarray._read_together
    monkeypatch.setattr(squall_xarray, "_read_together", lambda asked: calls.append(len(asked)) or together(asked))
    expected = xr.open_dataset(netcdf4, engine="squall").load()

    async def load():
        first, second = (xr.open_dataset(netcdf4, engine="squall") for _ in range(2))
        points = {"y": xr.DataArray([1, 19], dims="p"), "x": xr.DataArray([0, 29], dims="p")}
        return await asyncio.gather(first.load_async(), second.t.isel(points).load_async(), second.t.isel(time=-1, y=[3, 1]).load_async())

    whole, points, rows = asyncio.run(load())
    xr.testing.assert_identical(whole, expected)
    xr.testing.assert_identical(points, expected.t.isel(y=xr.DataArray([1, 19], dims="p"), x=xr.DataArray([0, 29], dims="p")))
    xr.testing.assert_identical(rows, expected.t.isel(time=-1, y=[3, 1]))
    assert len(calls) == 1 and calls[0] >= 5


def test_of_reads_in_one_turn_only_what_is_damaged_fails(damaged):
    ds = xr.open_dataset(damaged, engine="squall")

    async def load():
        return await asyncio.gather(ds.a.load_async(), ds.a[:10].load_async(), ds.texts.load_async(), return_exceptions=True)

    damaged_part, good, damaged_texts = asyncio.run(load())
    assert isinstance(damaged_part, squall.Error) and isinstance(damaged_texts, squall.Error)
    assert good.values[-1, -1] == 999


def test_lazy_variables_compute_as_loaded_ones(netcdf4):
    ds, loaded = (xr.open_dataset(netcdf4, engine="squall").drop_vars("names") for _ in range(2))
    loaded.load()
    for compute in (
        lambda d: d.dropna("time"),
        lambda d: d.t.where(d.t > 280).fillna(0),
        lambda d: d.transpose()[["t"]].isel(y=[1, 2]).mean("x"),
        lambda d: d.rolling(time=2).max()[["packed"]],
        lambda d: d.sortby("lat", ascending=False).astype("f8").sel(time="2026-01-01"),
    ):
        xr.testing.assert_identical(compute(ds), compute(loaded))


# ---- sources ---------------------------------------------------------------------------------------------------------------------------


def test_bytes_and_file_objects_are_read_from_memory(netcdf4, netcdf3, monkeypatch):
    for path in (netcdf4, netcdf3):
        content, expected = path.read_bytes(), xr.open_dataset(path, engine="squall").load()
        with open(path, "rb") as file:
            for source in (content, memoryview(content), io.BytesIO(content), file):
                ds = xr.open_dataset(source, engine="squall")
                assert "source" not in ds.encoding and "source" not in ds.t.encoding
                xr.testing.assert_identical(ds.load(), expected)


def test_lists_and_patterns_are_one_dataset(tmp_path):
    whole = example().drop_vars("names")
    for i in range(3):
        part = whole.isel(time=slice(2 * i, 2 * i + 2))
        part.to_netcdf(
            tmp_path / f"part{i}.nc", engine="netcdf4", unlimited_dims=["time"], encoding={"time": {"units": "hours since 2026-01-01"}}
        )
    paths = sorted(tmp_path.glob("*.nc"))
    with xr.open_mfdataset(paths, engine="netcdf4", data_vars="minimal", coords="minimal", compat="override") as ds:
        expected = ds.load()
    for source in (paths, tuple(map(str, paths)), str(tmp_path / "*.nc"), tmp_path / "part?.nc"):
        found = xr.open_dataset(source, engine="squall")
        assert found.encoding["unlimited_dims"] == {"time"}
        xr.testing.assert_identical(found.load(), expected)
    given = xr.open_dataset(paths[::-1], engine="squall", order="given", concat_dim="time", drift="first")
    assert given.time[0] == whole.time[4]
    with pytest.raises(FileNotFoundError):
        xr.open_dataset(str(tmp_path / "*.nope"), engine="squall")


def test_many_files_are_chunked_by_whole_files(tmp_path):
    for i in range(5):
        data = xr.DataArray(np.full((2, 512, 512), i, "f4"), dims=("time", "y", "x"), coords={"time": [2 * i, 2 * i + 1]}, name="a")
        data.to_dataset().to_netcdf(tmp_path / f"{i}.nc", engine="netcdf4")
    ds = xr.open_dataset(str(tmp_path / "*.nc"), engine="squall", chunks={})
    assert ds.a.chunks == ((4, 4, 2), (512,), (512,)) and ds.a.encoding["preferred_chunks"]["time"] == (4, 4, 2)
    assert float(ds.a.mean().compute()) == 2.0


def test_what_open_mfdataset_opens_can_be_closed(tmp_path):
    for i in range(3):
        xr.Dataset({"a": ("t", [1.0 * i])}, {"t": [i]}).to_netcdf(tmp_path / f"{i}.nc", engine="netcdf4")
    with xr.open_mfdataset(str(tmp_path / "*.nc"), engine="squall") as ds:
        assert ds.a.sum() == 3
    with xr.open_dataset(tmp_path / "0.nc", engine="squall") as ds:
        assert ds.a[0] == 0
    assert ds.a.values.tolist() == [0]  # nothing was closed


def test_a_folder_of_files_is_refused_with_the_pattern(netcdf4):
    with pytest.raises(ValueError, match=r"\*\.nc"):
        xr.open_dataset(netcdf4.parent, engine="squall")


def test_what_is_no_source_is_refused_by_name(zarr):
    zarr_python = pytest.importorskip("zarr")
    with pytest.raises(TypeError, match="LocalStore"):
        xr.open_dataset(zarr_python.storage.LocalStore(zarr), engine="squall")
    with pytest.raises(TypeError, match="dict"):
        xr.open_dataset({}, engine="squall")
    with pytest.raises(NotImplementedError, match="https"):
        xr.open_dataset("https://example.org/a.nc", engine="squall")
    with pytest.raises(FileNotFoundError):
        xr.open_dataset("nowhere.nc", engine="squall")


# ---- keywords --------------------------------------------------------------------------------------------------------------------------


def test_keywords_of_other_engines_are_taken(netcdf4, zarr):
    expected = xr.open_dataset(netcdf4, engine="squall").load()
    for keywords in (
        {"mode": "r", "format": "NETCDF4", "clobber": True, "diskless": False, "persist": False, "lock": False, "autoclose": True},
        {"invalid_netcdf": True, "phony_dims": "sort", "driver": None, "driver_kwds": None, "storage_options": None, "open_kwargs": None},
        {"auto_complex": None, "decode_vlen_strings": True, "device": None},
    ):
        xr.testing.assert_identical(xr.open_dataset(netcdf4, engine="squall", **keywords).load(), expected)
    xr.open_dataset(
        zarr, engine="squall", mode="r", zarr_format=int(zarr.stem[-1]), chunk_store=None, cache_members=True, consolidated=None
    )


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf", "zarr"])
@pytest.mark.parametrize("method", ["open_dataset", "open_datatree", "open_groups_as_dict"])
def test_every_keyword_of_other_engines_is_known(netcdf4, engine, method):
    theirs = inspect.signature(getattr(xr.backends.list_engines()[engine], method)).parameters.values()
    defaults = {p.name: p.default for p in theirs if p.kind is p.KEYWORD_ONLY and p.default is not p.empty}
    assert len(defaults) >= 12 and "group" in defaults
    getattr(SquallBackendEntrypoint(), method)(netcdf4, **defaults)


def test_keywords_that_cannot_be_honoured_are_refused_by_name(netcdf4, zarr):
    for keywords, error in (
        ({"mode": "a"}, ValueError),
        ({"group": ("one", "two")}, ValueError),
        ({"device": "cuda"}, NotImplementedError),
        ({"chunk_store": {}}, TypeError),
        ({"nonsense": 1}, TypeError),
    ):
        with pytest.raises(error, match=next(iter(keywords))):
            xr.open_dataset(netcdf4, engine="squall", **keywords)
    with pytest.raises(ValueError, match="zarr_format"):
        xr.open_dataset(zarr, engine="squall", zarr_format=5 - int(zarr.stem[-1]))


def test_fill_values_are_masks_where_that_is_asked_for(tmp_path):
    pytest.importorskip("zarr")
    for version in (2, 3):
        path = tmp_path / f"{version}.zarr"
        squall.create_array(path, "a", data=np.array([1, 5, 2], "i4"), dims=("x",), fill_value=5, zarr_format=version)
        for asked in (None, True, False):
            ds = xr.open_dataset(path, engine="squall", use_zarr_fill_value_as_mask=asked)
            masks = version == 2 if asked is None else asked
            assert bool(np.isnan(ds.a.values[1])) == masks


def test_only_what_no_other_engine_claims_is_guessed(netcdf4, zarr, tmp_path):
    engine = xr.backends.list_engines()["squall"]
    assert not engine.guess_can_open(netcdf4) and not engine.guess_can_open(str(zarr)) and not engine.guess_can_open("nowhere.nc")
    unnamed = tmp_path / "store"
    os.rename(zarr, unnamed)
    assert engine.guess_can_open(unnamed)
    xr.testing.assert_identical(xr.open_dataset(unnamed).load(), xr.open_dataset(unnamed, engine="squall").load())
    assert not engine.guess_can_open(pathlib.Path(__file__))


# ---- groups and what has no names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["netcdf", "zarr"])
def test_a_datatree_is_as_xarrays_own_engine_has_it(tmp_path, kind):
    inner = xr.Dataset({"b": ("k", [1.0, 2.0])}, attrs={"level": 2})
    tree = xr.DataTree.from_dict({"/": example().drop_vars("names"), "/one": inner, "/one/two": inner * 2, "/three": xr.Dataset()})
    path = tmp_path / f"tree.{kind}"
    tree.to_netcdf(path, engine="netcdf4") if kind == "netcdf" else tree.to_zarr(path, zarr_format=2)
    expected = xr.open_datatree(path, engine={"netcdf": "netcdf4"}.get(kind, kind))
    found = xr.open_datatree(path, engine="squall")
    xr.testing.assert_identical(found.load(), expected.load())
    assert found.encoding["source"] == str(path)
    for group in ("one", "/one/two"):
        for function in (xr.open_datatree, xr.open_dataset):
            wanted = function(path, engine={"netcdf": "netcdf4"}.get(kind, kind), group=group)
            xr.testing.assert_identical(function(path, engine="squall", group=group).load(), wanted.load())
    assert set(xr.open_groups(path, engine="squall")) == {"/", "/one", "/one/two", "/three"}
    with pytest.raises(ValueError, match="nope"):
        xr.open_dataset(path, engine="squall", group="nope")


def test_dimensions_without_names_get_some(tmp_path):
    root = squall.create_group(tmp_path / "a.zarr")
    root.create_array("square", data=np.zeros((3, 3)))
    root.create_array("line", data=np.zeros(3))
    root.create_array("named", data=np.zeros((3, 4)), dims=("phony_dim_0", None))
    ds = xr.open_dataset(tmp_path / "a.zarr", engine="squall")
    assert ds.line.dims == ("phony_dim_1",) and ds.named.dims == ("phony_dim_0", "phony_dim_2")
    assert ds.square.dims == ("phony_dim_1", "phony_dim_3")


def test_a_path_that_is_one_array_is_a_dataset_of_it(tmp_path):
    squall.create_array(tmp_path / "a.zarr", data=np.arange(4), dims=("x",))
    ds = xr.open_dataset(tmp_path / "a.zarr", engine="squall")
    assert list(ds.data_vars) == ["a.zarr"] and ds["a.zarr"].values.tolist() == [0, 1, 2, 3]


def test_a_small_file_takes_two_openings_and_few_reads(tmp_path):
    """One by the look whether it is GRIB, one by all the rest. All headers are one read; so are each array and the index of chunks."""
    path = tmp_path / "small.nc"
    axes = {"time": np.arange(2), "y": np.arange(10.0), "x": np.arange(10.0)}
    xr.Dataset({"t": (tuple(axes), np.zeros((2, 10, 10), "f4"), {"units": "K"})}, axes).to_netcdf(path, encoding={"t": {"zlib": True}})
    script = """if True:
        import os, sys, xarray as xr
        io = os.open("/proc/self/io", os.O_RDONLY)
        def reads():
            return int(os.pread(io, 4096, 0).split()[5])
        def look():
            with xr.open_dataset(sys.argv[1], engine="squall") as ds:
                ds.load()
        look()
        before = reads()
        look()
        print(reads() - before - 1)
    """
    out = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True).stdout
    assert int(out) <= 4 + 1 + 4 + 1, out  # what it is, headers, arrays, index


@pytest.mark.parametrize(
    ("keyword", "error"), [({"order": "x"}, ValueError), ({"drift": "bad"}, ValueError), ({"concat_dim": 3}, TypeError)]
)
def test_keywords_of_many_files_are_checked(tmp_path, keyword, error):
    xr.Dataset({"t": (("x",), np.zeros(3))}).to_netcdf(tmp_path / "a.nc")
    (name,) = keyword
    for source in (tmp_path / "a.nc", [tmp_path / "a.nc"]) if name != "concat_dim" else ([tmp_path / "a.nc"],):
        with pytest.raises(error, match=f"{name}="):
            xr.open_dataset(source, engine="squall", **keyword)


def test_a_file_that_is_gone_is_told(tmp_path):
    xr.Dataset({"t": (("x",), np.zeros(3))}).to_netcdf(tmp_path / "a.nc")
    ds = xr.open_dataset(tmp_path / "a.nc", engine="squall")
    (tmp_path / "a.nc").unlink()
    with pytest.raises(squall.Error, match="a.nc is gone since it was opened"):
        ds.load()
