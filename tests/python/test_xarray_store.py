"""squall.store: what it makes is what Dataset.to_zarr makes; what would lose values is refused; a killed one has published nothing."""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")
dask = pytest.importorskip("dask")
import pandas as pd  # noqa: E402
import squall  # noqa: E402
from conftest import PACKAGE  # noqa: E402
from dask import array as dask_array  # noqa: E402
from dask.callbacks import Callback  # noqa: E402
from dask.delayed import Delayed  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # zarr-python's about consolidated metadata, xarray's about encodings
DOCUMENTS = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")


def values(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def weather(count=6, start="2000-01-01", step="6h", seed=0):
    return xr.Dataset(
        {
            "t2m": (("time", "y", "x"), values(count, 8, 10, seed=seed), {"units": "K", "range": np.array([200.0, 300.0])}),
            "rain": (("time", "y", "x"), np.where(values(count, 8, 10, seed=seed + 1) > 0, np.nan, 1.0)),
            "is_day": (("time",), np.arange(count) % 4 < 2),
        },
        coords={"time": pd.date_range(start, periods=count, freq=step), "y": np.arange(8.0), "x": np.arange(10)},
        attrs={"title": "weather", "version": 3, "levels": np.arange(3)},
    )


def of_many_types():
    return xr.Dataset(
        {
            "numbers": (("x",), np.arange(5, dtype="u1")),
            "packed": (
                ("x",),
                np.array([1.5, 2, np.nan, 3, -1]),
                {},
                {"dtype": "i2", "scale_factor": 0.5, "add_offset": 1.0, "_FillValue": -9},
            ),
            "texts": (("x",), np.array(["a", "", "ccc", "ü", "e"], dtype=object)),
            "fixed": (("x",), np.array(["a", "b", "ccc", "d", "e"])),
            "bytes": (("x",), np.array([b"a", b"b", b"ccc", b"d", b"e"])),
            "flags": (("x",), np.array([True, False, True, True, False])),
            "complex": (("x",), np.arange(5) + 1j),
            "steps": (("x",), np.arange(5).astype("m8[h]").astype("m8[ns]")),
            "when": (("x",), np.array(["2000-01-01", "NaT", "2000-01-03T01", "1850-01-01", "2000-01-01"], "M8[ns]")),
            "scalar": ((), np.float32(4)),
            "empty": (("none",), np.zeros(0, "f8")),
        },
        coords={"x": np.arange(5), "label": (("x",), list("abcde")), "height": 2.0},
    )


def documents(folder):
    return {
        os.path.relpath(os.path.join(root, f), folder): json.load(open(os.path.join(root, f)))  # noqa: SIM115
        for root, _, files in os.walk(folder)
        for f in files
        if f in DOCUMENTS
    }


def contents(folder):
    """Every file's bytes."""
    found = {}
    for root, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(root, name), "rb") as f:
                found[os.path.relpath(os.path.join(root, name), folder)] = f.read()
    return found


def check_same(ours, xarrays):
    assert documents(ours) == documents(xarrays)
    found, wanted = (xr.open_zarr(p).load() for p in (ours, xarrays))
    xr.testing.assert_identical(found, wanted)
    for name in wanted.variables:
        assert found[name].dtype == wanted[name].dtype
        assert {k: str(v) for k, v in found[name].encoding.items()} == {k: str(v) for k, v in wanted[name].encoding.items()}


@pytest.fixture
def both(tmp_path):
    """Store by squall and by xarray with the same arguments, and compare."""

    def call(ds, *, check=True, **how):
        squall.store(ds, tmp_path / "ours", **how)
        ds.to_zarr(tmp_path / "xarrays", **how)
        if check:
            check_same(tmp_path / "ours", tmp_path / "xarrays")
        return tmp_path / "ours"

    return call


# ---- what xarray makes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("chunks", [None, {"time": 2, "y": 4}])
def test_stores_are_what_xarray_makes(both, zarr_format, chunks):
    ds = weather() if chunks is None else weather().chunk(chunks)
    both(ds, zarr_format=zarr_format)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_every_type_is_stored_as_xarray_does(both, zarr_format):
    both(of_many_types(), zarr_format=zarr_format)


