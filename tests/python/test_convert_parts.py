"""squall convert --part I/N: several processes write one store, in any order, at once, killed and started again.

The oracle is one undisturbed run of the whole: the store is the same, byte for byte, the records (.squall) aside.
"""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time

import pytest
import small_archive as archive
from test_convert import files

RECORDS = pathlib.Path("chunk_exists/.squall")
OPTIONS = ["--chunks", "latitude=6", "--threads", "1"]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = archive.make(tmp_path_factory.mktemp("in"), 9, names=("t", "r"), steps=range(2))
    archive.path_of(folder, 4).unlink()  # a gap
    (folder / "bad.grib2").write_bytes(archive.path_of(folder, 0).read_bytes()[:-50])  # its field is there twice, the last is cut off
    return folder


@pytest.fixture(scope="module")
def whole(squall, source, tmp_path_factory):
    store = tmp_path_factory.mktemp("whole") / "whole.zarr"
    assert squall("convert", source, store, *OPTIONS, check=False).code == 3
    return files(store)


@pytest.fixture
def store(tmp_path):
    return tmp_path / "s" / "out.zarr"


class Parts:
    """Processes that write the parts of one store."""

    def __init__(self, squall, source, store, count, options=OPTIONS):
        self.binary, self.source, self.store, self.count, self.options = squall.binary, source, store, count, options

    def start(self, number, *more):
        command = [
            self.binary,
            "convert",
            self.source,
            self.store,
            *self.options,
            "--part",
            f"{number}/{self.count}",
            "--json",
            "-q",
            *more,
        ]
        return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, process, codes=(0, 3)):
        out, err = process.communicate(timeout=120)
        assert process.returncode in codes, (process.returncode, err)
        return json.loads(out) if process.returncode in (0, 3) else err

    def run(self, number, *more, codes=(0, 3)):
        return self.end(self.start(number, *more), codes)


def flags_are_not_ahead(store, whole):
    """Of every unit that chunk_exists tells of, all chunks are there and right; also while others write."""
    for flag in store.glob("chunk_exists/c/[0-9]*"):
        chunks = {p for p in whole if f"/c/{flag.name}/" in p}
        assert chunks and all((store / p).read_bytes() == whole[p] for p in chunks), flag


def nothing_is_left(store):
    assert [p.name for p in store.parent.iterdir()] == [store.name]
    assert not list(store.rglob(".*.squall-tmp"))
    assert not list((store / RECORDS).glob("lock*"))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_parts_one_after_another_make_the_store_of_the_whole(squall, source, whole, store, count):
    parts = Parts(squall, source, store, count)
    order = random.Random(count).sample(range(1, count + 1), count)
    reports = [parts.run(number) for number in order]
    assert files(store) == whole
    assert sum(report["units"]["done"] for report in reports) == 8
    assert [report["units"]["left_by_other_parts"] == 0 for report in reports] == [False] * (count - 1) + [True]
    nothing_is_left(store)
    squall("verify", store)
    for number in order:
        report = parts.run(number, codes=(0,))  # and now all is known
        assert report["units"]["done"] == 0 and report["units"]["skipped"] + report["units"]["of_other_parts"] == 8
    assert json.loads(squall("convert", source, store, *OPTIONS, "--json").out)["units"] == {"done": 0, "skipped": 8, "failed": 0}
    assert files(store) == whole


@pytest.mark.parametrize("count", [2, 5])
def test_parts_at_once_make_the_store_of_the_whole(squall, source, whole, store, count):
    parts = Parts(squall, source, store, count)
    reports = [parts.end(process) for process in [parts.start(number) for number in range(1, count + 1)]]
    assert files(store) == whole
    assert sum(report["units"]["done"] for report in reports) == 8
    assert sum(report["units"]["left_by_other_parts"] == 0 for report in reports) == 1  # the last one
    nothing_is_left(store)
    squall("verify", store)


def race(parts, whole, rng):
    """All parts at random moments, each killed at random moments until it is let through."""
    running, ends = {}, {number: rng.randrange(3) for number in range(1, parts.count + 1)}  # how often it is yet to be killed
    while ends or running:
        for number in [n for n in ends if n not in running and rng.random() < 0.5]:
            running[number] = parts.start(number), time.monotonic() + (rng.uniform(0, 0.12) if ends[number] else 1e9)
        for number, (process, until) in list(running.items()):
            if process.poll() is None and time.monotonic() < until:
                continue
            del running[number]
            if process.poll() is None:
                process.kill()
                process.communicate()
                ends[number] -= 1
                flags_are_not_ahead(parts.store, whole)
            else:
                parts.end(process)
                del ends[number]
        time.sleep(0.002)


