"""What people reported of reading with xarray, each with its public number: with engine "squall" it does not happen."""

import concurrent.futures
import gc
import os
import pathlib
import resource
import subprocess
import sys
import time

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")
dask = pytest.importorskip("dask")
zarr = pytest.importorskip("zarr")
import squall  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:The specified chunks separate:UserWarning", "ignore:Consolidated metadata is")
FILES, SHAPE = 40, (6, 20, 30)


def value_of(i):
    return np.random.default_rng(i).integers(0, 4000, SHAPE).astype("f4")


def write_file(path, i):
    ds = xr.Dataset({"v": (("time", "y", "x"), value_of(i)), "w": (("time",), np.arange(6.0) + i)}, {"time": np.arange(6) + 6 * i})
    ds.to_netcdf(path, engine="netcdf4", encoding={"v": {"zlib": True, "chunksizes": (2, 10, 30)}})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("issues")
    for i in range(FILES):
        write_file(folder / f"f{i:02d}.nc", i)
    return folder


@pytest.fixture(scope="module")
def values():
    return np.concatenate([value_of(i) for i in range(FILES)])


@pytest.fixture
def path(folder):
    return folder / "f00.nc"


def opened(source, **keywords):
    return xr.open_dataset(source, engine="squall", **keywords)


def descriptors():
    return {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}


# ---- open files -----------------------------------------------------------------------------------------------------------------------

FEW_DESCRIPTORS = """
import resource, sys, xarray as xr
resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))
pattern = sys.argv[1]
for ds in (
    xr.open_dataset(pattern, engine="squall"),
    xr.open_dataset(pattern, engine="squall", chunks={}),
    xr.open_mfdataset(pattern, engine="squall"),
):
    print(int(ds.v.sum()), ds.sizes["time"])
datasets = [xr.open_dataset(pattern.replace("*", f"f{i:02d}"), engine="squall", chunks={}) for i in range(40)]
print(int(sum(ds.v.sum() for ds in datasets)), len(datasets))
"""