@pytest.mark.parametrize("chunked", [False, True])
def test_encodings_are_xarrays(both, chunked):
    ds = weather().chunk(time=4) if chunked else weather()
    shuffled = zarr.codecs.BloscCodec(cname="zstd", clevel=3, shuffle="shuffle", typesize=4)
    encoding = {
        "t2m": {"chunks": (2, 4, 5), "shards": (4, 8, 10), "compressors": (shuffled,)},
        "rain": {"dtype": "i2", "scale_factor": 0.1, "_FillValue": -1, "chunks": (2, 8, 10)},
        "time": {"units": "seconds since 1970-01-01", "dtype": "i4"},
    }
    both(ds, encoding=encoding, zarr_format=3)


def test_filters_and_compressors_of_v2_are_xarrays(both):
    numcodecs = pytest.importorskip("numcodecs")
    encoding = {
        "t2m": {"compressors": (numcodecs.Blosc(cname="lz4", clevel=1),), "filters": (numcodecs.Shuffle(4),)},
        "is_day": {"compressors": None},
    }
    both(weather().chunk(time=3), encoding=encoding, zarr_format=2)


def test_codecs_that_squall_has_not_are_zarrs(both):
    numcodecs = pytest.importorskip("numcodecs.zarr3")
    both(weather().chunk(time=3), encoding={"t2m": {"compressors": (numcodecs.LZMA(preset=1),)}}, zarr_format=3)


def test_nothing_is_stored_as_nothing(both):
    both(weather().isel(time=slice(0, 0)).chunk(y=4))


@pytest.mark.parametrize("how", [{}, {"group": "a/b"}, {"consolidated": False}, {"write_empty_chunks": True}, {"mode": "w"}, {"mode": "a"}])
def test_keywords_mean_what_they_mean_in_xarray(both, tmp_path, how):
    ds = weather().chunk(time=2)
    both(ds * 0, check=False, **how)
    found, wanted = documents(tmp_path / "ours"), documents(tmp_path / "xarrays")
    assert found == wanted
    assert set(contents(tmp_path / "ours")) == set(contents(tmp_path / "xarrays"))  # with and without chunks that are empty
    if how.get("mode") == "w":
        both(ds, **how)
    if how.get("mode") == "a":
        both(ds.rename(t2m="more"), **how)


def test_arrays_of_one_variable_and_trees(tmp_path):
    for name, array in {"named": weather().t2m, "nameless": weather().t2m.rename(None), "as_coordinate": weather().y}.items():
        squall.store(array, tmp_path / "ours" / name)
        array.to_zarr(tmp_path / "xarrays" / name)
        check_same(tmp_path / "ours" / name, tmp_path / "xarrays" / name)
    tree = xr.DataTree.from_dict({"/": weather().chunk(time=2), "/a/b": weather()[["rain"]]})
    encoding = {"/a/b": {"rain": {"dtype": "f4"}}}
    squall.store(tree, tmp_path / "tree", encoding=encoding)
    tree.to_zarr(tmp_path / "xarrays-tree", encoding=encoding)
    assert documents(tmp_path / "tree") == documents(tmp_path / "xarrays-tree")
    xr.testing.assert_identical(xr.open_datatree(tmp_path / "tree", engine="zarr").load(), tree.load())


@pytest.mark.parametrize(
    "how",
    [
        {"mode": "x"},
        {"mode": "w", "append_dim": "time"},
        {"mode": "w", "region": {"time": slice(0, 2)}},
        {"region": {"none": slice(0, 2)}},
        {"region": {"time": slice(0, 6, 2)}},
        {"region": {"time": 3}},
        {"region": {"time": slice(0, 6)}},
        {"append_dim": "none"},
        {"append_dim": "time", "region": {"time": slice(0, 2)}},
        {"mode": "a", "encoding": {"t2m": {"dtype": "f8"}}},
        {"mode": "w-"},
        {},
    ],
)
def test_errors_are_xarrays(tmp_path, how):
    for name in ("ours", "xarrays"):
        weather().to_zarr(tmp_path / name)
    before = contents(tmp_path / "ours")
    with pytest.raises(Exception) as wanted:
        weather().to_zarr(tmp_path / "xarrays", **how)
    with pytest.raises(wanted.type) as found:
        squall.store(weather(), tmp_path / "ours", **how)
    assert sorted(str(found.value).replace("ours", "xarrays")) == sorted(str(wanted.value))  # which names dimensions in any order
    assert contents(tmp_path / "ours") == before


