"""What makes people write retries: many HDF5 files, few descriptors, threads and processes, other libraries at work in the
same process, files that change under a reader. Results are compared with what was written; a change is an error or the old
data whole, never a mix."""

import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import threading
import time

import h5py
import netCDF4
import numpy as np
import pytest
import squall


def value_of(i):
    return (np.arange(24, dtype="f4").reshape(4, 6) + 100 * i) % 4096


def write_file(path, i, **how):
    with h5py.File(path, "w", libver=("earliest", "v110", "latest")[i % 3]) as f:
        f.create_dataset("v", data=value_of(i), chunks=(2, 6), compression="gzip", shuffle=True, **how)


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    folder = tmp_path_factory.mktemp("thousand")
    paths = [folder / f"f{i:04d}.h5" for i in range(1000)]
    for i, path in enumerate(paths):
        write_file(path, i)
    return paths


LIMITED = """
import concurrent.futures, resource, sys
import numpy as np
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
import squall
ds = squall.open_many(sys.argv[1] + "/*.h5", "file")
def check(k):
    rows = slice(k * 50, k * 50 + 200)
    assert np.array_equal(ds["v"][rows, 1, 2], (8 + 100 * np.arange(1000)[rows]) % 4096)
    return squall.handles().open
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    most = max(pool.map(check, list(range(16)) * 3))
handles = squall.handles()
assert most <= 48 and handles.limit == 32 and handles.open <= 32 and handles.evicted > 900, (most, handles)
print(ds["v"].shape)
"""


def test_a_thousand_files_need_few_descriptors(thousand):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", LIMITED, thousand[0].parent], capture_output=True, text=True, env=env)
    assert done.returncode == 0 and done.stdout == "(1000, 4, 6)\n", done.stderr


def read_rounds(folder, seed, rounds):
    """In a process of its own, by its own threads."""
    ds = squall.open_many(f"{folder}/f00[0-4]*.h5", "file")

    def one(thread):
        rng = np.random.default_rng((seed, thread))
        for _ in range(rounds):
            i = int(rng.integers(50))
            assert np.array_equal(ds["v"][i], value_of(i))
            single = squall.open(f"{folder}/f{i:04d}.h5")
            assert np.array_equal(single["v"][1:3, ::2], value_of(i)[1:3, ::2])
        return rounds

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return sum(pool.map(one, range(8)))


def test_threads_of_several_processes_read_the_same_files(thousand):
    with concurrent.futures.ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(read_rounds, [thousand[0].parent] * 4, range(4), [40] * 4)) == [320] * 4


@pytest.mark.long
def test_they_do_so_for_a_minute_beside_other_libraries(thousand, tmp_path):
    stop = time.monotonic() + 60
    with concurrent.futures.ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        while time.monotonic() < stop:
            ours = [pool.submit(read_rounds, thousand[0].parent, seed, 40) for seed in range(4)]
            test_other_libraries_may_work_in_the_same_process(thousand, tmp_path)
            assert [o.result() for o in ours] == [320] * 4


def test_other_libraries_may_work_in_the_same_process(thousand, tmp_path):
    """h5py and netCDF4 take their own global locks; nothing of ours waits for them or disturbs them."""
    stop = threading.Event()

    def others():
        rounds = 0
        while not stop.is_set() or rounds == 0:
            with h5py.File(thousand[rounds % 1000], "r") as f:
                assert np.array_equal(f["v"][...], value_of(rounds % 1000))
            with netCDF4.Dataset(tmp_path / "own.nc", "w") as f:
                f.createDimension("x", 6)
                f.createVariable("v", "f4", ("x",))[:] = rounds
            rounds += 1
        return rounds

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        busy = pool.submit(others)
        try:
            assert read_rounds(thousand[0].parent, 9, 20) == 160
        finally:
            stop.set()
        assert busy.result() > 0


def read_or_error(array, key=...):
    try:
        return array[key]
    except squall.Error as failure:
        return str(failure)


@pytest.mark.parametrize("how", ["replaced", "rewritten", "truncated", "deleted", "grown"])
@pytest.mark.parametrize("is_open", [True, False])
def test_a_file_that_changes_is_told_by_name(tmp_path, how, is_open):
    paths = [tmp_path / f"{i}.h5" for i in range(3)]
    for i, path in enumerate(paths):
        write_file(path, i)
    before = squall.set_options(max_open_files=100 if is_open else 1)
    try:
        array = squall.open_many(paths, "file")["v"]
        victim = paths[0]
        state = victim.stat()
        if how == "replaced":
            write_file(tmp_path / "new", 7)
            os.replace(tmp_path / "new", victim)
        elif how == "rewritten":
            write_file(tmp_path / "new", 7)
            victim.write_bytes((tmp_path / "new").read_bytes())
            os.utime(victim, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
        elif how == "truncated":
            os.truncate(victim, 900)
        elif how == "deleted":
            victim.unlink()
        else:
            with open(victim, "ab") as f:
                f.write(b"more")
        found = read_or_error(array)
        assert (
            isinstance(found, str) and str(victim) in found and any(w in found for w in ("changed since", "gone since", "No such file"))
        ), found
        assert np.array_equal(array[1:], np.stack([value_of(1), value_of(2)]))  # the others are what they were
    finally:
        squall.set_options(**before)


def test_files_replaced_again_and_again_never_mix(tmp_path):
    """Two versions take each other's place while threads read: each read is one of them, whole, or an error."""
    path = tmp_path / "f.h5"
    versions = [np.full((64, 64), k, "f4") for k in (1, 2)]
    for k, values in enumerate(versions):
        with h5py.File(tmp_path / f"v{k}", "w") as f:
            f.create_dataset("v", data=values, chunks=(8, 8), compression="gzip")
    contents = [(tmp_path / f"v{k}").read_bytes() for k in range(2)]
    path.write_bytes(contents[0])
    stop = time.monotonic() + 3

    def replace():
        for k in range(10**9):
            (tmp_path / "next").write_bytes(contents[k % 2])
            os.replace(tmp_path / "next", path)
            if time.monotonic() > stop:
                return

    def read():
        told = set()
        while time.monotonic() < stop:
            try:
                found = squall.open(path)["v"][...]
                assert found.min() == found.max(), "a mix"
                told.add(float(found[0, 0]))
            except squall.Error as failure:
                assert "changed since" in str(failure) or "gone since" in str(failure), failure
        return told

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        writer = pool.submit(replace)
        readers = [pool.submit(read) for _ in range(3)]
        assert set().union(*(r.result() for r in readers)) <= {1.0, 2.0}
        writer.result()


def test_children_after_a_fork_go_on(thousand):
    ds = squall.open_many(thousand[:100], "file")
    wanted = np.stack([value_of(i) for i in range(100)])
    assert np.array_equal(ds["v"][...], wanted)
    children = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            os._exit(0 if np.array_equal(ds["v"][...], wanted) else 1)
        children.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0, 0, 0]
    assert np.array_equal(ds["v"][50:], wanted[50:])