# xarray #463: open_mfdataset, too many open files; #2887, #1629: files stay open
def test_more_files_than_descriptors_are_read(folder, values):
    done = subprocess.run([sys.executable, "-c", FEW_DESCRIPTORS, f"{folder}/*.nc"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    total = int(values.sum())
    assert [line.split() for line in done.stdout.splitlines()] == [[str(total), "240"]] * 3 + [[str(total), "40"]]


# xarray #524: open_mfdataset does not close its files
def test_a_dataset_that_was_closed_can_be_read_again(folder, values):
    with xr.open_mfdataset(f"{folder}/*.nc", engine="squall") as ds:
        np.testing.assert_array_equal(ds.v[:6].values, values[:6])
    np.testing.assert_array_equal(ds.v[-6:].values, values[-6:])


def test_nothing_stays_open_of_datasets_that_are_gone(folder, values):
    ds = opened(f"{folder}/*.nc")
    np.testing.assert_array_equal(ds.v.values, values)
    assert any(name.startswith(str(folder)) for name in descriptors())
    del ds
    gc.collect()
    assert not [name for name in descriptors() if name.startswith(str(folder))]


# ---- files that are written again -----------------------------------------------------------------------------------------------------


# xarray #4240, #4862, #4284, #3785: a file that was written again is read as it was
@pytest.mark.parametrize("display", [repr, lambda ds: ds._repr_html_()])
def test_a_file_that_was_written_again_is_read_anew(tmp_path, display):
    for length in (4, 5, 6):
        path = tmp_path / "a.nc"
        path.unlink(missing_ok=True)
        xr.Dataset({"v": ("x", np.arange(length) * 10)}).to_netcdf(path)
        ds = opened(path)
        display(ds)
        assert ds.v.values.tolist() == [10 * i for i in range(length)]
        assert opened(path, chunks={}).v.compute().values.tolist() == [10 * i for i in range(length)]


# xarray #4833, #9361, #2887, #2958: PermissionError when a file that is open is written again
@pytest.mark.parametrize("engine", ["netCDF4", "h5netcdf"])
def test_a_file_that_is_open_may_be_written_again(tmp_path, engine):
    pytest.importorskip(engine)
    path = tmp_path / "a.nc"
    xr.Dataset({"v": ("x", np.arange(4.0))}).to_netcdf(path, engine=engine.lower())
    ds = opened(path)
    xr.Dataset({"v": ("x", np.arange(7.0))}).to_netcdf(path, engine=engine.lower())
    assert opened(path).v.values.tolist() == list(range(7))
    with pytest.raises(squall.Error, match="a.nc changed since it was opened"):
        ds.v.values  # noqa: B018


# xarray #10679: the file is cut to nothing when it cannot be written
def test_no_lock_is_held_that_keeps_others_from_writing(path, tmp_path):
    target = tmp_path / "a.nc"
    target.write_bytes(path.read_bytes())
    ds = opened(target)
    ds.v.load()
    code = "import netCDF4, sys; f = netCDF4.Dataset(sys.argv[1], 'a'); f['w'][0] = 5; f.close()"
    env = {name: value for name, value in os.environ.items() if name != "HDF5_USE_FILE_LOCKING"}
    done = subprocess.run([sys.executable, "-c", code, target], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert opened(target).w.values[0] == 5


# h5py: "unable to lock file" on file systems without locks, and of files that somebody writes (#2376, netcdf4-python #1015)
def test_a_file_that_is_locked_by_its_writer_can_be_read(tmp_path):
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("x", 3)
        f.createVariable("v", "f4", ("x",))[:] = [1, 2, 3]
        f.sync()
        assert opened(path).v.values.tolist() == [1, 2, 3]


# ---- threads --------------------------------------------------------------------------------------------------------------------------


# xarray #793, #4710, #3961, #4406: HDF errors, or no end, where to_netcdf writes what is read from NetCDF
# (workers of a cluster: test_cluster.py; with Dask's scheduler "processes" xarray writes no NetCDF)
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("engine", ["netCDF4", "h5netcdf"])
def test_what_is_read_is_written_by_to_netcdf(folder, values, tmp_path, scheduler, engine):
    pytest.importorskip(engine)
    ds = opened(f"{folder}/*.nc", chunks={"time": 12})
    with dask.config.set(scheduler=scheduler, num_workers=8):
        ds.to_netcdf(tmp_path / "out.nc", engine=engine.lower())
    with netCDF4.Dataset(tmp_path / "out.nc") as f:
        np.testing.assert_array_equal(f["v"][...], values)


# the same in rounds with other writers and readers beside (xarray #4710: in 30 % of the cases)
def test_writers_and_readers_do_not_disturb_each_other(folder, values, tmp_path):
    pytest.importorskip("h5netcdf")

    def write(i):
        ds = opened(f"{folder}/*.nc", chunks={"time": 24})
        ds.to_netcdf(tmp_path / f"out{i}.nc", engine="h5netcdf")  # netCDF4 dies where several threads write
        return float(opened(tmp_path / f"out{i}.nc").v.sum(dtype="f8"))

    def read(i):
        return float(opened(folder / f"f{i % FILES:02d}.nc").v.sum(dtype="f8"))

    with dask.config.set(scheduler="threads", num_workers=4), concurrent.futures.ThreadPoolExecutor(6) as pool:
        writes = [pool.submit(write, i) for i in range(3)]
        reads = [pool.submit(read, i) for i in range(60)]
        assert [w.result() for w in writes] == [float(values.sum(dtype="f8"))] * 3
        assert [r.result() for r in reads] == [float(value_of(i % FILES).sum(dtype="f8")) for i in range(60)]


THREADS_OPEN = """
import concurrent.futures, sys, dask, xarray as xr
paths = [f"{sys.argv[1]}/f{i % 40:02d}.nc" for i in range(160)]
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    print(int(sum(pool.map(lambda path: float(xr.load_dataset(path, engine="squall").v.sum(dtype="f8")), paths))))
    print(int(sum(pool.map(lambda path: float(xr.open_dataset(path, engine="squall", chunks={}).v.astype("f8").sum().compute()), paths))))
with dask.config.set(scheduler="threads", num_workers=8):
    ds = xr.open_mfdataset(paths[:40], engine="squall", parallel=True, combine="nested", concat_dim="time")
    print(int(ds.v.astype("f8").sum().compute()))
"""


# xarray #11088, #2554, #8120, #9779, #4100, #7990, #7079, #444, netcdf4-python #844: the process dies, where threads open and read files
def test_threads_that_open_and_read_files_do_not_crash(folder, values):
    done = subprocess.run([sys.executable, "-c", THREADS_OPEN, folder], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    total = int(values.sum(dtype="f8"))
    assert done.stdout.split() == [str(4 * total)] * 2 + [str(total)]


# xarray #2190: with lock=False the process dies
def test_lock_false_is_no_risk(folder, values):
    ds = opened(f"{folder}/*.nc", chunks={"time": 2}, lock=False)
    with dask.config.set(scheduler="threads", num_workers=16):
        np.testing.assert_array_equal((ds.v * ds.v).compute().values, values * values)


# dask #6664, distributed #860: no end, where threads wait for a lock that another one holds
def test_reads_within_reads_end(folder, values):
    """Dask computes within the functions of an outer computation, on the same threads."""

    def inner(block, block_info=None):
        first = block_info[0]["array-location"][0][0] if block_info else 0
        ds = opened(f"{folder}/*.nc", chunks={"time": 3})
        with dask.config.set(scheduler="threads", num_workers=3):
            return block + ds.v[first : first + len(block)].compute().values

    ds = opened(f"{folder}/*.nc", chunks={"time": 30})
    with dask.config.set(scheduler="threads", num_workers=6):
        found = ds.v.data.map_blocks(inner, dtype="f4", meta=np.empty((0, 0, 0), "f4")).compute()
    np.testing.assert_array_equal(found, values * 2)


# xarray #11088 as ../shared/cases has it
def test_the_case_of_parallel_opens(shared, tmp_path):
    subprocess.run([sys.executable, shared / "cases" / "parallel_open.py", tmp_path], check=True, capture_output=True)
    paths = sorted(map(str, tmp_path.glob("*.nc")))
    ds = xr.open_mfdataset(paths, engine="squall", parallel=True)
    one = opened(f"{tmp_path}/*.nc", chunks={})
    for found in (ds, one):
        assert found.sizes == {"time": 60, "y": 40, "x": 50}
        np.testing.assert_array_equal(found.c.mean(("y", "x")).compute().values, np.arange(60))


# netcdf-c #3439 as ../shared/cases has it: the process dies at half floats
def test_the_case_of_half_floats(shared, tmp_path):
    subprocess.run([sys.executable, shared / "cases" / "float16.py", tmp_path], check=True, capture_output=True)
    half = opened(tmp_path / "half.h5").half
    assert half.dtype == np.float16 and half.values.tolist() == [n / 8 for n in range(10)]
    assert opened(tmp_path / "records.h5").rec.values.tolist() == [(1.0, b"alpha"), (3.0, b"beta")]


# pvnet #512 as ../shared/cases has it: a thousand small files take a minute
@pytest.mark.long
def test_the_case_of_many_small_files(shared, tmp_path):
    subprocess.run([sys.executable, shared / "cases" / "many_small_files.py", tmp_path], check=True, capture_output=True)
    begin = time.monotonic()
    ds = opened(f"{tmp_path}/*.nc").load()
    assert time.monotonic() - begin < 20
    np.testing.assert_array_equal(ds.time.values, np.datetime64("2026-01-01", "ns") + np.arange(1000) * np.timedelta64(1, "h"))
    for k in range(12):
        np.testing.assert_array_equal(ds[f"v{k}"].values, (ds.lat.values + k + np.arange(1000)[:, None, None]).astype("f4"))


# ---- chunks that cannot be read -------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path):
    """A store of floats in six chunks, whose fill value is NaN."""
    ds = xr.Dataset({"v": (("time", "x"), np.arange(24.0).reshape(6, 4))}, {"time": np.arange(6)})
    ds.to_zarr(tmp_path / "s.zarr", encoding={"v": {"chunks": (1, 4)}}, zarr_format=3)
    return tmp_path / "s.zarr"


def cut(chunk):
    chunk.write_bytes(chunk.read_bytes()[:-4])


def make_a_folder(chunk):
    chunk.unlink()
    chunk.mkdir()


def make_a_loop(chunk):
    chunk.unlink()
    chunk.symlink_to(chunk)


# xarray #8842, zarr-python #486: chunks that could not be read are holes of NaN
@pytest.mark.parametrize("damage", [cut, make_a_folder, make_a_loop])
def test_a_chunk_that_cannot_be_read_is_an_error(store, damage):
    damage(store / "v" / "c" / "3" / "0")
    for chunks in (None, {}):
        ds = opened(store, chunks=chunks)
        assert not np.isnan(ds.v[:3].values).any()
        for key in (3, slice(None), [1, 3], slice(2, 6, 1)):
            with pytest.raises((squall.Error, OSError), match="c/3/0"):
                ds.v[key].load()


def test_a_chunk_that_may_not_be_read_is_an_error(store):
    chunk = store / "v" / "c" / "3" / "0"
    chunk.chmod(0)
    if os.access(chunk, os.R_OK):
        pytest.skip("this user reads files without permission")
    with pytest.raises((squall.Error, OSError), match="c/3/0"):
        opened(store).v.load()


# xarray #8842: the same where the process has no descriptor left
def test_no_descriptor_left_is_an_error(store):
    ds = opened(store)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = max(int(fd) for fd in os.listdir("/proc/self/fd")) + 1
    kept = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken, limits[1]))
    try:
        try:
            while True:
                kept.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        with pytest.raises((squall.Error, OSError), match="Too many open files"):
            ds.v.load()
    finally:
        for fd in kept:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not np.isnan(ds.v.values).any()


# xarray #9701, #5197: a chunk that was lost. Zarr says that it reads as fill; the check of the store names it
def test_a_chunk_that_was_lost_is_named_by_verify(shared, squall, tmp_path):
    subprocess.run([sys.executable, shared / "cases" / "missing_chunk.py", tmp_path], check=True, capture_output=True)
    ds = opened(tmp_path / "lost.zarr")
    assert ds.t.values[[0, 1, 2, 4, 5]].tolist() == (280.0 + np.arange(24.0).reshape(6, 4))[[0, 1, 2, 4, 5]].tolist()
    done = squall("verify", tmp_path / "lost.zarr")
    assert "t: chunk 3/0: absent" in done.out + done.err


# xarray #10501 as ../shared/cases has it: regions that cut chunks, written by threads, lose values
def test_the_case_of_steps_appended_by_threads(shared, tmp_path):
    subprocess.run([sys.executable, shared / "cases" / "append_unaligned.py", tmp_path], check=True, capture_output=True)
    root = squall.open(tmp_path / "ts.zarr", mode="r+")
    root["v"].resize(45, 2000)
    root["time"].resize(45)
    steps = [opened(tmp_path / f"f{i:02d}.nc") for i in range(40)]

    def append(i):
        root["v"][5 + i : 6 + i] = steps[i].v.values
        root["time"][5 + i] = (steps[i].time.values[0] - np.datetime64("2025-07-01")) // np.timedelta64(1, "h")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(40)))
    for engine in ("zarr", "squall"):
        ds = xr.open_dataset(tmp_path / "ts.zarr", engine=engine, **({"consolidated": False} if engine == "zarr" else {}))
        np.testing.assert_array_equal(ds.v.values, np.arange(45)[:, None] + np.zeros(2000))
        np.testing.assert_array_equal(ds.time.values, np.datetime64("2025-07-04", "ns") + np.arange(45) * np.timedelta64(1, "h"))
    aligned = squall.open(tmp_path / "ts.zarr", mode="r+", aligned_only=True)["v"]
    with pytest.raises(squall.Error, match="4"):
        aligned[5:6] = steps[0].v.values  # what several processes must not do at the same time


# ---- fill values ----------------------------------------------------------------------------------------------------------------------


# xarray #5475, #4930, #10064: zeros are taken for missing values, where the fill value of a store is 0
@pytest.mark.parametrize("version", [2, 3])
def test_zeros_are_values(tmp_path, version):
    names = {"dimension_names": ["x"]} if version == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["x"]}}
    root = zarr.open_group(tmp_path / "s.zarr", mode="w", zarr_format=version)
    root.create_array("a", data=np.arange(5, dtype="i4"), chunks=(5,), fill_value=0, **names)
    ds = opened(tmp_path / "s.zarr", use_zarr_fill_value_as_mask=False)
    assert ds.a.dtype == np.int32 and ds.a.values.tolist() == [0, 1, 2, 3, 4]
    assert (opened(tmp_path / "s.zarr").a.dtype == np.int32) == (version == 3)  # in version 2 fill values are masks, as xarray has it
    asked = opened(tmp_path / "s.zarr", use_zarr_fill_value_as_mask=True)
    assert np.isnan(asked.a.values[0]) and asked.a.values[1:].tolist() == [1, 2, 3, 4]


