"""squall convert --prepend: runs before the store's first are added, and all that is stored gets other places along init_time.

The oracle is one conversion of all runs: the store is the same, byte for byte, the records (.squall) aside. Where it is killed, what
readers see is looked at with xarray, against what ecCodes says is in the files.
"""

import json
import os
import pathlib
import shutil

import numpy as np
import pytest
import small_archive as archive
import xarray as xr
from test_convert import check_values, files
from test_convert_faults import Sweep

RECORDS = pathlib.Path("chunk_exists/.squall")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return sorted(archive.make(tmp_path_factory.mktemp("all"), 9, names=("t", "u"), steps=range(2)).iterdir())


def folder_of(folder, runs):
    folder.mkdir(exist_ok=True)
    for run in runs:
        (folder / run.name).symlink_to(run)
    return folder


def init_times(store):
    with xr.open_zarr(store) as ds:
        return list(ds.init_time.values), list(ds.chunk_exists.values)


def nothing_is_left(store):
    assert [p.name for p in store.parent.iterdir() if store.name in p.name] == [store.name]
    assert not list(store.rglob(".*.squall-tmp")) and not list((store / RECORDS).glob("lock*"))


LAYOUTS = [
    ["--chunks", "latitude=6"],
    ["--chunks", "init_time=4,latitude=6"],
    ["--chunks", "latitude=6", "--shards", "init_time=2,latitude=all,longitude=all"],
    ["--stack", "variable"],
    ["--dtype", "float16", "--chunks", "longitude=7"],
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=" ".join)
def test_the_store_is_that_of_one_conversion(squall, runs, tmp_path, layout):
    """4 runs are added before 4, and a run behind them in the same command."""
    store, whole = tmp_path / "out.zarr", tmp_path / "whole.zarr"
    squall("convert", folder_of(tmp_path / "late", runs[4:8]), store, *layout)
    stored = {p.name: p.stat().st_ino for p in store.rglob("c/0/*") if "chunk_exists" not in p.parts}
    everything = folder_of(tmp_path / "all", runs)
    report = json.loads(squall("convert", everything, store, *layout, "--prepend", "--json").out)
    squall("convert", everything, whole, *layout)
    assert stored and files(store) == files(whole)
    assert report["ignored"] == []
    nothing_is_left(store)
    squall("verify", store)
    again = json.loads(squall("convert", everything, store, *layout, "--prepend", "--json").out)
    assert again["units"]["done"] == 0 and again["units"]["failed"] == 0
    assert files(store) == files(whole)


def test_what_is_stored_is_not_copied(squall, runs, tmp_path):
    store = tmp_path / "out.zarr"
    squall("convert", folder_of(tmp_path / "late", runs[4:]), store)
    before = {p.relative_to(store / "t2m" / "c" / "0"): p.stat().st_ino for p in (store / "t2m/c/0").rglob("*") if p.is_file()}
    squall("convert", folder_of(tmp_path / "all", runs), store, "--prepend")
    assert before and {name: (store / "t2m" / "c" / "4" / name).stat().st_ino for name in before} == before


def test_without_the_sources_of_what_is_stored(squall, runs, tmp_path):
    store, whole = tmp_path / "out.zarr", tmp_path / "whole.zarr"
    squall("convert", folder_of(tmp_path / "late", runs[3:]), store)
    squall("convert", folder_of(tmp_path / "early", runs[:3]), store, "--prepend")
    squall("convert", folder_of(tmp_path / "all", runs), whole)
    assert files(store) == files(whole)


def test_without_the_option_early_runs_are_named(squall, runs, tmp_path):
    store = tmp_path / "out.zarr"
    squall("convert", folder_of(tmp_path / "late", runs[3:]), store)
    before = files(store)
    done = squall("convert", folder_of(tmp_path / "early", runs[2:3]), store, check=False)
    assert done.code == 3 and "lies before the store's first" in done.err and "--prepend adds it" in done.err
    assert files(store) == before