def test_only_folders_are_stored_to(tmp_path):
    for dest in (zarr.storage.MemoryStore(), {}, None):
        with pytest.raises(TypeError, match="given by its path"):
            squall.store(weather(), dest)
    for dest in ("https://example.org/a.zarr", str(tmp_path / "a.zip")):
        with pytest.raises(ValueError, match="folder on a file system"):
            squall.store(weather(), dest)
    with pytest.raises(TypeError, match="Dataset"):
        squall.store(np.zeros(3), tmp_path / "a")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("del xarray.backends.zarr.ZarrStore._open_existing_array", "xarray.backends.zarr.ZarrStore._open_existing_array()"),
        ("del xarray.backends.zarr._choose_default_mode", "xarray.backends.zarr._choose_default_mode"),
        ("sys.modules['xarray.backends.writers'] = None", "xarray.backends.writers._validate_dataset_names"),
        (
            "xarray.backends.zarr.ZarrStore.open_group = lambda store, mode: 0",
            "parameter 'append_dim' of xarray.backends.zarr.ZarrStore.open",
        ),
    ],
)
def test_another_xarray_is_refused_by_name(tmp_path, change, name):
    script = f"import sys, xarray, xarray.backends.zarr, squall\n{change}\nsquall.store(xarray.Dataset(), {str(tmp_path / 'a')!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(PACKAGE)})
    assert f"ImportError: squall.store uses {name}" in done.stderr and f"xarray {xr.__version__}" in done.stderr
    assert not (tmp_path / "a").exists()


# ---- Dask -----------------------------------------------------------------------------------------------------------------------------


class Results(Callback):
    def __init__(self):
        self.sizes = {}

    def _posttask(self, key, result, graph, state, worker):
        self.sizes[key] = len(pickle.dumps(result))


def test_no_array_travels(tmp_path):
    data = dask_array.ones((64, 100, 100), chunks=(1, 100, 100))  # 80 kB a task
    ds = xr.Dataset({"v": (("time", "y", "x"), data)})
    later = squall.store(ds, tmp_path / "a", compute=False)
    assert isinstance(later, Delayed)
    (optimised,) = dask.optimize(later)
    assert len(pickle.dumps(dict(optimised.__dask_graph__()))) < 64 * 2000
    with Results() as results:
        dask.compute(later, scheduler="threads")
    assert max(results.sizes.values()) < 1000
    xr.testing.assert_allclose(xr.open_zarr(tmp_path / "a").load(), ds.compute())


def test_stores_are_computed_in_one_call_in_any_order_and_again(tmp_path):
    ds = weather().chunk(time=2)
    later = [squall.store(ds + i, tmp_path / f"s{i}", compute=False) for i in range(3)]
    assert np.isnan(xr.open_zarr(tmp_path / "s0").t2m).all()  # metadata first
    dask.compute(*reversed(later), scheduler="threads")
    for i in range(3):
        xr.testing.assert_identical(xr.open_zarr(tmp_path / f"s{i}").load(), (ds + i).load())
    before = contents(tmp_path / "s1")
    dask.compute(*later, scheduler="sync")
    assert contents(tmp_path / "s1") == before


@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
def test_every_scheduler_writes(tmp_path, scheduler):
    ds = weather().chunk(time=2)
    with dask.config.set(scheduler=scheduler, num_workers=2):
        squall.store(ds, tmp_path / "a")
        squall.store(weather(4, "2000-01-02T12").chunk(time=2), tmp_path / "a", append_dim="time")
    wanted = xr.concat([weather(), weather(4, "2000-01-02T12")], "time")
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "a").load(), wanted)


def test_a_cluster_of_processes_writes(tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        ds = weather(12).chunk(time=2)
        squall.store(ds, tmp_path / "a")
        later = pickle.loads(pickle.dumps(squall.store(ds, tmp_path / "b", compute=False)))
        later.compute()
        squall.store(weather(2, "2000-01-04").chunk(time=1), tmp_path / "a", append_dim="time", align_chunks=True)
    assert xr.open_zarr(tmp_path / "a").sizes["time"] == 14
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "a").isel(time=slice(0, 12)).load(), ds.load())
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "b").load(), ds.load())