# xarray #10269: use_zarr_fill_value_as_mask is not heeded beside a _FillValue attribute; #11361: open_datatree has it not
@pytest.mark.parametrize("attribute", [False, True])
def test_the_fill_value_masks_where_that_is_asked_for(tmp_path, attribute):
    ds = xr.Dataset({"a": ("x", np.array([1.0, 100.0, 3.0]))})
    encoding = {"fill_value": 100.0} | ({"_FillValue": 3.0} if attribute else {})
    ds.to_zarr(tmp_path / "s.zarr", zarr_format=3, encoding={"a": encoding}, consolidated=False)
    for asked, masked in ((False, [2] * attribute), (True, [1])):
        for found in (
            opened(tmp_path / "s.zarr", use_zarr_fill_value_as_mask=asked),
            xr.open_datatree(tmp_path / "s.zarr", engine="squall", use_zarr_fill_value_as_mask=asked).to_dataset(),
        ):
            assert np.flatnonzero(np.isnan(found.a.values)).tolist() == masked, (asked, found.a.values)


# ---- names of tasks -------------------------------------------------------------------------------------------------------------------


# xarray #10098: all groups of a datatree have the same tasks
def test_groups_of_a_tree_have_tasks_of_their_own(tmp_path):
    tree = xr.DataTree.from_dict({"/one": xr.Dataset({"v": ("x", np.arange(4.0))}), "/two": xr.Dataset({"v": ("x", -np.arange(4.0))})})
    tree.to_netcdf(tmp_path / "t.nc")
    tree.to_zarr(tmp_path / "t.zarr")
    for path in (tmp_path / "t.nc", tmp_path / "t.zarr"):
        found = xr.open_datatree(path, engine="squall", chunks={})
        one, two = dask.compute(found["one/v"].data, found["two/v"].data)
        assert one.tolist() == [0, 1, 2, 3] and two.tolist() == [0, -1, -2, -3]
        assert found["one/v"].data.name != found["two/v"].data.name


