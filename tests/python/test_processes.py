"""Processes that are forked or started in every way that Python has, while threads read; and how many threads work."""

import concurrent.futures
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")
import squall  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:The specified chunks separate:UserWarning")
SHAPE, FILES = (12, 40, 50), 4


def value_of(i):
    return np.random.default_rng(i).integers(0, 1 << 20, SHAPE).astype("f4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes")
    for i in range(FILES):
        with netCDF4.Dataset(folder / f"f{i}.nc", "w") as f:
            for name, length in zip(("time", "y", "x"), SHAPE, strict=True):
                f.createDimension(name, None if name == "time" else length)
            f.createVariable("time", "i4", ("time",))[:] = np.arange(12) + 12 * i
            f.createVariable("v", "f4", ("time", "y", "x"), zlib=True, complevel=1, chunksizes=(1, 20, 50))[:] = value_of(i)
    squall.create_array(folder / "s.zarr", "v", data=value_of(9), chunks=(1, 20, 50), dims=("time", "y", "x"))
    return folder


@pytest.fixture(scope="module")
def values():
    return np.concatenate([value_of(i) for i in range(FILES)])


class Sample:
    """As a DataLoader has it: opened by the parent, read by its children."""

    def __init__(self, folder):
        self.many, self.store = xr.open_dataset(f"{folder}/*.nc", engine="squall"), squall.open(folder / "s.zarr")["v"]

    def __len__(self):
        return 12 * FILES

    def __getitem__(self, i):
        return np.stack([self.many.v[i].values, self.store[i % 12]])


def rows(sample, which):
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        return [float(pair[0].sum(dtype="f8") - pair[1].sum(dtype="f8")) for pair in pool.map(sample.__getitem__, which)]


class Readers:
    """Threads of this process that read all the time, so that a fork comes in the middle of their work."""

    def __init__(self, folder, values):
        self.folder, self.values, self.stop, self.failure = folder, values, threading.Event(), None
        self.threads = [threading.Thread(target=self.read) for _ in range(3)]

    def read(self):
        ds = xr.open_dataset(f"{self.folder}/*.nc", engine="squall", cache=False)
        try:
            while not self.stop.is_set():
                np.testing.assert_array_equal(ds.v.values, self.values)
                np.testing.assert_array_equal(xr.open_dataset(self.folder / "f1.nc", engine="squall").v[3].values, self.values[15])
        except BaseException as failure:
            self.failure = failure

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert self.failure is None, self.failure


# zarrs-python #171, iohub #416, pytorch #1355, #11887: children hang, or have wrong values, where the parent had read before
@pytest.mark.parametrize(
    ("method", "rounds"),
    [
        ("fork", 4),
        ("spawn", 1),
        *(pytest.param(method, 100, marks=pytest.mark.long) for method in ("fork", "spawn", "forkserver")),
    ],
)
def test_pools_of_processes_read_what_was_opened_before(folder, values, method, rounds):
    sample, store = Sample(folder), value_of(9)
    wanted = [float(values[i].sum(dtype="f8") - store[i % 12].sum(dtype="f8")) for i in range(len(sample))]
    assert rows(sample, range(len(sample))) == wanted  # the pool of threads is there before
    with Readers(folder, values):
        for _ in range(rounds):
            with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
                parts = [range(k, len(sample), 4) for k in range(4)]
                found = [future.result(timeout=120) for future in [pool.submit(rows, sample, part) for part in parts]]
            for part, sums in zip(parts, found, strict=True):
                assert sums == [wanted[i] for i in part]


def fork_and_read(sample, i, depth):
    """A child of a child of a child: each forks once it has read."""
    good = sample[i][0].shape == SHAPE[1:]
    if depth == 0:
        return good
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if fork_and_read(sample, i + 1, depth - 1) else 1)
    return good and os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("rounds", [5, pytest.param(100, marks=pytest.mark.long)])
def test_children_of_children_read(folder, values, rounds):
    sample = Sample(folder)
    with Readers(folder, values):
        for i in range(rounds):
            assert fork_and_read(sample, i % 40, 3)


@pytest.mark.parametrize(("method", "rounds"), [("fork", 100), ("spawn", 100)])
@pytest.mark.long
def test_workers_of_pytorchs_dataloader_read(folder, values, method, rounds):
    torch = pytest.importorskip("torch", reason="torch is in tests/requirements-long.txt, which only ./run test-long installs")
    sample = Sample(folder)
    assert sample[0].shape == (2, *SHAPE[1:])
    with Readers(folder, values):
        for _ in range(rounds):
            loader = torch.utils.data.DataLoader(sample, batch_size=4, num_workers=2, multiprocessing_context=method, timeout=120)
            batches = torch.cat(list(loader)).numpy()
            np.testing.assert_array_equal(batches[:, 0], values)


# ---- calls within calls ---------------------------------------------------------------------------------------------------------------


