"""Two to eight processes convert into one store at random moments, are killed and begun again, while others read it.

The oracle is one undisturbed run of the whole archive: its bytes for the store at the end, its values for what readers find meanwhile.
"""

import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time

import numpy as np
import pytest
import small_archive as archive
import xarray as xr
from test_convert import files

RECORDS = pathlib.Path("chunk_exists/.squall")
OPTIONS = ["--chunks", "latitude=6", "--every", "6h", "--threads", "1", "--quiet"]
RUNS, FIRST_RUNS = 24, 4


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The whole archive, and what was there of it when the store began."""
    whole = archive.make(tmp_path_factory.mktemp("whole"), RUNS, names=("t", "u"), steps=range(2))
    first = tmp_path_factory.mktemp("first")
    for n in range(FIRST_RUNS):
        shutil.copy2(archive.path_of(whole, n), first)
    return whole, first


@pytest.fixture(scope="module")
def wanted(squall, sources, tmp_path_factory):
    store = tmp_path_factory.mktemp("wanted") / "wanted.zarr"
    squall("convert", sources[0], store, *OPTIONS)
    return store


class Process:
    """A conversion that is begun again until it is let through: part I of N, or the whole, which cannot work beside others."""

    def __init__(self, squall, source, store, rng, part=None):
        self.command = [squall.binary, "convert", source, store, *OPTIONS, *(["--part", "{}/{}".format(*part)] if part else [])]
        self.rng, self.part, self.kills, self.process, self.done, self.refused = rng, part, rng.randrange(4), None, False, 0

    def turn(self):
        """Go on by what a moment allows. Returns whether the process was killed in it."""
        if self.done:
            return False
        if self.process is None:
            if self.rng.random() < 0.3:
                self.process = subprocess.Popen(list(map(str, self.command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                self.until = time.monotonic() + (self.rng.uniform(0, 0.06) if self.kills else 1e9)
            return False
        code = self.process.poll()
        if code is None and time.monotonic() < self.until:
            return False
        if code is None:
            self.process.send_signal(signal.SIGKILL)
        err = self.process.communicate()[1]
        self.process = None
        if code is None:
            self.kills -= 1
            return True
        if code == 4:  # another holds the store
            assert "in use by" in err, err
            self.refused += 1
        else:
            assert code == 0, (code, err)
            self.done = True
        return False


class Reader(threading.Thread):
    """Opens the store over and over, as xarray does, and compares what it finds with what is to be."""

    def __init__(self, store, wanted, engine):
        super().__init__()
        self.store, self.wanted, self.engine = store, wanted, engine
        self.stop, self.opened, self.runs, self.wrong = threading.Event(), 0, 0, None

    def run(self):
        try:
            while not self.stop.is_set():
                self.look()
        except BaseException as e:
            self.wrong = e

    def look(self):
        with xr.open_dataset(self.store, engine=self.engine) as ds:
            count = ds.sizes["init_time"]
            assert {len(ds[name]) for name in ("init_time", "chunk_exists", "field_count", "t2m", "u10")} == {count}
            wanted = self.wanted.isel(init_time=slice(count))
            xr.testing.assert_identical(ds.init_time.load().drop_attrs(), wanted.init_time.drop_attrs())
            there = np.flatnonzero(ds.chunk_exists.values)
            for name in ("t2m", "u10"):
                for n in there:
                    np.testing.assert_array_equal(ds[name][n].values, wanted[name][n].values, err_msg=f"{name} of run {n}")
            self.opened += 1
            self.runs += len(there)


def race(processes, readers):
    """Returns how many of the processes were killed."""
    killed = 0
    for reader in readers:
        reader.start()
    try:
        deadline = time.monotonic() + 120
        while not all(process.done for process in processes):
            assert time.monotonic() < deadline, [process.command for process in processes if not process.done]
            killed += sum(process.turn() for process in processes)
            time.sleep(0.002)
    finally:
        for process in processes:
            if process.process:
                process.process.kill()
                process.process.communicate()
        for reader in readers:
            reader.stop.set()
            reader.join()
    for reader in readers:
        if reader.wrong:
            raise reader.wrong
    return killed


@pytest.mark.parametrize("rounds", [3, pytest.param(100, marks=pytest.mark.long)])
def test_processes_that_race_make_one_store_and_readers_see_nothing_half(squall, sources, wanted, tmp_path, rounds):
    whole, first = sources
    store = tmp_path / "s" / "out.zarr"
    killed, opened, runs = 0, 0, 0
    with xr.open_zarr(wanted) as ds:
        values = ds.load()
    for seed in range(rounds):
        rng = random.Random(seed)
        shutil.rmtree(store.parent, ignore_errors=True)
        store.parent.mkdir()
        squall("convert", first, store, *OPTIONS)
        count = rng.randrange(1, 8)
        processes = [Process(squall, whole, store, rng, (number, count)) for number in range(1, count + 1)]
        processes.append(Process(squall, rng.choice([whole, first]), store, rng))  # refused as long as a part works
        readers = [Reader(store, values, engine) for engine in ("zarr", "squall")]
        killed += race(processes, readers)
        opened, runs = opened + sum(reader.opened for reader in readers), runs + sum(reader.runs for reader in readers)
        squall("convert", whole, store, *OPTIONS)  # what a killed last part has left
        assert files(store) == files(wanted), seed
        squall("verify", store)
        assert [p.name for p in store.parent.iterdir()] == [store.name]
        assert not list(store.rglob(".*.squall-tmp")) and not list((store / RECORDS).glob("lock*"))
    assert killed and opened > rounds
    print(f"\n{rounds} rounds of 2 to 8 processes: {killed} killed; readers opened the store {opened} times and compared {runs} runs")