# ---- chunks that two tasks would write ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{"chunks": (4, 8, 10)}, {"chunks": (2, 8, 10), "shards": (4, 8, 10)}])
def test_chunks_that_are_shared_are_refused_or_aligned(tmp_path, how):
    ds = weather(12)[["t2m"]].chunk(time=3)
    word = "shard" if "shards" in how else "chunk"
    with pytest.raises(ValueError, match=rf"'t2m'.*\(3, 3, 3, 3\), cut a {word}.*\.chunk\({{'time': \(4, 4, 4\)}}\)"):
        squall.store(ds, tmp_path / "a", encoding={"t2m": how})
    squall.store(ds.chunk(time=(4, 4, 4)), tmp_path / "a", encoding={"t2m": how}, mode="w")  # what the message says
    squall.store(ds, tmp_path / "b", encoding={"t2m": how}, align_chunks=True)
    for name in ("a", "b"):
        xr.testing.assert_identical(xr.open_zarr(tmp_path / name).load(), ds.load())
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_random_chunks_are_either_refused_or_stored_whole(tmp_path):
    """Dask's chunks, the store's and a region at random: what is accepted is right, and no chunk is written by two tasks."""
    random = np.random.default_rng(5)
    accepted = 0
    for round_number in range(30):
        length, chunk = int(random.integers(4, 20)), int(random.integers(1, 6))
        folder = tmp_path / str(round_number)
        squall.store(xr.Dataset({"v": ("x", np.zeros(length))}), folder, encoding={"v": {"chunks": (chunk,)}})
        begin = int(random.integers(0, length))
        end = int(random.integers(begin + 1, length + 1))
        cuts = np.unique(random.integers(1, end - begin, 3)) if end - begin > 1 else []
        blocks = tuple(int(n) for n in np.diff([0, *cuts, end - begin]))
        mode = ["r+", "a"][int(random.integers(2))]
        data = dask_array.from_array(np.arange(begin, end) + 1.0, chunks=(blocks,))
        shared = any((begin + c) % chunk for c in cuts)
        cut = begin % chunk or (end % chunk and end != length)
        ds, how = xr.Dataset({"v": ("x", data)}), {"region": {"x": slice(begin, end)}, "mode": mode}
        if shared or (mode == "r+" and cut):
            with pytest.raises(ValueError, match="Nearest that fits"):
                squall.store(ds, folder, **how)
            continue
        accepted += 1
        squall.store(ds, folder, **how)
        wanted = np.zeros(length)
        wanted[begin:end] = np.arange(begin, end) + 1
        assert (zarr.open_array(folder / "v")[:] == wanted).all()
    assert accepted > 5


def test_regions_that_would_lose_values_are_refused(tmp_path):  # xarray 8371
    ds = xr.Dataset({"v": (("a", "b", "c"), np.arange(120).reshape(4, 3, 10))}).chunk(2)
    squall.store(ds.chunk(5), tmp_path / "a", compute=False)
    for r in range(4):
        with pytest.raises(ValueError, match=r"Nearest that fits"):
            squall.store(ds.chunk(3).isel(a=[r]), tmp_path / "a", region={"a": slice(r, r + 1)})
    squall.store(ds.chunk(5), tmp_path / "a", region={"a": slice(0, 4)})
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "a").load(), ds.load())


def test_the_nearest_region_is_named_and_taken(tmp_path):
    ds = weather(12)[["t2m"]].drop_vars(["time", "y", "x"])
    squall.store(ds.chunk(time=4), tmp_path / "a")
    with pytest.raises(ValueError, match=r"\{'time': slice\(1, 6\)\} cuts a chunk.*fits: \{'time': slice\(0, 8\)\}"):
        squall.store((ds + 1).isel(time=slice(1, 6)).chunk(), tmp_path / "a", region={"time": slice(1, 6)})
    squall.store((ds + 1).isel(time=slice(0, 8)).chunk(time=4), tmp_path / "a", region={"time": slice(0, 8)})
    assert (xr.open_zarr(tmp_path / "a").t2m == ds.t2m + (np.arange(12) < 8)[:, None, None]).all()


def test_whole_chunks_of_a_region_are_taken(tmp_path):  # xarray 9557
    ds = xr.Dataset({"v": (("time", "y"), values(29, 5))})
    squall.store(ds.chunk(time=10), tmp_path / "a", compute=False)
    for begin in (10, 20, 0):
        part = ds.isel(time=slice(begin, begin + 10))
        squall.store(part.chunk(), tmp_path / "a", region={"time": slice(begin, min(begin + 10, 29))})
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "a").load(), ds)


def test_one_task_may_begin_within_a_chunk(tmp_path):  # xarray 9072
    ds = xr.Dataset({"v": (("x",), np.arange(7.0))})
    squall.store(ds.isel(x=slice(0, 3)).chunk(x=2), tmp_path / "a")
    squall.store(ds.isel(x=slice(3, 7)).chunk(x=(1, 2, 1)), tmp_path / "a", append_dim="x")
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "a").load(), ds)
    with pytest.raises(ValueError, match=r"\(2, 2\), cut a chunk.*from position 7 on.*\(1, 3\)|\(3, 1\)"):
        squall.store(ds.isel(x=slice(3, 7)).chunk(x=2), tmp_path / "a", append_dim="x")