def test_signal_handlers_read_within_reads_of_many_threads(folder, values):
    """A handler runs in the middle of a read of the main thread, and reads the same dataset, by Dask's threads."""
    dask = pytest.importorskip("dask")
    ds = xr.open_dataset(f"{folder}/*.nc", engine="squall", cache=False)
    lazy, seen = xr.open_dataset(f"{folder}/*.nc", engine="squall", chunks={"time": 6}), []
    wanted = float(values.sum(dtype="f8"))

    def handle(*_):
        seen.append(float(ds.v.values.sum(dtype="f8")))
        with dask.config.set(scheduler="threads", num_workers=4):
            seen.append(float(lazy.v.astype("f8").sum().compute()))

    before = signal.signal(signal.SIGALRM, handle)
    try:
        with Readers(folder, values):
            for _ in range(4):
                count, deadline = len(seen), time.monotonic() + 60
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                while len(seen) == count and time.monotonic() < deadline:
                    np.testing.assert_array_equal(ds.v.values, values)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen == [wanted] * 8


# A handler that forks, in the middle of a read by several threads; the child goes on in its copy of that read, or leaves it
FORKING = """
import os, signal, sys, time
import numpy as np, squall

array, children = squall.open_array(sys.argv[1]), []
wanted = array[:]

def handle(*_):
    child = os.fork()
    if child:
        children.append(child)
    else:
        signal.alarm(60)
        if len(children) % 2:
            raise SystemExit

def read_as_a_child():
    assert np.array_equal(array[:], wanted)
    os._exit(0)

parent = os.getpid()
signal.signal(signal.SIGALRM, handle)
while len(children) < 6:
    count, deadline = len(children), time.monotonic() + 60
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    while len(children) == count and time.monotonic() < deadline:
        try:
            found = array[:]
        except squall.Error as error:
            assert os.getpid() != parent and "forked" in str(error), error
            read_as_a_child()
        except SystemExit:
            read_as_a_child()
        assert np.array_equal(found, wanted)
        if os.getpid() != parent:
            read_as_a_child()
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 6
"""


def test_a_signal_handler_may_fork_within_a_read(tmp_path):
    squall.create_array(tmp_path / "a.zarr", data=np.random.default_rng(1).normal(size=(64, 128, 256)), chunks=(1, 128, 256))
    code = "import squall; squall.set_options(threads=2)" + FORKING
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a.zarr"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_finalizers_read_within_reads(folder, values):
    """Garbage may be collected anywhere, and what collects it may read."""
    ds = xr.open_dataset(f"{folder}/*.nc", engine="squall", cache=False)
    sums = []

    class Last:
        def __init__(self):
            self.me = self

        def __del__(self):
            sums.append(float(ds.v[:3].values.sum(dtype="f8")))

    def read(k):
        for _ in range(10):
            Last()
            np.testing.assert_array_equal(ds.v[k::7].values, values[k::7])

    with concurrent.futures.ThreadPoolExecutor(7) as pool:
        list(pool.map(read, range(7)))
    import gc

    gc.collect()
    assert sums == [float(values[:3].sum(dtype="f8"))] * 70


def test_datasets_are_opened_while_distributed_is_imported(folder):
    code = (
        "import sys, threading, squall\n"
        "done = threading.Event()\n"
        "def read():\n"
        "    while not done.is_set():\n"
        "        squall.open_array(sys.argv[1] + '/s.zarr/v')[0, 0, 0]\n"
        "    print('read')\n"
        "threads = [threading.Thread(target=read) for _ in range(3)]\n"
        "[t.start() for t in threads]\n"
        "import distributed.worker\n"
        "done.set()"
    )
    pytest.importorskip("distributed")
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, timeout=120)
    assert done.stdout.count("read") == 3, done.stderr  # the lines of threads may run together


# ---- how many threads work ------------------------------------------------------------------------------------------------------------

# Each read lasts some time, and what runs meanwhile is counted: threads in the state R (proc(5)), and those that were started
COUNTING = """
import os, sys, threading, time
import numpy as np, squall

callers, path = int(sys.argv[1]), sys.argv[2]
array = squall.open_array(path)

def states():
    found = []
    for task in os.listdir("/proc/self/task"):
        try:
            found.append(open(f"/proc/self/task/{task}/stat").read().rpartition(")")[2].split()[0])
        except OSError:
            pass
    return found

before, stop, outs = len(states()), threading.Event(), [np.empty(array.shape, array.dtype) for _ in range(callers)]

def read(out):
    while not stop.is_set():
        array.read(out=out)

threads = [threading.Thread(target=read, args=(out,)) for out in outs]
[t.start() for t in threads]
time.sleep(0.2)
running = []
for _ in range(60):
    running.append(states().count("R") - 1)  # but for the one that counts
    time.sleep(0.005)
started = len(states()) - before - callers
stop.set()
[t.join() for t in threads]
assert all(np.array_equal(out, outs[0]) for out in outs)
print(started, sorted(running)[len(running) // 2], max(running))
"""


@pytest.mark.parametrize("callers", [1, 2, 8])
def test_callers_at_the_same_time_share_the_cpus(callers, tmp_path):
    """At most as many threads as CPUs are at work, or as many as there are callers; the pool has one thread less than CPUs."""
    cpus = len(os.sched_getaffinity(0))
    squall.create_array(tmp_path / "a.zarr", data=np.random.default_rng(1).normal(size=(64, 128, 256)), chunks=(1, 128, 256))
    done = subprocess.run([sys.executable, "-c", COUNTING, str(callers), tmp_path / "a.zarr"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    started, usual, _ = map(int, done.stdout.split())
    assert started <= cpus - 1
    assert usual <= max(cpus, callers)