# xmitgcm #99, xgrads #56: variables or files of one structure have the same tasks
def test_variables_and_files_have_tasks_of_their_own(folder):
    names = [opened(folder / f"f{i:02d}.nc").chunk({"time": 2})[name].data.name for i in range(3) for name in ("v", "w")]
    assert len(set(names)) == 6
    joined = xr.concat([opened(folder / f"f{i:02d}.nc").chunk({"time": 2}) for i in range(3)], "time")
    np.testing.assert_array_equal(joined.v.compute().values, np.concatenate([value_of(i) for i in range(3)]))


# ---- memory ---------------------------------------------------------------------------------------------------------------------------


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


# xarray #3200, #7404, #2186, netcdf4-python #986: memory grows with each file that is opened and closed
def test_memory_does_not_grow_with_each_opening(folder):
    paths = [str(folder / f"f{i:02d}.nc") for i in range(FILES)]

    def rounds(count):
        for k in range(count):
            with opened(paths[k % FILES]) as ds:
                ds.v.values  # noqa: B018
            if k % 40 == 0:
                opened(f"{folder}/f0*.nc").v[0].values  # noqa: B018

    rounds(200)
    gc.collect()
    before = resident_bytes()
    rounds(600)
    gc.collect()
    assert resident_bytes() - before < 6 << 20


