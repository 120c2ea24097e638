"""Datasets of engine "squall" on a Dask cluster of processes: workers die, files are replaced, names tell files apart."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import squall  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # what dying workers make distributed tell
WORKERS, THREADS, SHAPE = 2, 2, (12, 15)


def value_of(i):
    return (np.arange(180, dtype="f4").reshape(SHAPE) * 3 + 100 * i) % 4096


def write_file(path, i, values=None):
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("time", None)
        f.createDimension("y", SHAPE[0])
        f.createDimension("x", SHAPE[1])
        time = f.createVariable("time", "i4", ("time",))
        time.units = "hours since 2026-01-01"
        time[:] = [i]
        f.createVariable("v", "f4", ("time", "y", "x"), zlib=True, complevel=1)[0] = value_of(i) if values is None else values


def write_files(folder, count):
    for i in range(count):
        write_file(folder / f"f{i:05d}.nc", i)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"), 300)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=THREADS, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def some(files, tmp_path):
    """A few files that may be changed."""
    for i in range(12):
        shutil.copy2(files / f"f{i:05d}.nc", tmp_path)
    return tmp_path


def opened(folder, **keywords):
    return xr.open_dataset(f"{folder}/*.nc", engine="squall", **keywords)


def whole(count):
    return np.stack([value_of(i) for i in range(count)])


def handles_and_descriptors():
    return squall.handles(), len(os.listdir("/proc/self/fd"))


def check_few_files_stay_open(client, folder, count):
    before = client.run(squall.set_options, max_open_files=32)
    others = client.run(lambda: len(os.listdir("/proc/self/fd")) - squall.handles().open)
    try:
        ds = opened(folder, chunks={"time": 7})
        np.testing.assert_array_equal(ds.v.compute().values, whole(count))
        np.testing.assert_array_equal(ds.v[:, 3, 5].compute().values, whole(count)[:, 3, 5])
        found = client.run(handles_and_descriptors)
        assert sum(handles.opened for handles, _ in found.values()) >= count
        for worker, (handles, descriptors) in found.items():
            assert handles.open <= handles.limit == 32
            assert descriptors <= others[worker] + 32 + 20
    finally:
        client.run(squall.set_options, max_open_files=next(iter(before.values()))["max_open_files"])


def test_few_of_many_files_stay_open_in_each_worker(client, files):
    check_few_files_stay_open(client, files, 300)


@pytest.mark.long
def test_few_of_ten_thousand_files_stay_open_in_each_worker(client, tmp_path):
    check_few_files_stay_open(client, write_files(tmp_path, 10_000), 10_000)


def slowly(block):
    time.sleep(0.01)
    return block * 2


def kill_a_worker_during(client, data):
    """Compute, and end one of the workers once some of the work is done."""
    future = client.compute(data.map_blocks(slowly, dtype="f4"), optimize_graph=False)
    pids = client.run(os.getpid)
    while sum(client.run(lambda dask_worker: len(dask_worker.data)).values()) < 3 and not future.done():
        time.sleep(0.01)
    assert not future.done()
    os.kill(sorted(pids.values())[0], signal.SIGKILL)
    values = future.result(timeout=600)
    client.wait_for_workers(WORKERS, timeout=600)
    return values


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.long)])
def test_a_worker_may_die_during_the_work(client, files, rounds):
    ds = opened(files, chunks={"time": 4})
    for _ in range(rounds):
        np.testing.assert_array_equal(kill_a_worker_during(client, ds.v.data), whole(300) * 2)


def test_the_mean_of_an_ensemble_is_what_numpy_has(client, tmp_path):
    members = np.random.default_rng(3).normal(size=(20, *SHAPE)).astype("f4")
    for i, member in enumerate(members):
        write_file(tmp_path / f"m{i:02d}.nc", 0, member)
    ds = opened(tmp_path, concat_dim="member", chunks={"member": 3})
    assert ds.v.dims[0] == "member" and ds.v.chunks[0] == (3,) * 6 + (2,)
    mean = ds.v.mean("member").compute()
    np.testing.assert_allclose(mean.values[0], members.mean(0, dtype="f8"), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(ds.v.max("member").compute().values[0], members.max(0))


def rewrite(ds, part, path):
    import h5py

    with h5py.File(path, "w") as f:
        for i in range(part.start, part.stop, 5):
            f[str(i)] = ds.v[i : i + 5].values
    return path


# xarray #793: NetCDF is read while HDF5 is written. (to_netcdf beside threads that read: test_public_issues.py. On a cluster xarray's own
# lock of the file that it writes stalls for half a minute at times, whatever the data come from.)
def test_workers_read_while_they_write(client, files, tmp_path):
    h5py = pytest.importorskip("h5py")
    ds, parts = opened(files), [slice(i, i + 30) for i in range(0, 300, 30)]
    tasks = [client.submit(rewrite, ds, part, tmp_path / f"{part.start:03d}.h5", pure=False) for part in parts]
    for part, path in zip(parts, client.gather(tasks), strict=True):
        with h5py.File(path) as f:
            for i in range(part.start, part.stop, 5):
                np.testing.assert_array_equal(f[str(i)][...], whole(300)[i : i + 5])


def test_datasets_travel_to_workers_and_are_read_there(client, files, monkeypatch):
    monkeypatch.chdir(files.parent)  # where workers are not
    ds = opened(files.name)
    assert len(pickle.dumps(ds.v.variable._data)) < 300 * 16 + 1200
    sums = [client.submit(lambda ds, i: float(ds.v[i].sum()), ds, i, pure=False) for i in range(0, 300, 30)]
    assert client.gather(sums) == [float(value_of(i).sum()) for i in range(0, 300, 30)]
    back = client.submit(lambda ds: ds.isel(time=slice(5, 9)), ds).result()
    np.testing.assert_array_equal(back.v.values, whole(9)[5:])


def test_workers_that_find_another_file_name_it(client, some):
    ds, lazy = opened(some, chunks={"time": 2}), opened(some)
    write_file(some / "new", 77)
    os.replace(some / "new", some / "f00004.nc")
    for computing in (lambda: ds.v.compute(), lambda: client.submit(lambda x: x.v.values, lazy, pure=False).result()):
        with pytest.raises(squall.Error, match="f00004.nc changed since it was opened"):
            computing()
    assert float(opened(some, order="given", drift="first").v[4, 0, 0]) == value_of(77)[0, 0]


def test_workers_that_had_a_file_open_find_it_replaced(client, some):
    ds = xr.open_dataset(some / "f00001.nc", engine="squall", chunks={"x": 5})
    np.testing.assert_array_equal(ds.v.compute().values[0], value_of(1))  # each worker has it open from now on
    write_file(some / "new", 1, value_of(50))
    os.replace(some / "new", some / "f00001.nc")
    with pytest.raises(squall.Error, match="f00001.nc changed since it was opened"):
        ds.v.compute()
    again = xr.open_dataset(some / "f00001.nc", engine="squall").chunk({"x": 5})
    np.testing.assert_array_equal(again.v.compute().values[0], value_of(50))


def test_files_that_are_gone_are_named(client, some):
    ds = opened(some, chunks={"time": 3})
    os.remove(some / "f00007.nc")
    with pytest.raises((squall.Error, FileNotFoundError), match="f00007.nc"):
        ds.v.compute()


TOKEN = """
import sys, dask.base, xarray as xr
ds = xr.open_dataset(sys.argv[1], engine="squall")
print(dask.base.tokenize(ds.v), ds.chunk({"time": 1}).v.data.name)
"""


def names_elsewhere(path):
    done = subprocess.run([sys.executable, "-c", TOKEN, path], capture_output=True, text=True, check=True)
    return tuple(done.stdout.split())


def names_of(path):
    ds = xr.open_dataset(path, engine="squall")
    return dask.base.tokenize(ds.v), ds.chunk({"time": 1}).v.data.name


@pytest.mark.parametrize("name", ["f00003.nc", "*.nc"])
def test_names_are_the_same_in_all_processes_until_a_file_changes(client, some, name):
    path = str(some / name)
    first = names_of(path)
    assert names_elsewhere(path) == first
    assert set(client.run(names_of, path).values()) == {first}
    write_file(some / "new", 3, value_of(60))
    os.replace(some / "new", some / "f00003.nc")
    second = names_of(path)
    assert not set(second) & set(first)
    assert set(client.run(names_of, path).values()) == {second}


def test_what_is_persisted_is_not_taken_for_a_file_that_came_later(client, some):
    path = some / "f00003.nc"
    kept = client.persist(xr.open_dataset(path, engine="squall").chunk({"x": 5}))
    distributed.wait(kept)
    write_file(some / "new", 3, value_of(60))
    os.replace(some / "new", path)
    later = xr.open_dataset(path, engine="squall").chunk({"x": 5})
    np.testing.assert_array_equal(later.v.compute().values[0], value_of(60))
    np.testing.assert_array_equal(kept.v.compute().values[0], value_of(3))


def threads_after_a_read(path):
    ds = xr.open_dataset(path, engine="squall")
    before = len(os.listdir("/proc/self/task"))
    for _ in range(3):
        ds.v.values  # noqa: B018
    return len(os.listdir("/proc/self/task")) - before


def test_a_worker_reads_with_its_own_threads(client, tmp_path):
    """So that several workers of one machine do not have more threads at work than it has CPUs."""
    values = np.random.default_rng(1).normal(size=(40, 200, 500)).astype("f4")
    encoding = {"v": {"chunksizes": (1, 200, 500), "zlib": True}}
    xr.Dataset({"v": (("time", "y", "x"), values)}).to_netcdf(tmp_path / "a.nc", encoding=encoding)
    started = client.run(threads_after_a_read, tmp_path / "a.nc")
    assert max(started.values()) <= THREADS - 1
