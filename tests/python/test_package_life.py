"""Arrays of the package in other processes, among threads, under Ctrl-C, and when they are gone."""

import concurrent.futures
import gc
import importlib.metadata
import io
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest
import squall
import zarr


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(5).integers(0, 1 << 20, (40, 30, 20), dtype=np.int32)


@pytest.fixture(scope="module")
def store(values, tmp_path_factory):
    path = tmp_path_factory.mktemp("life") / "s.zarr"
    root = zarr.open_group(path, mode="w")
    root.create_array("group/a", data=values, chunks=(7, 8, 20))
    root.create_array("texts", shape=(60,), dtype="str", chunks=(7,))[...] = np.array(["a", "ü", ""] * 20, dtype=object)
    return path


@pytest.fixture(scope="module")
def array(store):
    return squall.open(store)["group/a"]


def test_arrays_and_groups_pickle(array, store, values, tmp_path, monkeypatch):
    monkeypatch.chdir(store.parent)
    relative = squall.open("s.zarr")
    packed = [pickle.dumps(x) for x in (array, relative["group/a"], relative, relative["group"])]
    assert max(map(len, packed)) < 1024
    monkeypatch.chdir(tmp_path)
    a, b, tree, group = map(pickle.loads, packed)
    np.testing.assert_array_equal(a[::3], values[::3])
    np.testing.assert_array_equal(b[...], values)
    assert list(tree) == ["texts", "group"] and group.name == "group" and list(group) == ["a"]
    assert a._dataset is b._dataset, "what is unpickled of one store is opened once"


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_what_was_opened_by_a_relative_path_is_read_from_anywhere(store, values, tmp_path, monkeypatch, mode):
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "x.nc", "w", format="NETCDF3_CLASSIC") as ds:
        ds.createDimension("n", 3)
        ds.createVariable("a", "i4", ("n",))[:] = [1, 2, 3]
    monkeypatch.chdir(store.parent)
    array = squall.open("s.zarr", mode=mode)["group/a"]
    monkeypatch.chdir(tmp_path)
    other = squall.open("x.nc", mode=mode)
    many = squall.open_many(["x.nc"])
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(array[...], values)
    assert other["a"][...].tolist() == many["a"][...].tolist() == [1, 2, 3]


def test_another_array_in_its_place_is_refused(tmp_path):
    path = tmp_path / "a.zarr"
    zarr.create_array(path, data=np.arange(6), chunks=(2,))
    packed = pickle.dumps(squall.open_array(path))
    zarr.open_array(path).resize((8,))
    assert pickle.loads(packed).shape == (8,)  # it may grow
    zarr.create_array(path, data=np.arange(6.0), chunks=(2,), overwrite=True)
    gc.collect()
    with pytest.raises(squall.Error, match="another than it was"):
        pickle.loads(packed)


@pytest.mark.parametrize("many", [False, True])
def test_what_is_pickled_is_what_was_opened(tmp_path, many):
    netCDF4 = pytest.importorskip("netCDF4")

    def write(name, value):
        with netCDF4.Dataset(tmp_path / name, "w") as file:
            file.createDimension("x", 2)
            file.createVariable("x", "i4", "x")[:] = value
            file.createVariable("v", "i4", "x")[:] = value

    write("a.nc", [1, 2])
    write("b.nc", [3, 4])
    pattern = str(tmp_path / ("[ab].nc" if many else "a.nc"))
    opened = squall.open(pattern)["v"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(opened))[:2], [1, 2])
    write("c.nc", [7, 8])
    os.replace(tmp_path / "c.nc", tmp_path / "a.nc")
    packed = pickle.dumps(opened)  # of the file that was there
    del opened
    gc.collect()
    with pytest.raises(squall.Error, match="changed since it was opened"):
        pickle.loads(packed)[:]
    assert squall.open(pattern)["v"][0] == (3 if many else 7)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_read(method, array, values):
    array[...]  # so that the pool has threads when the fork comes
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        rows = list(pool.map(array.__getitem__, range(0, 40, 5)))
    np.testing.assert_array_equal(rows, values[::5])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_of_threads_that_read_can_read(array, values):
    stop = threading.Event()

    def read():
        while not stop.is_set():
            array[...]

    threads = [threading.Thread(target=read) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0 if np.array_equal(array[...], values) else 1)
            deadline = time.monotonic() + 30
            while (done := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
                time.sleep(0.005)
            if done == (0, 0):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                pytest.fail("the child hangs")
            assert done[1] == 0
    finally:
        stop.set()
        for t in threads:
            t.join()


def test_threads_read_at_the_same_time(array, store, values):
    texts = squall.open(store)["texts"]

    def read(seed):
        rng = np.random.default_rng(seed)
        for _ in range(30):
            low = rng.integers(0, 20, 3)
            high = low + rng.integers(1, 10, 3)
            key = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
            np.testing.assert_array_equal(array[key], values[key])
            assert list(texts[:3]) == ["a", "ü", ""]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(read, range(16)))