@pytest.mark.parametrize("layout", [["--chunks", "init_time=4"], ["--shards", "init_time=4"]], ids=" ".join)
def test_the_start_is_that_of_a_chunk(squall, runs, tmp_path, layout):
    """Of 4 runs to a chunk one is added: the start is earlier by 4, and 3 of these have no run. Later they are filled in."""
    store, whole = tmp_path / "out.zarr", tmp_path / "whole.zarr"
    squall("convert", folder_of(tmp_path / "late", runs[4:]), store, *layout)
    plan = squall("convert", folder_of(tmp_path / "some", runs[3:]), store, *layout, "--prepend", "--dry-run")
    assert "init_time begins at 2024-02-28T00:00 now, 4 before the store's first; 3 of these have no run" in plan.out
    assert len(init_times(store)[0]) == 5  # nothing was done
    squall("convert", tmp_path / "some", store, *layout, "--prepend")
    assert init_times(store)[1] == [False] * 3 + [True] * 6
    with xr.open_zarr(store) as ds:
        check_values(ds, runs[3:])
        assert np.isnan(ds.t2m.values[:3]).all()
    squall("convert", folder_of(tmp_path / "all", runs), store, *layout)
    squall("convert", tmp_path / "all", whole, *layout)
    assert files(store) == files(whole)


def test_gaps_have_coordinates_and_runs_off_the_cadence_do_not(squall, runs, tmp_path):
    store = tmp_path / "out.zarr"
    squall("convert", folder_of(tmp_path / "late", runs[5:]), store)
    stray = archive.write(tmp_path / "stray.grib2", [archive.field("t", archive.init(1, 1), 0)])
    done = squall("convert", runs[2], stray, store, "--prepend", check=False)
    assert done.code == 3 and done.err.count("off the cadence") == 1
    assert init_times(store) == ([np.datetime64(archive.init(n), "ns") for n in range(2, 9)], [True, False, False] + [True] * 4)


def test_records_go_along(squall, runs, tmp_path):
    """Damage that verify has noted is the same unit's afterwards; a file that changes redoes its unit and only it."""
    source, store = folder_of(tmp_path / "in", runs[2:]), tmp_path / "out.zarr"
    squall("convert", source, store)
    chunk = next(p for p in (store / "t2m/c/1").rglob("*") if p.is_file())
    damaged = bytearray(chunk.read_bytes())
    damaged[-1] ^= 1
    chunk.unlink()
    chunk.write_bytes(damaged)
    assert squall("verify", store, check=False).code == 5
    changed = source / runs[4].name
    changed.unlink()
    shutil.copy(runs[4], changed)
    os.utime(changed, ns=(1, 1))
    plan = squall("convert", folder_of(source, runs[:2]), store, "--prepend", "--dry-run").out
    assert "2 to write, 2 to write again, 5 done already" in plan
    done = squall("convert", runs[0], store, "--prepend", check=False)
    assert done.code == 3 and f"to write it anew, give also {runs[3].name}" in done.err  # it is unit 3 now
    assert init_times(store)[1] == [True, False, True, False] + [True] * 5
    assert "damaged" in squall("status", store, check=False).out
    squall("convert", source, store)
    squall("convert", folder_of(tmp_path / "all", runs), tmp_path / "whole.zarr")
    assert files(store) == files(tmp_path / "whole.zarr")


def test_what_others_have_put_into_the_store_stays(squall, runs, tmp_path):
    store = tmp_path / "out.zarr"
    squall("convert", folder_of(tmp_path / "late", runs[2:]), store)
    (store / "mine" / "c").mkdir(parents=True)
    (store / "mine" / "c" / "0").write_bytes(b"12")
    (store / "notes.txt").write_text("x")
    squall("convert", runs[1], store, "--prepend")
    assert (store / "mine/c/0").read_bytes() == b"12" and (store / "notes.txt").read_text() == "x"


def test_a_link_to_the_store_stays_one(squall, runs, tmp_path):
    store, link = tmp_path / "disk" / "out.zarr", tmp_path / "link.zarr"
    store.parent.mkdir()
    squall("convert", folder_of(tmp_path / "late", runs[2:]), store)
    link.symlink_to(store)
    squall("convert", runs[1], link, "--prepend")
    assert link.is_symlink() and len(init_times(store)[0]) == 8
    nothing_is_left(store)


@pytest.mark.parametrize(
    "options, message", [(["--part", "1/2"], "--part and --prepend exclude each other"), (["--every", "12h"], "in steps of 6 h,")]
)
def test_what_it_does_not_go_with_is_refused(squall, runs, tmp_path, options, message):
    store = tmp_path / "out.zarr"
    squall("convert", folder_of(tmp_path / "late", runs[2:]), store)
    before = files(store, records=True)
    done = squall("convert", runs[1], store, "--prepend", *options, check=False)
    assert done.code in (2, 4) and message in done.err
    assert files(store, records=True) == before


def test_of_arrays_it_is_refused(squall, tmp_path):
    xr.Dataset({"a": ("time", [1.0, 2.0])}, {"time": [0, 1]}).to_netcdf(tmp_path / "a.nc")
    done = squall("convert", tmp_path / "a.nc", tmp_path / "out.zarr", "--prepend", check=False)
    assert done.code == 2 and "--prepend is for GRIB sources" in done.err