def test_appends_by_dask_lose_nothing(tmp_path):  # xarray 10501
    parts = [xr.Dataset({"v": (("time", "x"), values(5, 6, seed=i))}) for i in range(8)]
    squall.store(parts[0].chunk(time=4), tmp_path / "a", encoding={"v": {"chunks": (4, 6)}})
    for part in parts[1:]:
        squall.store(part.chunk(time=1), tmp_path / "a", append_dim="time", align_chunks=True)
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "a").load(), xr.concat(parts, "time"))


def test_regions_are_found_by_coordinates(both, tmp_path):
    ds = weather(12)
    both(ds.chunk(time=4))
    part = (ds[["t2m"]] + 5).isel(time=slice(4, 8))
    both(part.drop_vars(["y", "x"]).chunk(time=4), region={"time": "auto"})
    both((part * 2).chunk(time=4), region="auto")
    wanted = ds.t2m.values
    wanted[4:8] = part.t2m.values * 2
    assert (xr.open_zarr(tmp_path / "ours").t2m.values == wanted).all()


# ---- appends --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("mode", ["a", "a-"])
def test_appends_are_what_xarray_makes(both, zarr_format, mode):
    both(weather(4).chunk(time=2), zarr_format=zarr_format)
    both(weather(3, "2000-01-02", seed=4).chunk(time=2), append_dim="time", mode=mode)
    both(weather(1, "2000-01-02T18", seed=6), append_dim="time", mode=mode)


def test_a_value_that_is_there_is_refused_with_the_call_to_use(tmp_path):
    squall.store(weather(8).chunk(time=2), tmp_path / "a")
    before = contents(tmp_path / "a")
    ds, dest = weather(2, "2000-01-01T12", seed=9), tmp_path / "a"
    with pytest.raises(ValueError, match="2000-01-01 12:00:00 is in the store already, at position 2") as e:
        squall.store(ds, dest, append_dim="time")
    assert contents(dest) == before
    exec(str(e.value).split("again: ")[1], {"squall": squall, "ds": ds, "dest": dest})
    assert (xr.open_zarr(dest).t2m[2:4] == ds.t2m).all()
    ds = weather(4, "2000-01-02T12", seed=10)  # of which two are new
    with pytest.raises(ValueError, match=r"to append what is new: ds\.isel\(time=slice\(2, 4\)\)") as e:
        squall.store(ds, dest, append_dim="time")
    exec(str(e.value).split("again: ")[1].split(";")[0], {"squall": squall, "ds": ds, "dest": dest})
    squall.store(ds.isel(time=slice(2, 4)), dest, append_dim="time")
    assert (xr.open_zarr(dest).t2m[6:] == ds.t2m).all()


@pytest.mark.parametrize("step", ["6h", "35min", "1s"])
def test_times_that_the_units_cannot_tell_are_refused(tmp_path, step):  # xarray 5969, 5106, 3379
    squall.store(weather(1, "2000-01-01T00:35"), tmp_path / "a")
    before = contents(tmp_path / "a")
    more = weather(3, pd.Timestamp("2000-01-01T00:35") + pd.Timedelta(step), step)
    with pytest.raises(
        ValueError, match=r"'time': the store counts in 'days since 2000-01-01T?.?00:35:00' as int64.*'units': '\w+ since"
    ) as e:
        squall.store(more, tmp_path / "a", append_dim="time")
    assert contents(tmp_path / "a") == before
    encoding = eval(str(e.value).split("encoding=")[1])  # what the message says holds both
    squall.store(weather(1, "2000-01-01T00:35"), tmp_path / "b", encoding=encoding)
    squall.store(more, tmp_path / "b", append_dim="time")
    assert (xr.open_zarr(tmp_path / "b").time.values == [*weather(1, "2000-01-01T00:35").time.values, *more.time.values]).all()


def test_times_as_a_narrow_type_are_refused(tmp_path):  # xarray 10639
    squall.store(weather(2), tmp_path / "a", encoding={"time": {"units": "seconds since 2000-01-01", "dtype": "i4"}})
    with pytest.raises((ValueError, OverflowError)):
        squall.store(weather(2, "2100-01-01"), tmp_path / "a", append_dim="time")
    assert xr.open_zarr(tmp_path / "a").sizes["time"] == 2