@pytest.mark.parametrize("rounds", [3, pytest.param(100, marks=pytest.mark.long)])
def test_parts_that_are_killed_and_started_again_make_the_store_of_the_whole(squall, source, whole, store, rounds):
    for seed in range(rounds):
        shutil.rmtree(store.parent, ignore_errors=True)
        store.parent.mkdir()
        parts = Parts(squall, source, store, 2 + seed % 4)
        race(parts, whole, random.Random(seed))
        assert files(store) == whole, seed
        nothing_is_left(store)
        squall("verify", store)


# ---- refusals ----


def put_lock(store, name, part=None, host=None, pid=None):
    """A lock of this process, which lives, or of another one."""
    pid = pid or os.getpid()
    holder = {
        "host": host or os.uname().nodename,
        "boot": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "pid_namespace": os.readlink("/proc/self/ns/pid"),
        "pid": pid,
        "start_ticks": int(pathlib.Path(f"/proc/{os.getpid()}/stat").read_text().rsplit(")", 1)[1].split()[19]),
        "since": "2026-01-01T00:00:00Z",
    } | ({"part": part[0], "parts": part[1]} if part else {})
    (store / RECORDS).mkdir(parents=True, exist_ok=True)
    path = store / RECORDS / name
    path.write_text(json.dumps(holder))
    return path


@pytest.mark.parametrize(
    "name, part, arguments, told",
    [
        ("lock-part-1-of-2", (1, 2), ["--part", "1/2"], "in use by part 1 of 2, "),
        ("lock-part-2-of-3", (2, 3), ["--part", "1/2"], "in use by part 2 of 3, "),
        ("lock-part-1-of-2", (1, 2), [], "in use by part 1 of 2, "),
        ("lock-part-1-of-2", (1, 2), ["--overwrite"], "in use by part 1 of 2, "),
        ("lock", None, ["--part", "1/2"], "in use by "),
        ("lock", (2, 3), ["--part", "1/2"], "in use by part 2 of 3, "),
    ],
)
def test_who_cannot_work_beside_others_is_refused(squall, source, whole, store, name, part, arguments, told):
    squall("convert", source, store, *OPTIONS, check=False)
    lock = put_lock(store, name, part)
    done = squall("convert", source, store, *OPTIONS, *arguments, check=False)
    holder = f"process {os.getpid()} on this host ({os.uname().nodename}) since 2026-01-01T00:00:00Z; wait for it to end"
    assert done.code == 4 and f"{store}: {told}{holder}" in done.err
    assert lock.exists() and files(store) == whole
    put_lock(store, name, part, pid=2**22 + 1)  # there is none
    assert squall("convert", source, store, *OPTIONS, *arguments, check=False).code in (0, 3)
    assert files(store) == whole


@pytest.mark.parametrize(
    "arguments, name", [(["--part", "1/2"], "lock-part-1-of-2"), ([], "lock-part-2-of-2"), (["--part", "1/2"], "lock-part-1-of-3")]
)
def test_a_part_on_another_machine_is_never_taken_over(squall, source, store, arguments, name):
    squall("convert", source, store, *OPTIONS, check=False)
    lock = put_lock(store, name, tuple(map(int, re.findall("[0-9]+", name))), host="node17", pid=2**22 + 1)
    done = squall("convert", source, store, *OPTIONS, *arguments, check=False)
    assert done.code == 4 and f"on host node17 since 2026-01-01T00:00:00Z; if that run is dead, remove {lock} and start again" in done.err
    lock.unlink()
    squall("convert", source, store, *OPTIONS, *arguments)


def test_a_part_waits_for_one_that_prepares(squall, source, whole, store):
    parts = Parts(squall, source, store, 2)
    lock = put_lock(store, "lock", (2, 2))
    process = parts.start(1)
    time.sleep(0.5)
    assert process.poll() is None and not (store / "zarr.json").exists()
    lock.unlink()
    parts.end(process)
    parts.run(2)
    assert files(store) == whole
    put_lock(store, "lock", (2, 2))
    process = parts.start(1)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert "interrupted" in parts.end(process, codes=(130,))
    assert not list((store / RECORDS).glob("lock-*"))