LONG_READ = """
import os, signal, sys, threading, time
import numpy as np, squall
a = squall.open_array(sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
reading = threading.Event()
def interrupt():
    reading.wait()
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
begin = time.monotonic()
reading.set()
try:
    for _ in range(2000):
        a[...]
except KeyboardInterrupt:
    pass
else:
    sys.exit("not interrupted")
took = time.monotonic() - begin
print(took)
assert a[0, 0] == 0  # it can be read again
"""


def test_ctrl_c_ends_a_long_read(tmp_path):
    """One read of millions of chunks, each filled: minutes, if it is not interrupted."""
    zarr.create_array(tmp_path / "a.zarr", shape=(30_000, 30_000), chunks=(10, 10), dtype="u1", fill_value=0)
    done = subprocess.run(
        [sys.executable, "-c", LONG_READ, tmp_path / "a.zarr"], capture_output=True, text=True, env=os.environ, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 20


def test_signal_handlers_may_read_and_raise(array, values, tmp_path):
    """What a handler raises comes out of the read; what it reads is right."""
    zarr.create_array(tmp_path / "a.zarr", shape=(4_000, 4_000), chunks=(10, 10), dtype="u1", fill_value=0)
    long, seen = squall.open_array(tmp_path / "a.zarr"), []

    def handle(*_):
        seen.append(np.array_equal(array[...], values))
        if len(seen) == 2:
            raise ZeroDivisionError("from the handler")

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.2)
    try:
        with pytest.raises(ZeroDivisionError, match="from the handler"):
            for _ in range(9000):
                long[...]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen == [True, True]


def test_other_threads_go_on_during_a_read(tmp_path):
    zarr.create_array(tmp_path / "a.zarr", shape=(4_000, 4_000), chunks=(10, 10), dtype="u1", fill_value=0)
    a, ticks, stop = squall.open_array(tmp_path / "a.zarr"), [], threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    a[...]
    end = time.monotonic()
    stop.set()
    thread.join()
    assert sum(begin < t < end for t in ticks) >= 5


def test_nothing_is_kept_of_what_is_gone(array, store, values):
    """Objects, references and memory are back where they were, after reads and after errors."""
    texts, out = squall.open(store)["texts"], np.empty(values.shape, np.int32)

    def use():
        array[...], array[0, 1, 2], array[[0, 3], ::-1], texts[...], texts[::2], array.oindex[[1, 2], [3]], array.fill_value
        array.read(out=out)
        squall.open(store)["group/a"][0]
        pickle.loads(pickle.dumps(array))
        for wrong in (99, "t", (0, 0, 0, 0), None):
            with pytest.raises(IndexError):
                array[wrong]
        with pytest.raises(ValueError):
            array.read(0, out=out)
        with pytest.raises(FileNotFoundError):
            squall.open("/nothing/here")

    for _ in range(20):
        use()
    counted = (array, texts, array.dtype, array.shape, out, squall._squall.Dataset, squall.Array, np.dtype(object), ...)
    gc.collect()
    before, allocated = [sys.getrefcount(x) for x in counted], sys.getallocatedblocks()
    tracemalloc.start()
    for _ in range(100):
        use()
    gc.collect()
    current, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [sys.getrefcount(x) for x in counted] == before
    assert sys.getallocatedblocks() - allocated < 500 and current < 200_000


def resident_kib():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def test_memory_outside_of_python_is_given_back_too(store, array):
    texts = squall.open(store)["texts"]
    for _ in range(300):
        texts[...], array[...], squall.open(store)
    before = resident_kib()
    for _ in range(3000):
        texts[...], array[::9], squall.open(store)
    assert resident_kib() - before < 8_000


def test_options_are_kept_and_checked(array):
    before = squall.set_options(threads=1, memory="1.5G")
    try:
        assert before == {"threads": None, "memory": None, "max_open_files": None, "cache_folder": None}
        assert squall.set_options() == {"threads": 1, "memory": "1.5G", "max_open_files": None, "cache_folder": None}
        for wrong in (
            {"threads": 0},
            {"threads": 1.5},
            {"threads": True},
            {"memory": "much"},
            {"memory": -1},
            {"memory": 0},
            {"max_open_files": 0},
            {"max_open_files": True},
        ):
            with pytest.raises(ValueError):
                squall.set_options(**wrong)
        assert squall.set_options() == {"threads": 1, "memory": "1.5G", "max_open_files": None, "cache_folder": None}
        small = squall.set_options(memory=1000)
        with pytest.raises(MemoryError, match="memory"):
            squall.open(array.path)["group/a"][0, 0, 0]
        squall.set_options(**small)
    finally:
        squall.set_options(**before)


def test_versions_are_shown():
    text = io.StringIO()
    squall.show_versions(text)
    found = dict(line.split(":", 1) for line in text.getvalue().splitlines())
    assert found["squall"].strip() == squall.__version__ and found["numpy"].strip() == np.__version__
    assert found["xarray's engine"].strip() == "squall is registered" and found["tqdm"].strip() == importlib.metadata.version("tqdm")
    assert found["limits"].strip() == "threads default, memory default, max_open_files default"
    assert found["open files"].strip().endswith(f" {squall.handles().limit}") and found["cache folder"].strip() == "none"