def test_numbers_counted_from_another_moment_are_refused(tmp_path):
    squall.store(weather(2), tmp_path / "a", encoding={"time": {"units": "hours since 2000-01-01"}})
    more = xr.decode_cf(weather(2, "2000-01-03")).assign_coords(time=("time", [0, 6], {"units": "hours since 2000-01-03"}))
    with pytest.raises(ValueError, match=r"decode"):
        squall.store(more, tmp_path / "a", append_dim="time")


def test_chunked_times_are_exact_or_refused(tmp_path):
    def ds(start):
        return xr.Dataset({"when": (("n",), pd.date_range(start, periods=4, freq="6h"))}).chunk(n=2)

    squall.store(ds("2000-01-01"), tmp_path / "a", encoding={"when": {"units": "days since 2000-01-01", "dtype": "f8"}})
    squall.store(ds("2000-01-01"), tmp_path / "b", encoding={"when": {"units": "hours since 2000-01-01", "dtype": "i8"}})
    for name in ("a", "b"):
        squall.store(ds("2000-01-02"), tmp_path / name, append_dim="n")
        assert (xr.open_zarr(tmp_path / name).when.values == pd.date_range("2000-01-01", periods=8, freq="6h")).all()
    with pytest.raises(ValueError, match="when|units"):
        squall.store(ds("2000-01-03T00:01"), tmp_path / "b", append_dim="n")
    assert xr.open_zarr(tmp_path / "b").sizes["n"] == 8  # nothing is published


def test_other_coordinates_are_not_renamed_by_an_append(tmp_path):  # xarray 11101
    squall.store(weather(2), tmp_path / "a")
    more = weather(2, "2000-01-02")
    with pytest.raises(ValueError, match="coordinate 'y' is not the store's"):
        squall.store(more.isel(y=slice(None, None, -1)), tmp_path / "a", append_dim="time")
    squall.store(more.isel(y=slice(None, None, -1)).sortby("y"), tmp_path / "a", append_dim="time")
    assert (xr.open_zarr(tmp_path / "a").t2m[2:] == more.t2m).all()


def test_variables_are_appended_to_one_by_one(tmp_path):
    squall.store(weather(2), tmp_path / "a")
    more = weather(2, "2000-01-02")
    squall.store(more.drop_vars("rain"), tmp_path / "a", append_dim="time")
    with pytest.raises(ValueError, match="'rain' has 2 values.*coordinate has 4"):  # they would lie at the wrong times
        squall.store(weather(2, "2000-01-03"), tmp_path / "a", append_dim="time")
    squall.store(more[["rain"]].drop_vars("time"), tmp_path / "a", append_dim="time")
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "a").load(), xr.concat([weather(2), more], "time"))


# ---- what readers see, and what is left of one that was killed -------------------------------------------------------------------------


@pytest.mark.parametrize("compute", [True, False])
def test_readers_see_an_append_when_it_is_whole(tmp_path, compute):
    seen = []

    def look(block):
        with contextlib.suppress(IndexError):
            seen.append(xr.open_zarr(tmp_path / "a").sizes["time"] if block.size else None)
        return block

    squall.store(weather(2).chunk(time=1), tmp_path / "a")
    more = weather(4, "2000-01-02").chunk(time=1)
    more["t2m"] = more.t2m.copy(data=more.t2m.data.map_blocks(look, meta=np.zeros((0, 0, 0), "f4")))
    seen.clear()
    later = squall.store(more, tmp_path / "a", append_dim="time", compute=compute)
    if compute:
        assert set(seen) == {2}
    else:
        assert xr.open_zarr(tmp_path / "a").sizes["time"] == 6  # the place is taken: the next append goes behind it
        later.compute()
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "a").load(), xr.concat([weather(2), more.compute()], "time"))


def test_appends_planned_together_go_behind_each_other(tmp_path):
    squall.store(weather(2).chunk(time=2), tmp_path / "a")
    parts = [weather(2, f"2000-01-{d:02d}", seed=d) for d in (2, 3, 4)]
    later = [squall.store(part.chunk(time=2), tmp_path / "a", append_dim="time", compute=False) for part in parts]
    dask.compute(*later)
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "a").load(), xr.concat([weather(2), *parts], "time"))


def test_two_appends_at_once_are_told(tmp_path):
    def another(block):
        if block.size:
            squall.store(weather(1, "2000-02-01"), tmp_path / "a", append_dim="time")
        return block

    squall.store(weather(2).chunk(time=1), tmp_path / "a")
    more = weather(1, "2000-01-02").chunk(time=1)
    more["t2m"] = more.t2m.copy(data=more.t2m.data.map_blocks(another, meta=np.zeros((0, 0, 0), "f4")))
    with pytest.raises(RuntimeError, match="another append went to the same place"):
        squall.store(more, tmp_path / "a", append_dim="time")
    assert xr.open_zarr(tmp_path / "a").sizes["time"] == 3


