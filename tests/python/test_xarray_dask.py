"""Datasets of xarray's engine "squall" under Dask, in other processes and among threads."""

import concurrent.futures
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
dask = pytest.importorskip("dask")
import squall  # noqa: E402
from xarray.core import indexing  # noqa: E402


def write(path, seed, shape=(24, 40, 50)):
    values = np.random.default_rng(seed).normal(size=shape).astype("f4")
    ds = xr.Dataset({"a": (("time", "y", "x"), values), "b": (("time",), np.arange(shape[0]) + seed)}, {"time": np.arange(shape[0])})
    if str(path).endswith(".zarr"):
        ds.to_zarr(path, encoding={"a": {"chunks": (6, 20, 50)}}, zarr_format=2)
    else:
        ds.to_netcdf(path, engine="netcdf4", encoding={"a": {"chunksizes": (6, 20, 50), "zlib": True}})
    return ds


@pytest.fixture(params=["a.nc", "a.zarr", "many"])
def source(request, tmp_path):
    """What to open, and what is in it."""
    if request.param != "many":
        return str(tmp_path / request.param), write(tmp_path / request.param, 1)
    parts = [write(tmp_path / f"{i}.nc", i) for i in range(3)]
    for i, part in enumerate(parts):
        part["time"] = part.time + 24 * i
        part.to_netcdf(tmp_path / f"{i}.nc", engine="netcdf4")
    return str(tmp_path / "*.nc"), xr.concat(parts, "time")


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_chunks_are_computed_as_they_are(source, scheduler):
    check_chunks(*source, scheduler)


@pytest.mark.parametrize("source", ["many"], indirect=True)
def test_other_processes_compute_chunks(source):
    check_chunks(*source, "processes")


def check_chunks(path, expected, scheduler):
    with dask.config.set(scheduler=scheduler, num_workers=2):
        ds = xr.open_dataset(path, engine="squall", chunks={})
        xr.testing.assert_equal(ds.compute(), expected)
        assert ds.a.chunks is not None
        later = xr.open_dataset(path, engine="squall").chunk({"time": 10})
        np.testing.assert_array_equal(later.a.max("time").values, expected.a.max("time").values)


def test_disk_chunks_are_preferred(tmp_path):
    write(tmp_path / "a.nc", 1)
    assert xr.open_dataset(tmp_path / "a.nc", engine="squall", chunks={}).a.chunks == ((6,) * 4, (20, 20), (50,))


def test_a_dataset_pickles_small_and_is_opened_elsewhere(source, tmp_path):
    path, expected = source
    ds = xr.open_dataset(path, engine="squall")
    assert len(pickle.dumps(ds.a.variable._data)) < 1024
    (tmp_path / "pickle").write_bytes(pickle.dumps(ds))
    code = "import pickle, sys; ds = pickle.load(open(sys.argv[1], 'rb')); print(float(ds.a.sum()), float(ds.b.sum()))"
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "pickle"], capture_output=True, text=True, check=True)
    assert np.allclose(list(map(float, done.stdout.split())), [float(expected.a.sum()), float(expected.b.sum())], rtol=1e-4)


def test_a_worker_that_finds_another_file_raises(tmp_path):
    write(tmp_path / "a.nc", 1)
    ds = xr.open_dataset(tmp_path / "a.nc", engine="squall", chunks={})
    write(tmp_path / "b.nc", 2)
    os.replace(tmp_path / "b.nc", tmp_path / "a.nc")
    with pytest.raises(squall.Error, match="changed since it was opened"):
        ds.a.compute(scheduler="processes", num_workers=1)
    with pytest.raises(squall.Error, match="changed since it was opened"):
        ds.a.compute(scheduler="synchronous")
    assert xr.open_dataset(tmp_path / "a.nc", engine="squall").b[0] == 2