# ---- paths ----------------------------------------------------------------------------------------------------------------------------


# xarray #1085, distributed #637: workers look for relative paths in folders of their own
def test_relative_paths_are_the_ones_of_the_opening_process(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    one, many = opened("f03.nc", chunks={}), opened("f0[0-3].nc", chunks={})
    monkeypatch.chdir(tmp_path)
    with dask.config.set(scheduler="processes", num_workers=1):
        total = float(sum(dask.compute(one.v.astype("f8").sum().data, many.v[18:].astype("f8").sum().data)))
    assert total == 2 * float(value_of(3).sum(dtype="f8"))


# xarray #2494: processes that read one file at the same time
def test_a_file_is_read_by_several_processes_and_threads_at_the_same_time(path):
    code = (
        "import sys, threading, xarray as xr\n"
        "sums = []\n"
        "read = lambda: [sums.append(float(xr.open_dataset(sys.argv[1], engine='squall').v.sum(dtype='f8'))) for _ in range(20)]\n"
        "threads = [threading.Thread(target=read) for _ in range(4)]\n"
        "[t.start() for t in threads], [t.join() for t in threads]\n"
        "print(len(sums), *set(sums))"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    wanted = f"80 {float(value_of(0).sum(dtype='f8'))}\n"
    assert [process.communicate(timeout=120)[0] for process in running] == [wanted] * 2