def test_an_append_that_ended_between_two_arrays_is_made_again(tmp_path):
    squall.store(weather(3).chunk(time=3), tmp_path / "a")
    squall.store(weather(3).chunk(time=3), tmp_path / "b")
    zarr.open_array(tmp_path / "a" / "t2m", mode="r+").resize((5, 8, 10))  # as one killed while it published
    zarr.open_array(tmp_path / "a" / "t2m", mode="r+")[3:] = 7
    for name in ("a", "b"):
        squall.store(weather(4, "2000-01-02", seed=3).chunk(time=4), tmp_path / name, append_dim="time", align_chunks=True)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


KILLED = """
    import sys, time
    import numpy as np, squall
    sys.path.insert(0, sys.argv[1])
    from test_xarray_store import to_be_stored

    def slow(block):
        time.sleep(0.05)
        print("block", flush=True)
        return block

    if __name__ == "__main__":
        ds, how = to_be_stored(sys.argv[3])
        ds["t2m"] = ds.t2m.copy(data=ds.t2m.data.map_blocks(slow, meta=np.zeros((0, 0, 0), "f4")))
        squall.store(ds, sys.argv[2], **how)
"""


def to_be_stored(what):
    if what == "append":  # behind five
        return weather(12, "2000-01-05", seed=7).chunk(time=(1, 2, 2, 2, 2, 3)), {"append_dim": "time"}
    return weather(12, seed=7).chunk(time=2), {"mode": "w"}


@pytest.mark.parametrize(
    ("what", "blocks"), [("new", 3), ("append", 3), *[pytest.param("append", n, marks=pytest.mark.long) for n in range(1, 7)]]
)
def test_a_killed_store_is_made_again(tmp_path, what, blocks):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(KILLED))
    command = [sys.executable, "-W", "ignore", script, os.path.dirname(__file__), tmp_path / "killed", what]
    env = os.environ | {"PYTHONPATH": str(PACKAGE), "DASK_NUM_WORKERS": "1"}
    for name in ("killed", "whole") if what == "append" else ():
        squall.store(weather(5).chunk(time=2), tmp_path / name)
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as process:
        for _ in range(blocks):
            assert process.stdout.readline() == b"block\n"
        process.send_signal(signal.SIGKILL)
    if what == "append":  # what was there is there, and nothing else is seen
        xr.testing.assert_identical(xr.open_zarr(tmp_path / "killed").load(), weather(5))
    for name in ("killed", "whole"):
        ds, how = to_be_stored(what)
        squall.store(ds, tmp_path / name, **how)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


# ---- fill values -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zeros_are_not_masked(both, zarr_format):  # xarray 5475, 10064
    ds = xr.Dataset({"n": (("x",), np.array([0, 1, 0], "i4")), "f": (("x",), [0.0, np.nan, 1])}).chunk(x=3)
    path = both(ds, zarr_format=zarr_format)
    found = xr.open_zarr(path).load()
    assert found.n.dtype == "i4" and found.n.values.tolist() == [0, 1, 0]
    assert found.f.values[0] == 0 and np.isnan(found.f.values[1])


def test_fill_values_of_both_kinds_are_kept(both):  # xarray 5475
    ds = xr.Dataset({"v": (("x",), [1.0, np.nan, 3.0])})
    path = both(ds, encoding={"v": {"_FillValue": -1.0, "fill_value": 5.0}}, zarr_format=3)
    assert zarr.open_array(path / "v").fill_value == 5
    assert zarr.open_array(path / "v")[:].tolist() == [1, -1, 3]