# ---- the cadence is settled late --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "layout", [[], ["--dtype", "float16", "--shards", "latitude=all,longitude=all"], ["--stack", "variable"]], ids=" ".join
)
@pytest.mark.parametrize(
    "stored, late, options",
    [
        ((0, 2), (1,), []),
        ((0, 2), (3, 4, 5), []),
        ((0, 4), (1,), []),
        ((0, 2), (6,), ["--every", "6h"]),
        ((2, 4), (0, 1, 3), ["--prepend"]),
        ((4,), (2, 3), ["--prepend"]),
    ],
)
def test_two_runs_move_apart_where_a_third_comes_between(squall, runs, tmp_path, layout, stored, late, options):
    store, whole = tmp_path / "out.zarr", tmp_path / "whole.zarr"
    squall("convert", folder_of(tmp_path / "stored", [runs[n] for n in stored]), store, *layout)
    squall("convert", folder_of(tmp_path / "late", [runs[n] for n in late]), store, *layout, *options)
    every = [option for option in options if option != "--prepend"]
    squall("convert", folder_of(tmp_path / "all", [runs[n] for n in (*stored, *late)]), whole, *layout, *every)
    expected, made = files(whole), files(store)
    if every:  # the history tells the options of the first run
        expected.pop("zarr.json"), made.pop("zarr.json")
    assert made == expected
    squall("verify", store)
    nothing_is_left(store)


# ---- killed ---------------------------------------------------------------------------------------------------------------------------

every = pytest.mark.parametrize("stride", [43, pytest.param(1, marks=pytest.mark.long)])


class Readers(Sweep):
    """After each kill readers find the store, before or after, and what it says is there is there."""

    known = None  # values, by run
    stored = None  # runs before

    def flags_are_not_ahead(self):
        if not self.store.exists():  # only where two names cannot be exchanged
            assert (self.store.parent / ".out.zarr.squall-old" / "zarr.json").exists()
            return
        with xr.open_zarr(self.store) as ds:
            ds = ds.load()
        there = set(ds.init_time.values[ds.chunk_exists.values])
        assert there >= self.stored
        for run in there:
            np.testing.assert_array_equal(ds.t2m.sel(init_time=run).values[0], self.known[run], err_msg=str(run))


@pytest.fixture(
    params=[
        ((2, 3, 4), (0, 1), ["--prepend"]),
        ((2, 3, 4), (0, 1), ["--prepend", "--chunks", "init_time=2"]),
        ((0, 2), (1,), []),
    ],
    ids=["runs", "two runs a chunk", "another step"],
)
def readers(request, squall, support, tmp_path):
    source, before, store = tmp_path / "in", tmp_path / "before.zarr", tmp_path / "s" / "out.zarr"
    stored, late, options = request.param
    for n in stored:
        archive.write(archive.path_of(source, n), archive.run(n, ("t",), range(1)))
    squall("convert", source, before, *options)
    for n in late:
        archive.write(archive.path_of(source, n), archive.run(n, ("t",), range(1)))
    sweep = Readers(support, before, source, store, [*options, "--threads", "1"])
    sweep.known = {start: values.astype("float32") for _, _, start, _, values in archive.decoded(source.iterdir())}
    sweep.stored = {np.datetime64(archive.init(n), "ns") for n in stored}
    return sweep


@every
def test_readers_never_see_a_value_at_a_wrong_time(readers, stride):
    readers.kill_at_every_call(stride)


@every
def test_also_where_two_names_cannot_be_exchanged(readers, stride, monkeypatch):
    monkeypatch.setenv("SQUALL_FAULT_EXCHANGE", "1")
    readers.kill_at_every_call(stride)


def test_a_store_that_a_killed_run_left_under_another_name_is_found(squall, runs, tmp_path):
    store, old = tmp_path / "out.zarr", tmp_path / ".out.zarr.squall-old"
    squall("convert", folder_of(tmp_path / "late", runs[2:]), store)
    before = files(store)
    store.rename(old)
    for command in ("status", "verify"):
        done = squall(command, store, check=False)
        assert done.code != 0 and f"has left the store as {old}; `squall convert` gives it its name back" in done.err
    squall("convert", tmp_path / "late", f"{store}/")
    assert files(store) == before and not old.exists()
    store.rename(old)
    (store / "chunk_exists" / ".squall").mkdir(parents=True)
    done = squall("convert", tmp_path / "late", store, check=False)
    assert done.code == 4 and str(old) in done.err
    assert files(old) == before
