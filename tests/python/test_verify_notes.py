"""What verify finds is noted in the store: readers no longer see those runs, and the next conversion mends them, or says what it lacks."""

import json
import shlex
import shutil
import subprocess

import pytest
import small_archive as archive
import small_files as small
import xarray as xr
from test_convert import files, me
from test_convert_carry import flip, report

OPTIONS = ["--chunks", "latitude=6"]
CHUNK = "r2/c/1/0/0/0"


@pytest.fixture
def store(tmp_path):
    return tmp_path / "out.zarr"


@pytest.fixture
def source(squall, tmp_path, store):
    """A file of t and one of r each run; the store is made of them."""
    for n in range(4):
        for name in ("t", "r"):
            archive.write(archive.path_of(tmp_path / "in", n, name), archive.run(n, (name,)))
    squall("convert", tmp_path / "in", store, *OPTIONS)
    return tmp_path / "in"


def verified(squall, store, code=5):
    done = squall("verify", store, "--json", "-q", check=False)
    assert done.code == code, (done.out, done.err)
    return json.loads(done.out)


def states(squall, store):
    return [run["state"] for run in json.loads(squall("status", store, "--json").out)["runs"]]


def damage(path, kind):
    if kind == "missing":
        path.unlink()
    elif kind == "length":
        path.write_bytes(path.read_bytes() + b"x")
    else:
        flip(path, 50)


@pytest.mark.parametrize("kind", ["bit", "length", "missing"])
def test_damage_is_noted_and_mended(squall, store, source, kind):
    before = files(store)
    damage(store / CHUNK, kind)
    damage(store / "t2m/c/3/0/1/0", "bit")
    found = verified(squall, store)
    assert len(found["bad"]) == 2 and found["noted"] == 2 and found["not_noted"] is None
    ds = xr.open_zarr(store)
    assert ds.chunk_exists.values.tolist() == [True, False, True, False] and ds.field_count.values.tolist() == [6, 0, 6, 0]
    assert states(squall, store) == ["complete", "damaged", "complete", "damaged"]
    told = squall("status", store).out
    assert f"damaged: run 2024-02-28T06:00: {CHUNK}: " in told and "x damaged: 2" in told
    again = verified(squall, store)  # it goes on to be named; there is nothing more to note
    assert again["bad"] == found["bad"] and again["noted"] == 0
    done = report(squall, source, store, *OPTIONS)
    assert done["units"] == {"done": 2, "skipped": 2, "failed": 0} and done["fields_carried"] == 0
    assert files(store) == before and verified(squall, store, code=0)["bad"] == []
    assert states(squall, store) == ["complete"] * 4


def test_of_sources_that_are_gone_undamaged_chunks_are_kept(squall, store, source):
    before = files(store)
    damage(store / CHUNK, "bit")
    verified(squall, store)
    archive.path_of(source, 1, "t").unlink()
    done = report(squall, source, store, *OPTIONS)
    assert done["units"]["done"] == 1 and done["fields_carried"] == 3
    assert files(store) == before and verified(squall, store, code=0)["bad"] == []


@pytest.mark.parametrize("gone", ["one file", "all of the run"])
def test_of_sources_that_are_gone_a_damaged_chunk_stays_off_and_named(squall, store, source, tmp_path, gone):
    before = files(store)
    shutil.copytree(source, tmp_path / "backup")
    damage(store / CHUNK, "bit")
    verified(squall, store)
    after = files(store)
    archive.path_of(source, 1, "r").unlink()
    if gone != "one file":
        archive.path_of(source, 1, "t").unlink()
    for _ in range(2):
        done = report(squall, source, store, *OPTIONS, code=3)
        why = done["failed"][0]["why"]
        assert done["units"]["failed"] == 1 and f"{store / CHUNK}: its bytes do not match their checksum" in why
        assert archive.path_of(source, 1, "r").name in why and (gone == "one file") != (archive.path_of(source, 1, "t").name in why)
        assert files(store) == after and states(squall, store)[1] == "damaged"
    (store / CHUNK).write_bytes(before[CHUNK])  # the chunk comes back: the sources are not needed
    assert "noted as damaged from run 2024-02-28T06:00 on" in verified(squall, store)["bad"][0]
    done = report(squall, source, store, *OPTIONS)
    assert done["units"]["done"] == 1
    assert files(store) == before and verified(squall, store, code=0)["bad"] == []


def test_a_damaged_chunk_of_arrays_is_made_anew(squall, tmp_path, store):
    paths = small.make(tmp_path / "in", 3)
    options = ["--chunks", "time=5,lat=4"]
    squall("convert", *paths, store, *options)
    before = files(store)
    damage(store / "count/c/1/0/0", "bit")
    assert verified(squall, store)["noted"] == 1
    assert [place["state"] for place in json.loads(squall("status", store, "--json").out)["places"]] == [
        *["complete"] * 5,
        *["damaged"] * 5,
        *["complete"] * 2,
    ]
    report(squall, paths[2], store, *options, code=3)  # which has but the last two of the places in question
    assert report(squall, *paths, store, *options)["units"]["done"] == 1
    assert files(store) == before