@pytest.mark.parametrize("engine", ["squall", "zarr"])
@pytest.mark.parametrize("how", ["lazy", "chunks", "computed", "many"])
def test_a_store_that_values_are_yet_to_be_read_from_is_not_begun_anew(tmp_path, engine, how):
    store, elsewhere = tmp_path / "a.zarr", tmp_path / "b.zarr"
    given = xr.Dataset({"t": (("time", "x"), np.arange(12.0).reshape(3, 4))}, {"time": [0, 1, 2]})
    squall.store(given, store)
    squall.store(given.assign_coords(time=[3, 4, 5]), elsewhere)
    chunks = {} if how in ("chunks", "computed") else None
    if how == "many":
        ds = xr.open_dataset([store, elsewhere], engine="squall")
    else:
        ds = xr.open_dataset(store, engine=engine, chunks=chunks)
    if how == "computed":
        ds = ds * 2
    link = tmp_path / "link.zarr"
    link.symlink_to(store)
    for dest in (store, link):
        with pytest.raises(ValueError, match="variable 't' is read from .*, which mode='w' removes first: load it"):
            squall.store(ds, dest, mode="w")
    assert xr.open_dataset(store, engine="squall").identical(given)
    loaded = ds.load()
    squall.store(loaded, store, mode="w")
    np.testing.assert_array_equal(xr.open_dataset(store, engine="squall")["t"], loaded["t"])


def test_paths_are_taken_alike_everywhere(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    given = xr.Dataset({"t": (("x",), np.arange(4.0))})
    squall.store(given, "~/a.zarr")
    given.to_netcdf(tmp_path / "b.nc")
    assert squall.open("~/a.zarr")["t"][1] == 1 and squall.open("~/*.nc")["t"][1] == 1
    assert squall.open_many(["~/b.nc"])["t"][2] == 2
    assert xr.open_dataset("~/a.zarr", engine="squall").identical(given)
    squall.convert("~/b.nc", "~/c.zarr", append_dim="x", progress=False)
    assert squall.verify("~/c.zarr", progress=False).ok and squall.status("~/c.zarr").ok
    squall.create_group("~/d.zarr")
    assert {path.name for path in tmp_path.iterdir()} == {"a.zarr", "b.nc", "c.zarr", "d.zarr"}
    address = "s3://bucket/x.zarr"
    for call in (
        squall.open,
        squall.status,
        squall.create_group,
        lambda path: squall.open_many(["~/b.nc", path]),
        lambda path: xr.open_dataset(path, engine="squall"),
        lambda path: xr.open_dataset([path], engine="squall"),
        lambda path: squall.convert(path, "~/e.zarr"),
        lambda path: squall.convert("~/b.nc", path),
    ):
        with pytest.raises(NotImplementedError, match=f"{address}: squall reads and writes files that this machine sees; not yet by s3"):
            call(address)
    for call in (squall.open, squall.status, lambda path: xr.open_dataset(path, engine="squall")):
        with pytest.raises(FileNotFoundError, match="the path is empty"):
            call("")


def test_an_append_of_a_variable_that_the_store_has_not_is_refused(tmp_path):
    ds = xr.Dataset({"t": (("time", "x"), np.zeros((2, 3))), "p": (("x",), np.zeros(3))}, {"time": [0, 1]})
    squall.store(ds, tmp_path / "a.zarr")
    before = contents(tmp_path / "a.zarr")
    later = ds.assign_coords(time=[2, 3])
    for wrong in (later.assign(u=later.t), later.rename(t="u")):
        with pytest.raises(ValueError, match="append_dim='time': the store has no 'u', which would be shorter than what it has along time"):
            squall.store(wrong, tmp_path / "a.zarr", append_dim="time")
        assert contents(tmp_path / "a.zarr") == before
    squall.store(later.drop_vars("p"), tmp_path / "a.zarr", append_dim="time")  # p does not grow
    assert xr.open_dataset(tmp_path / "a.zarr", engine="squall").sizes["time"] == 4


@pytest.mark.parametrize("mode", [None, "w", "a"])
def test_a_refused_store_leaves_nothing_where_nothing_was(tmp_path, mode):
    ds = xr.Dataset({"t": (("x",), np.zeros(6))}).chunk(x=4)
    for wrong in ({"encoding": {"t": {"chunks": (3,)}}}, {"encoding": {"t": {"no_such_key": 1}}}, {"encoding": {"other": {"dtype": "f4"}}}):
        with pytest.raises((ValueError, KeyError)):
            squall.store(ds, tmp_path / "a.zarr", mode=mode, **wrong)
        assert not (tmp_path / "a.zarr").exists()
    squall.store(ds, tmp_path / "a.zarr", mode=mode)
    with pytest.raises(ValueError):
        squall.store(ds, tmp_path / "a.zarr", mode="a", encoding={"t": {"chunks": (3,)}})
    assert xr.open_dataset(tmp_path / "a.zarr", engine="squall").identical(ds.compute())
    with pytest.raises(FileExistsError) as refused:
        squall.store(ds, tmp_path / "a.zarr")
    assert f"{tmp_path / 'a.zarr'} is there already; mode='w' replaces it" in refused.value.__notes__[0]