@pytest.mark.parametrize("part", ["0/2", "3/2", "1", "1/", "/2", "a/b", "1/2/3", "-1/2", "+1/2", "01/2", "1/0", " 1/2", "1/99999999999"])
def test_what_is_no_part_is_told(squall, source, store, part):
    done = squall("convert", source, store, f"--part={part}", check=False)
    assert done.code == 2 and "wanted is I/N" in done.err and not store.exists()


def test_a_part_replaces_no_store(squall, source, whole, store):
    squall("convert", source, store, *OPTIONS, check=False)
    done = squall("convert", source, store, *OPTIONS, "--part", "1/2", "--overwrite", check=False)
    assert done.code == 2 and "exclude each other" in done.err
    assert files(store) == whole


# ---- sources that differ ----


def test_a_part_with_fewer_runs_takes_nothing_from_the_others(squall, source, whole, store, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    for path in sorted(source.glob("2*.grib2"))[:4]:
        shutil.copy2(path, few)
    Parts(squall, source, store, 2).run(1)
    Parts(squall, few, store, 2).run(2)
    assert json.loads((store / "init_time/zarr.json").read_text())["shape"] == [9]
    Parts(squall, source, store, 2).run(2)
    assert files(store) == whole


def test_what_another_part_adds_is_planned_on_by_one_that_waits(squall, source, whole, store, tmp_path):
    few, grown = tmp_path / "few", tmp_path / "grown.zarr"
    few.mkdir()
    for path in sorted(source.glob("2*.grib2"))[:4]:
        shutil.copy2(path, few)
    Parts(squall, few, store, 2).run(2)
    shutil.copytree(store, grown)
    lock = put_lock(store, "lock", (2, 2))
    late = Parts(squall, few, store, 2).start(1)  # it plans for four runs, and waits
    while not list((store / RECORDS).glob("lock-*")):
        time.sleep(0.01)
    Parts(squall, source, grown, 2).run(2)
    shutil.copytree(grown, store, dirs_exist_ok=True)
    lock.unlink()
    Parts(squall, few, store, 2).end(late)
    assert json.loads((store / "init_time/zarr.json").read_text())["shape"] == [9]
    Parts(squall, source, store, 2).run(1)
    assert files(store) == whole


def test_a_part_removes_what_is_left_among_its_own_units_and_the_last_one_the_rest(squall, source, whole, store):
    parts = Parts(squall, source, store, 2)
    parts.run(1)
    name = next(p for p in whole if p.endswith("/c/1/0/0/0") or p.endswith("/c/1/0/0")).split("/")[0]
    elsewhere = [folder / f".{what}.1f-12-3-0.squall-tmp" for folder, what in ((store / name / "c/1", "0"), (store, "zarr.json"))]
    of_lock = store / RECORDS / ".lock-part-2-of-2.1f-12-3-0.squall-tmp"  # somebody may be making it
    elsewhere[0].parent.mkdir(parents=True)
    for path in (*elsewhere, of_lock):
        path.write_bytes(b"half")
    lock = put_lock(store, "lock-part-1-of-2", (1, 2))
    assert parts.run(2)["units"]["left_by_other_parts"] is None
    assert [path.exists() for path in (*elsewhere, of_lock)] == [False, True, True]
    lock.unlink()
    assert parts.run(2)["units"]["left_by_other_parts"] == 0
    assert [path.exists() for path in (*elsewhere, of_lock)] == [False, False, True]
    of_lock.unlink()
    assert files(store) == whole


# ---- --finish ----


def test_finish_does_what_the_last_part_was_killed_before(squall, support, source, whole, store, tmp_path):
    """Wherever that was: no source is needed, and a part that was not whole is told of."""
    parts = Parts(squall, source, store, 2)
    parts.run(1)
    before, codes = tmp_path / "before", set()
    shutil.copytree(store, before)
    preload = {"LD_PRELOAD": str(support / "fail_io.so")}
    command = [squall.binary, "convert", source, store, *OPTIONS, "--part", "2/2", "-q"]
    count = tmp_path / "count"
    subprocess.run(command, env=os.environ | preload | {"SQUALL_FAULT_COUNT": str(count)}, check=False)
    calls = int(count.read_text())
    for n in [*range(5, calls - 12, 13), *range(calls - 12, calls, 3)]:
        shutil.rmtree(store)
        shutil.copytree(before, store)
        code = subprocess.run(command, env=os.environ | preload | {"SQUALL_FAULT": f"{n}:kill"}).returncode
        assert code == -9 or n > calls - 40  # how many calls there are is partly chance
        done = squall("convert", "--finish", store, "--json", check=False)
        codes.add(done.code)
        units = json.loads(done.out)["units"]
        assert units["planned"] == 8 and done.code == (3 if units["left"] else 0), done.err
        assert (files(store) == whole) == (units["left"] == 0), n
        nothing_is_left(store)
        flags_are_not_ahead(store, whole)
        assert len(list(store.glob("chunk_exists/c/*"))) == 8 - units["left"]
        squall("verify", store)
    assert codes == {0, 3}
    assert parts.run(2)["units"]["left_by_other_parts"] == 0
    assert files(store) == whole
    assert "8 units that the parts planned, all of them written" in squall("convert", "--finish", store).out


def test_finish_is_refused_while_anybody_is_at_work(squall, source, store):
    Parts(squall, source, store, 2).run(1)
    lock = put_lock(store, "lock-part-2-of-2", (2, 2))
    done = squall("convert", "--finish", store, check=False)
    assert done.code == 4 and "in use by part 2 of 2" in done.err
    waiting = subprocess.Popen([squall.binary, "convert", "--finish", store, "--lock-timeout", "100"], stdout=subprocess.PIPE, text=True)
    time.sleep(0.2)
    assert waiting.poll() is None
    lock.unlink()
    assert "but for 4 of 8 units that the parts planned" in waiting.communicate(timeout=100)[0] and waiting.returncode == 3


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--finish"], 2, "something is missing"),
        (["--finish", "a", "b"], 2, "--finish takes the store alone"),
        (["--finish", "b", "--part", "1/2"], 2, "--finish and --part exclude each other"),
        (["--finish", "b", "--dry-run"], 2, "--finish and --dry-run exclude each other"),
        (["--finish", "/none/b.zarr"], 1, "/none/b.zarr: no such store"),
        (["--finish", "/usr"], 2, "no store that squall convert has begun"),
    ],
)
def test_what_cannot_be_finished_is_told(squall, arguments, code, words):
    done = squall("convert", *arguments, check=False)
    assert done.code == code and words in done.err