def test_a_chunk_of_arrays_that_comes_back_needs_no_sources(squall, tmp_path, store):
    paths = small.make(tmp_path / "in", 3)
    options = ["--chunks", "time=4,lat=4"]
    squall("convert", *paths, store, *options)
    before = files(store)
    damage(store / "count/c/1/0/0", "missing")
    verified(squall, store)
    assert report(squall, paths[0], store, *options, code=3)["units"]["failed"] == 1  # which has nothing of the unit
    (store / "count/c/1/0/0").write_bytes(before["count/c/1/0/0"])
    done = report(squall, paths[0], store, *options)
    assert done["units"]["done"] == 1 and done["fields_written"] == 0 and done["fields_carried"] == 4 * len(small.FIELDS)
    assert files(store) == before and verified(squall, store, code=0)["bad"] == []


def test_where_a_run_is_at_work_damage_is_only_named(squall, store, source):
    damage(store / CHUNK, "bit")
    (store / "chunk_exists/.squall/lock").write_text(json.dumps(me()))
    before = files(store, records=True)
    found = verified(squall, store)
    assert len(found["bad"]) == 1 and found["noted"] == 0 and "in use by process" in found["not_noted"]
    assert files(store, records=True) == before
    assert "not noted in the store, which stays as it is: in use by" in squall("verify", store, check=False).out


def test_where_nothing_can_be_written_damage_is_only_named(squall, store, source, tmp_path):
    damage(store / CHUNK, "bit")
    place = tmp_path / "mounted"
    place.mkdir()
    mounted = subprocess.run(["mount", "--bind", store, place], capture_output=True).returncode == 0
    if not mounted:
        pytest.skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        before = files(store, records=True)
        found = verified(squall, place)
        assert len(found["bad"]) == 1 and found["noted"] == 0 and "Read-only file system" in found["not_noted"]
        assert files(store, records=True) == before
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_verify_that_is_killed_or_failed_at_every_call_notes_it_the_next_time(squall, support, store, source, tmp_path, monkeypatch):
    if not (support / "fail_io.so").exists():
        pytest.skip("tests/support/fail_io.so is not built")
    before, damaged = files(store), tmp_path / "damaged.zarr"
    damage(store / CHUNK, "bit")
    shutil.copytree(store, damaged)
    calls = tmp_path / "calls"
    preload = {"LD_PRELOAD": str(support / "fail_io.so")}

    def run(**environment):
        shutil.rmtree(store)
        shutil.copytree(damaged, store)
        for key, value in (preload | environment).items():
            monkeypatch.setenv(key, value)
        done = squall("verify", store, "--json", "-q", check=False)
        for key in preload | environment:
            monkeypatch.delenv(key)
        return done

    run(SQUALL_FAULT_COUNT=str(calls))
    for n in range(1, int(calls.read_text()) + 1):
        for fault in ("kill", "EIO"):
            done = run(SQUALL_FAULT=f"{n}:{fault}")
            assert done.code == (-9 if fault == "kill" else 5)
            if fault == "EIO":
                assert json.loads(done.out)["noted"] or json.loads(done.out)["not_noted"]
            assert len(verified(squall, store)["bad"]) == 1
            assert states(squall, store)[1] == "damaged"
            report(squall, source, store, *OPTIONS)
            assert files(store) == before


def verify_while(support, store, command):
    program = support / "verify_while"
    if not program.exists():
        pytest.skip("tests/support/verify_while is not built")
    done = subprocess.run([program, store, shlex.join(map(str, command))], capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return done


@pytest.fixture
def again(support, store, source):
    """The command that converts once more."""
    return [support.parents[1] / "squall", "convert", "-q", source, store, *OPTIONS]


def test_what_a_run_writes_meanwhile_is_no_damage(support, again, store, source):
    """New runs, and units that are replaced, behind the records that verify has read."""
    for n in (4, 5):
        archive.write(archive.path_of(source, n, "t"), archive.run(n, ("t",)))
    for n in range(4):
        archive.write(archive.path_of(source, n, "t"), [archive.field("t", archive.init(n), step, seed=1) for step in range(3)])
    done = verify_while(support, store, again)
    assert done.returncode == 0 and ": 0 bad" in done.stdout, done.stdout
    assert [p.name for p in (store / "chunk_exists/c").iterdir() if p.name in "45"]  # it has written meanwhile


def test_damage_beside_what_a_run_writes_meanwhile_is_found_and_noted(squall, support, again, store, source):
    flip(store / CHUNK)
    archive.write(archive.path_of(source, 3, "t"), [archive.field("t", archive.init(3), step, seed=1) for step in range(3)])
    done = verify_while(support, store, again)
    assert done.returncode == 5 and f"{store / CHUNK}: its bytes do not match their checksum" in done.stdout, done.stdout
    assert "1 bad" in done.stdout and "1 unit noted as damaged" in done.stdout
    assert states(squall, store)[1] == "damaged" and states(squall, store).count("damaged") == 1