def test_what_lies_in_memory_pickles_with_its_bytes(tmp_path):
    expected = write(tmp_path / "a.nc", 1)
    ds = xr.open_dataset((tmp_path / "a.nc").read_bytes(), engine="squall")
    packed = pickle.dumps(ds)
    os.remove(tmp_path / "a.nc")
    del ds
    xr.testing.assert_equal(pickle.loads(packed).load(), expected)


def test_names_of_dask_arrays_tell_files_apart(tmp_path):
    def name(path, **keywords):
        return xr.open_dataset(path, engine="squall").chunk({"time": 6}, **keywords).a.data.name

    write(tmp_path / "a.nc", 1)
    write(tmp_path / "other.nc", 1)
    first = name(tmp_path / "a.nc")
    assert first == name(tmp_path / "a.nc") != name(tmp_path / "other.nc")
    write(tmp_path / "new.nc", 2)
    os.replace(tmp_path / "new.nc", tmp_path / "a.nc")
    assert name(tmp_path / "a.nc") != first


def test_xarray_names_arrays_of_lists_by_their_texts_alone(tmp_path):
    """What docs/xarray.md warns of: the name stays when a file changes, but what was opened before raises."""
    paths = [str(tmp_path / f"{i}.nc") for i in range(2)]
    for i, path in enumerate(paths):
        xr.Dataset({"a": ("t", [1.0 * i])}, {"t": [i]}).to_netcdf(path, engine="netcdf4")
    before = xr.open_dataset(paths, engine="squall", chunks={})
    own = xr.open_dataset(paths, engine="squall").chunk({"t": 1})
    xr.Dataset({"a": ("t", [7.0])}, {"t": [1]}).to_netcdf(tmp_path / "new.nc", engine="netcdf4")
    os.replace(tmp_path / "new.nc", paths[1])
    after = xr.open_dataset(paths, engine="squall", chunks={})
    assert before.a.data.name == after.a.data.name and after.a.values.tolist() == [0, 7]
    for stale in (before, own):
        with pytest.raises(squall.Error, match="changed since it was opened"):
            stale.a.compute(scheduler="synchronous")
    assert own.a.data.name != xr.open_dataset(paths, engine="squall").chunk({"t": 1}).a.data.name


def test_graphs_have_no_more_than_what_any_engine_needs(tmp_path):
    """Beside the graph of an engine that does nothing."""
    shape, chunks = (3000, 4, 4), (1, 4, 4)
    squall.create_array(tmp_path / "a.zarr", "a", shape=shape, chunks=chunks, dtype="f4", dims=("t", "y", "x"))

    class Nothing(xr.backends.BackendEntrypoint):
        def open_dataset(self, filename_or_obj, *, drop_variables=None):
            preferred = dict(zip("tyx", chunks, strict=True))
            return xr.Dataset(
                {"a": xr.Variable(("t", "y", "x"), indexing.LazilyIndexedArray(Zeros()), encoding={"preferred_chunks": preferred})}
            )

    graphs = [xr.open_dataset(tmp_path / "a.zarr", engine=engine, chunks={}).a.data.dask for engine in ("squall", Nothing)]
    tasks, sizes = [len(graph) for graph in graphs], [len(pickle.dumps(graph)) for graph in graphs]
    assert tasks[0] == tasks[1] > 3000
    assert sizes[0] <= sizes[1] + 1000


class Zeros(xr.backends.BackendArray):
    shape, dtype = (3000, 4, 4), np.dtype("f4")

    def __getitem__(self, key):
        return np.zeros(np.empty(self.shape, "f4")[key.tuple].shape, "f4")


def test_threads_share_a_dataset(source):
    path, expected = source
    ds = xr.open_dataset(path, engine="squall", cache=False)
    values = expected.a.values
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda i: ds.a[i % 24].values, range(96)))
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(row, values[i % 24])


def test_a_deep_copy_reads_the_same_file(source):
    path, expected = source
    xr.testing.assert_equal(xr.open_dataset(path, engine="squall").copy(deep=True).load(), expected)
