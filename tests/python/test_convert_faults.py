"""A conversion that dies, or is failed by the system, at every single call that changes or reads the file system; and then goes on.

After each: chunk_exists was not ahead of the data, nothing half-written is visible, and the same command gives the store that an
undisturbed run gives, byte for byte. tests/support/fail_io.c counts the calls and makes the n-th one fail.
"""

import os
import random
import shutil
import subprocess

import power_loss
import pytest
import small_archive as archive
from test_convert import files

CHUNKS = ["--chunks", "latitude=6", "--threads", "2"]


class Sweep:
    """`before` prepares a store (or nothing); `command` is what is disturbed; `after` is the store that it makes undisturbed."""

    runs_per_unit = 1  # of those that have a flag each

    def __init__(self, support, before, source, store, options):
        self.squall, self.preload = support.parents[1] / "squall", support / "fail_io.so"
        if not self.preload.exists():
            pytest.skip("tests/support/fail_io.so is not built")
        self.before, self.store, self.command = before, store, ["convert", source, store, *options]
        store.parent.mkdir(exist_ok=True)
        self.reset()
        self.calls = self.count()
        self.after = files(store)

    @property
    def chance(self):
        return max(20, self.calls // 8)  # which thread makes a folder durable is chance, so that the number of calls differs

    def count(self, **environment):
        count = self.store.parent / "count"
        self.run(SQUALL_FAULT_COUNT=str(count), **environment)
        return int(count.read_text())

    def reset(self):
        for path in self.store.parent.glob("*out.zarr*"):
            shutil.rmtree(path)
        if self.before:
            shutil.copytree(self.before, self.store)

    def run(self, check=True, **environment):
        process = subprocess.run(
            [self.squall, *map(str, self.command)],
            env=os.environ | {"LD_PRELOAD": str(self.preload)} | environment,
            capture_output=True,
            text=True,
        )
        assert not check or process.returncode in (0, 3), process.stderr  # 3: a field is there twice
        return process

    def flags_are_not_ahead(self):
        """Of every unit of which something is said to be there, every chunk is one that an undisturbed run wrote (before or now)."""
        now = files(self.store) if self.store.is_dir() else {}
        then = files(self.before) if self.before else {}
        for flag in (p for p in now if p.startswith("chunk_exists/c/") and not p.endswith("-tmp") and 1 in now[p]):
            unit = int(flag.rsplit("/", 1)[1]) // self.runs_per_unit
            chunks = {
                p for p in self.after | then if f"/c/{unit}/" in p and not p.startswith("valid_time/")
            }  # a coordinate, which goes ahead
            assert chunks, flag
            assert any(all(now.get(p) == whole.get(p) for p in chunks) for whole in (self.after, then)), (flag, chunks)

    def goes_on(self):
        self.run()
        assert files(self.store) == self.after
        assert [p.name for p in self.store.parent.glob("*out.zarr*")] == [self.store.name]  # nothing is left beside it
        assert not list(self.store.rglob(".*.squall-tmp"))
        assert not list((self.store / "chunk_exists" / ".squall").glob("lock*"))

    def kill_at_every_call(self, stride):
        """And the run that goes on from there at any of its calls, before one is let through."""
        assert self.calls > 15
        points, rng = range(1 + stride // 2, self.calls + 1, stride), random.Random(self.calls)
        for n in points:
            self.reset()
            code = self.run(check=False, SQUALL_FAULT=f"{n}:kill").returncode
            assert code == -9 or n > self.calls - self.chance
            self.flags_are_not_ahead()
            self.run(check=False, SQUALL_FAULT=f"{rng.randrange(1, self.calls + 1)}:kill")
            self.flags_are_not_ahead()
            self.goes_on()
        print(f"killed at {len(points)} of {self.calls} calls, and again when it went on")

    def fail_every_call(self, stride, fault, words):
        benign = 0
        for n in range(1 + stride // 2, self.calls + 1, stride):
            self.reset()
            process = self.run(check=False, SQUALL_FAULT=f"{n}:{fault}")
            assert process.returncode in (0, 1, 3), (n, process.returncode, process.stderr)
            if process.returncode == 1:
                assert words in process.stderr, (n, process.stderr)
                assert not list(self.store.rglob(".*.squall-tmp")), n
            benign += process.returncode != 1
            self.flags_are_not_ahead()
            self.goes_on()
        assert benign <= self.chance + 5  # at the end: releasing a lock, and calls that were not made this time

    def fail_every_read(self, stride, fault):
        """What cannot be read of a source is a bad input (3), whose run is partial until it can; anything else is an error."""
        self.reset()
        calls = self.count(SQUALL_FAULT_READS="1")
        assert calls > 10
        for n in range(1 + stride // 2, calls + 1, stride):
            self.reset()
            process = self.run(check=False, SQUALL_FAULT=f"{n}:{fault}", SQUALL_FAULT_READS="1")
            assert process.returncode in (0, 1, 2, 3, 4, 5), (n, process.returncode, process.stderr)
            assert process.returncode == 0 or process.stderr.strip(), n
            if process.returncode == 3:
                source = str(self.command[1]).split("*")[0]  # of a pattern, where it leads
                assert source in process.stderr or f"{self.store}/u/c/" in process.stderr, (n, process.stderr)
            else:
                self.flags_are_not_ahead()
            if process.returncode == 3 and not self.before:  # what could not be read then may lie before the store's first run
                self.run()
                self.records_are_not_ahead()
            else:
                self.goes_on()

    def is_not_disturbed(self, stride, action, **environment):
        """By what is no failure."""
        self.reset()
        calls = self.count(**environment)
        for n in range(1 + stride // 2, calls + 1, stride):
            self.reset()
            self.run(SQUALL_FAULT=f"{n}:{action}", **environment)
            assert files(self.store) == self.after, n

    def lose_power_at_every_call(self, stride, seed=1):
        """Four ways of losing what was not made durable, behind each call that changed something."""
        record, rng = self.store.parents[1] / "record", random.Random(seed)
        self.reset()
        self.run(LD_PRELOAD=str(self.preload.with_name("record_io.so")), SQUALL_RECORD=str(record))
        assert files(self.store) == self.after
        self.reset()
        disk, lines = power_loss.Disk(self.store.parent), record.read_text().splitlines()
        assert len(lines) > 60 and sum(line.startswith("sync") for line in lines) > 10
        for n, line in enumerate(lines):
            disk.carry_out(line)
            if n % stride != stride // 2 and not power_loss.moves(line):
                continue
            ways = [power_loss.only_what_is_durable, power_loss.names_without_data, power_loss.what_went_and_nothing_that_came]
            for lose in (*ways, lambda disk: power_loss.by_chance(disk, rng)):
                lose(disk)
                self.flags_are_not_ahead()
                self.records_are_not_ahead()
                self.goes_on()
        power_loss.only_what_is_durable(disk)
        assert files(self.store) == self.after  # what a run has reported done is durable

    def records_are_not_ahead(self):
        """verify finds no chunk that a record tells of and that is not so."""
        if (self.store / "zarr.json").exists() and (self.store / "chunk_exists/.squall/layout.json").exists():
            done = subprocess.run([self.squall, "verify", self.store], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr


def levels(n, values):
    return [archive.field("u", archive.init(n), 0, level=level) for level in values]


@pytest.fixture(params=["new", "late file", "overwrite", "part", "last part", "prepend", "grow", "longer"])
def sweep(request, squall, support, tmp_path):
    source, before, store = tmp_path / "in", tmp_path / "before.zarr", tmp_path / "s" / "out.zarr"
    for n in range(3):
        archive.write(archive.path_of(source, n, "a"), archive.run(n, ("t",), range(1)))
    if request.param == "new":
        return Sweep(support, None, source, store, CHUNKS)
    if request.param == "part":
        return Sweep(support, None, source, store, [*CHUNKS, "--every", "6h", "--part", "1/2"])  # no part moves what is stored
    if request.param == "longer":
        for n in range(2):
            archive.write(archive.path_of(source, n, "u"), levels(n, (50, 80)))
    if request.param == "prepend":
        archive.path_of(source, 0, "a").rename(tmp_path / "early.grib2")
    squall("convert", source, before, *CHUNKS)
    if request.param == "prepend":
        (tmp_path / "early.grib2").rename(archive.path_of(source, 0, "a"))
        return Sweep(support, before, source, store, [*CHUNKS, "--prepend"])
    if request.param == "overwrite":
        return Sweep(support, before, source, store, [*CHUNKS, "--overwrite", "--dtype", "float16"])
    if request.param == "grow":
        archive.write(archive.path_of(source, 3, "a"), archive.run(3, ("t", "r"), range(1)))
        return Sweep(support, before, source, store, [*CHUNKS, "--schema", "grow"])
    if request.param == "longer":  # a new run has a step and a level more, and so has a late file of one that is stored
        archive.write(archive.path_of(source, 3, "a"), archive.run(3, ("t",), range(2)) + levels(3, (60, 80)))
        archive.write(archive.path_of(source, 1, "b"), archive.run(1, ("t",), (1,)) + levels(1, (60,)))
        archive.path_of(source, 1, "u").unlink()  # so that its fields are carried over, under other numbers
        return Sweep(support, before, source, store, [*CHUNKS, "--schema", "grow"])
    archive.write(archive.path_of(source, 1, "b"), [archive.field("t", archive.init(1), 0, seed=5)])  # replaces a field
    archive.write(archive.path_of(source, 3, "a"), archive.run(3, ("t",), range(1)))
    os.utime(archive.path_of(source, 1, "a"))
    if request.param == "last part":
        squall("convert", source, before, *CHUNKS, "--part", "1/2", check=False)
        return Sweep(support, before, source, store, [*CHUNKS, "--part", "2/2"])
    return Sweep(support, before, source, store, [*CHUNKS, "-q"])


every = pytest.mark.parametrize("stride", [17, pytest.param(1, marks=pytest.mark.long)])
at_faults = pytest.mark.parametrize("fault, words", [("ENOSPC", "No space left"), ("EIO", "Input/output error")])


@every
def test_killed_at_every_call(sweep, stride):
    sweep.kill_at_every_call(stride)


@every
@at_faults
def test_failed_at_every_call(sweep, stride, fault, words):
    sweep.fail_every_call(stride, fault, words)


def killed_while_replacing(part):
    """What a part leaves that dies while the chunks of a unit take the places of those that were there."""
    for n in range(part.calls, 0, -1):
        part.reset()
        part.run(check=False, SQUALL_FAULT=f"{n}:kill")
        if list(part.store.glob("chunk_exists/.squall/staged/*/t2m")) and '"staged"' in "".join(
            path.read_text() for path in part.store.glob("chunk_exists/.squall/epoch-*-part-2.journal")
        ):
            return part.store
    raise AssertionError("it replaces nothing")


@pytest.fixture
def finishing(squall, support, tmp_path):
    source, before, store = tmp_path / "in", tmp_path / "before.zarr", tmp_path / "s" / "out.zarr"
    for n in range(3):
        archive.write(archive.path_of(source, n, "a"), archive.run(n, ("t",), range(1)))
    squall("convert", source, before, *CHUNKS)
    archive.write(archive.path_of(source, 1, "b"), [archive.field("t", archive.init(1), 0, seed=5)])  # replaces a field
    squall("convert", source, before, *CHUNKS, "--part", "1/2", check=False)
    part = Sweep(support, before, source, store, [*CHUNKS, "--part", "2/2"])
    shutil.move(killed_while_replacing(part), tmp_path / "killed.zarr")
    finish = Sweep(support, tmp_path / "killed.zarr", "--finish", store, [])
    assert finish.after == part.after and finish.after != files(before)
    return finish


def test_finish_killed_at_every_call(finishing):
    finishing.kill_at_every_call(1)


@at_faults
def test_finish_failed_at_every_call(finishing, fault, words):
    finishing.fail_every_call(1, fault, words)


@pytest.mark.parametrize("stride", [29, pytest.param(1, marks=pytest.mark.long)])
def test_power_lost_behind_every_call(sweep, stride):
    sweep.lose_power_at_every_call(stride)


sparsely = pytest.mark.parametrize("stride", [43, pytest.param(3, marks=pytest.mark.long)])
at_shortages = pytest.mark.parametrize(
    "fault, words", [("EMFILE", "Too many open files"), ("ENFILE", "Too many open files"), ("ENOMEM", "Cannot allocate memory")]
)


@sparsely
@at_shortages
def test_out_of_descriptors_or_memory_at_every_call(sweep, stride, fault, words):
    sweep.fail_every_call(stride, fault, words)


@sparsely
@pytest.mark.parametrize("fault", ["EIO", "EMFILE", "ENOMEM", "EACCES"])
def test_reading_fails_at_every_call(sweep, stride, fault):
    sweep.fail_every_read(stride, fault)


@sparsely
@pytest.mark.parametrize("action", ["EINTR", "short"])
@pytest.mark.parametrize("environment", [{}, {"SQUALL_FAULT_READS": "1"}], ids=["writes", "reads"])
def test_interrupted_and_short_calls_go_on(sweep, stride, action, environment):
    sweep.is_not_disturbed(stride, action, **environment)


def test_a_full_disk_is_told_and_the_run_goes_on_when_there_is_room(squall, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "squall-test", disk], capture_output=True).returncode
    ):
        pytest.skip("a small file system cannot be mounted here")
    try:
        source, whole = archive.make(tmp_path / "in", 8), tmp_path / "whole.zarr"
        chunks = ["--chunks", "latitude=3"]
        squall("convert", source, whole, *chunks)
        done = squall("convert", source, disk / "out.zarr", *chunks, check=False)
        assert done.code == 1 and "No space left on device" in done.err and str(disk / "out.zarr") in done.err
        assert not list(disk.rglob(".*.squall-tmp"))
        subprocess.run(["mount", "-o", "remount,size=10m", disk], check=True)
        squall("convert", source, disk / "out.zarr", *chunks)
        assert files(disk / "out.zarr") == files(whole)
    finally:
        subprocess.run(["umount", disk], check=True)