# ---- waiting for a holder ----


@pytest.mark.parametrize(
    ("name", "holder", "arguments"), [("lock", None, []), ("lock-part-2-of-3", (2, 3), []), ("lock", None, ["--part", "1/2"])]
)
def test_a_run_waits_for_a_holder_as_long_as_it_is_told(squall, source, whole, store, name, holder, arguments):
    squall("convert", source, store, *OPTIONS, check=False)
    shutil.rmtree(next(store.glob("t2m/c")))
    lock = put_lock(store, name, holder)
    begin = time.monotonic()
    done = squall("convert", source, store, *OPTIONS, *arguments, "--lock-timeout", "1", check=False)
    assert done.code == 4 and "in use by" in done.err and time.monotonic() - begin >= 1
    assert lock.exists()  # never taken over
    command = [squall.binary, "convert", source, store, *OPTIONS, *arguments, "--lock-timeout", "100"]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    time.sleep(0.4)
    assert process.poll() is None and not (store / "t2m/c").exists()
    lock.unlink()
    assert process.wait(60) in (0, 3), process.stderr.read()
    process.stderr.close()
    if arguments:
        Parts(squall, source, store, 2).run(2)
    assert files(store) == whole


def test_a_wait_ends_with_ctrl_c(squall, source, store):
    squall("convert", source, store, *OPTIONS, check=False)
    lock = put_lock(store, "lock")
    command = [squall.binary, "convert", source, store, *OPTIONS, "--lock-timeout", "100"]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) and process.returncode == 130
    assert lock.exists()


def test_runs_that_all_wait_make_one_store(squall, source, whole, store):
    """Each plans before it has the lock, and plans on what the others have written meanwhile."""
    command = [squall.binary, "convert", source, store, *OPTIONS, "--json", "-q", "--lock-timeout", "100"]
    processes = [subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(5)]
    reports = [Parts(squall, source, store, 1).end(process) for process in processes]
    assert sum(report["units"]["done"] for report in reports) == 8
    assert files(store) == whole
    nothing_is_left(store)
