"""A unit made anew when some of its sources have left the disk keeps what they gave: byte by byte what a run with all of them makes."""

import json
import os
import shutil

import numpy as np
import pytest
import small_archive as archive
import small_files as small
import xarray as xr
from test_convert import broken_inside, check_values, files, opened, times
from test_convert_arrays import break_chunk
from test_convert_faults import Sweep


@pytest.fixture
def store(tmp_path):
    return tmp_path / "out.zarr"


def report(squall, *args, code=0):
    done = squall("convert", *args, "--json", "--quiet", check=False)
    assert done.code == code, (done.out, done.err)
    return json.loads(done.out)


def flip(path, at=-1):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x55
    path.write_bytes(data)


# ---- GRIB ------------------------------------------------------------------------------------------------------------------------------

FLAGS = ("chunk_exists/", "field_count/")
LAYOUTS = [
    [],
    ["--dtype", "float16", "--on-overflow", "inf", "--chunks", "latitude=5,longitude=7"],
    ["--dtype", "float64", "--coarsen", "y=2,x=2", "--codec", "none"],
    ["--stack", "variable", "--chunks", "init_time=2,step=2"],
    ["--chunks", "init_time=4,step=1,y=5", "--codec", "zstd:level=1"],
    ["--chunks", "init_time=3"],
    ["--chunks", "y=6,x=5", "--shards", "init_time=4,y=all,x=all", "--bitround", "9"],
]


def late(tmp_path):
    """Runs of a file of t and r; then a file comes with u, and with another t of +0 h, when the first ones of two runs are gone."""
    source, everything = tmp_path / "in", tmp_path / "all"
    for n in range(4):
        archive.write(archive.path_of(source, n, "a"), archive.run(n, ("t", "r")))
    archive.write(archive.path_of(source, 0, "b"), archive.run(0, ("u",)))
    shutil.copytree(source, everything)

    def comes():
        for n in (1, 2):
            archive.path_of(source, n, "a").unlink()
            messages = [*archive.run(n, ("u",)), archive.field("t", archive.init(n), 0, seed=7)]
            for folder in (source, everything):
                archive.write(archive.path_of(folder, n, "b"), messages)

    return source, everything, comes


@pytest.mark.parametrize("options", LAYOUTS, ids=" ".join)
def test_a_late_file_is_added_to_what_expired_files_gave(squall, tmp_path, store, options):
    source, everything, comes = late(tmp_path)
    squall("convert", source, store, *options)
    kept = [archive.path_of(source, n, "a") for n in (1, 2)]
    old = {p: (p.read_bytes(), p.stat()) for p in kept}
    comes()
    done = report(squall, source, store, *options)
    assert done["fields_carried"] > 0 and done["units"]["failed"] == 0
    squall("convert", everything, tmp_path / "whole.zarr", *options, check=False)
    assert files(store) == files(tmp_path / "whole.zarr")
    assert squall("verify", store).code == 0 and not list(store.rglob("staged/*"))
    for path, (data, stat) in old.items():  # they come back, as they were
        path.write_bytes(data)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert report(squall, source, store, *options, code=3)["units"]["done"] == 0  # 3: a field is there twice


def test_values_that_are_carried_over_are_those_of_eccodes(squall, tmp_path, store):
    source, everything, comes = late(tmp_path)
    squall("convert", source, store)
    comes()
    report(squall, source, store)
    ds = opened(store)
    assert ds.field_count.values.tolist() == [9, 9, 9, 6] and ds.chunk_exists.values.all()
    expired = [archive.path_of(everything, n, "a") for n in (1, 2)]
    replaced = {(archive.init(n), 0) for n in (1, 2)}
    for name, _, start, hours, values in archive.decoded(expired):
        if name != "t2m" or (start.astype("M8[s]").item(), hours) not in replaced:
            np.testing.assert_array_equal(ds[name].sel(init_time=start, step=np.timedelta64(hours, "h")), values.astype("f4"))
    check_values(ds, [archive.path_of(source, n, "b") for n in (0, 1, 2)])


@pytest.mark.parametrize("options", [["--chunks", "init_time=4"], ["--chunks", "init_time=3,y=5", "--dtype", "float16"]], ids=" ".join)
def test_a_unit_of_several_runs_is_completed_run_by_run(squall, tmp_path, store, options):
    everything = archive.make(tmp_path / "all", 6)
    options = [*options, "--every", "6h"]
    for n in range(6):
        assert report(squall, archive.path_of(everything, n), store, *options)["units"]["done"] == 1
    squall("convert", everything, tmp_path / "whole.zarr", *options)
    assert files(store) == files(tmp_path / "whole.zarr")
    assert report(squall, everything, store, *options)["units"]["done"] == 0  # all files are known


@pytest.mark.parametrize("damage", ["bit", "length", "missing"])
def test_an_old_chunk_that_is_damaged_is_named_and_its_unit_left(squall, tmp_path, store, damage):
    source, everything, comes = late(tmp_path)
    squall("convert", source, store)
    comes()
    chunk = store / "r2/c/1/0/0/0"
    if damage == "bit":
        flip(chunk, 40)
    elif damage == "length":
        chunk.write_bytes(chunk.read_bytes()[:-1])
    else:
        chunk.unlink()
    before = {p: b for p, b in files(store).items() if "c/1" in p and not p.startswith(FLAGS)}
    done = report(squall, source, store, code=3)
    assert done["units"] == {"done": 1, "skipped": 2, "failed": 1}
    why = done["failed"][0]["why"]
    assert why.startswith(f"damaged: {chunk}: ") and "give also " + archive.path_of(source, 1, "a").name in why
    assert {p: b for p, b in files(store).items() if "c/1" in p} == before  # and so its flags are off
    assert [run["state"] for run in json.loads(squall("status", store, "--json").out)["runs"]][:2] == ["complete", "damaged"]
    assert report(squall, source, store, code=3)["units"]["failed"] == 1  # as long as it is so
    assert f"left: run 2024-02-28T06:00: damaged: {chunk}" in squall("status", store).out
    assert str(chunk) in json.loads(squall("status", store, "--json").out)["runs"][1]["left"]
    shutil.copy(archive.path_of(everything, 1, "a"), source)
    report(squall, source, store, code=3)  # a field is there twice
    assert "left" not in squall("status", store).out
    squall("convert", everything, tmp_path / "whole.zarr", check=False)
    assert files(store) == files(tmp_path / "whole.zarr")


def test_a_damaged_chunk_of_which_the_sources_have_all_is_made_anew(squall, tmp_path, store):
    source, everything, comes = late(tmp_path)
    squall("convert", source, store)
    comes()
    archive.write(archive.path_of(source, 1, "c"), archive.run(1, ("r",)))
    flip(store / "r2/c/1/0/0/0", 40)
    assert report(squall, source, store)["units"]["done"] == 2
    squall("convert", everything, tmp_path / "whole.zarr", check=False)
    assert files(store) == files(tmp_path / "whole.zarr")


def test_a_field_that_can_no_longer_be_decoded_keeps_its_value(squall, tmp_path, store):
    source = archive.make(tmp_path / "in", 3, names=("t", "r"))
    squall("convert", source, store)
    before = files(store)
    messages = archive.run(1, ("t", "r"))
    archive.write(archive.path_of(source, 1), [broken_inside(messages[0]), *messages[1:]])
    done = report(squall, source, store, code=3)
    assert done["units"]["done"] == 1 and done["fields_carried"] == 1 and len(done["bad"]) == 1
    assert files(store) == before
    assert report(squall, source, store)["units"]["done"] == 0
    archive.write(archive.path_of(source, 1), messages)  # it is mended
    os.utime(archive.path_of(source, 1), ns=(1, 1))
    assert report(squall, source, store)["fields_carried"] == 0
    assert files(store) == before


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(s, marks=pytest.mark.long) for s in range(4, 40))])
def test_whatever_was_there_once_is_stored(squall, tmp_path, store, seed):
    """Files of any fields come in any order, and each is gone when the next one has come."""
    rng = np.random.default_rng(seed)
    options = [*LAYOUTS[rng.integers(len(LAYOUTS))], "--every", "6h"]
    names = ("t", "r", "u")
    places = [(n, name, step) for n in range(5) for name in names for step in range(3)]
    first = [p for p in places if p[0] == 0]
    rest = [places[i] for i in rng.permutation(len(places)) if places[i][0] > 0]
    cuts = np.sort(rng.choice(np.arange(1, len(rest)), 6, replace=False))
    portions = [first, *(list(p) for p in np.split(np.array(rest, object), cuts))]
    source, everything = tmp_path / "in", tmp_path / "all"
    for i, portion in enumerate(portions):
        messages = [archive.field(name, archive.init(int(n)), int(step)) for n, name, step in portion]
        archive.write(everything / f"{i}.grib2", messages)
        shutil.rmtree(source, ignore_errors=True)
        archive.write(source / f"{i}.grib2", messages)
        squall("convert", source, store, *options)
    squall("convert", everything, tmp_path / "whole.zarr", *options)
    assert files(store) == files(tmp_path / "whole.zarr")


# ---- arrays ----------------------------------------------------------------------------------------------------------------------------

ARRAYS = [
    ["--chunks", "time=5"],
    ["--chunks", "time=7,lat=4,lon=3", "--dtype", "t=float16,p=float32"],
    ["--chunks", "time=12", "--codec", "none", "--threads", "1"],
    ["--chunks", "time=1,lat=2", "--shards", "time=6,lat=4", "--bitround", "t=9"],
]


@pytest.mark.parametrize("options", ARRAYS, ids=" ".join)
def test_places_of_files_that_are_gone_are_kept(squall, tmp_path, store, options):
    paths = small.make(tmp_path / "in", 3)
    for path in paths:  # each alone
        report(squall, path, store, *options)
    squall("convert", *paths, tmp_path / "whole.zarr", *options)
    assert files(store) == files(tmp_path / "whole.zarr")
    assert report(squall, *paths, store, *options)["units"]["done"] == 0
    small.write(paths[2], 2, seed=4)  # and one that is replaced
    report(squall, paths[2], store, *options)
    squall("convert", *paths, tmp_path / "whole.zarr", *options, "--overwrite")
    assert files(store) == files(tmp_path / "whole.zarr")


def test_a_missing_chunk_that_a_run_meets_is_noted_before_all_else(squall, tmp_path, store):
    """Also where the unit is not written then: readers who go by the flags see no fill in its place."""
    source, _, comes = late(tmp_path)
    squall("convert", source, store)
    comes()
    (store / "r2/c/1/0/0/0").unlink()
    (source / "bad.grib2").write_bytes(archive.path_of(source, 1, "b").read_bytes()[:-30])
    done = report(squall, source, store, "--strict", code=3)
    assert any("--strict" in failed["why"] for failed in done["failed"])
    runs = json.loads(squall("status", store, "--json").out)["runs"]
    assert runs[1]["state"] == "damaged" and not (store / "chunk_exists/c/1").exists()
    assert "r2/c/1/0/0/0" in runs[1]["damage"]


def test_an_old_chunk_of_an_array_that_is_damaged_is_named_and_its_unit_left(squall, tmp_path, store):
    paths = small.make(tmp_path / "in", 3)
    options = ["--chunks", "time=12"]
    squall("convert", *paths[:2], store, *options)
    chunk = store / "count/c/0/0/0"
    flip(chunk, 30)
    before = files(store)["count/c/0/0/0"], files(store)["t/c/0/0/0"]
    done = report(squall, paths[2], store, *options, code=3)
    assert done["failed"][0]["why"].startswith(f"damaged: {chunk}: ") and "day00.nc, day01.nc" in done["failed"][0]["why"]
    assert not [p for p in files(store) if p.startswith(FLAGS) and "/c/" in p]
    assert (files(store)["count/c/0/0/0"], files(store)["t/c/0/0/0"]) == before and not list(store.rglob("staged/*"))
    report(squall, *paths, store, *options)
    squall("convert", *paths, tmp_path / "whole.zarr", *options)
    assert files(store) == files(tmp_path / "whole.zarr")


def test_what_of_an_array_can_no_longer_be_read_keeps_its_values(squall, tmp_path, store):
    path = small.write(tmp_path / "day.nc", 0)
    squall("convert", path, store, "--chunks", "time=4")
    before = files(store)
    whole = break_chunk(path, "t", 2)
    os.utime(path)
    done = report(squall, path, store, "--chunks", "time=4", code=3)
    assert done["units"]["done"] == 1 and done["fields_carried"] == 1 and len(done["bad"]) == 1
    assert files(store) == before  # the flag too: all of it is stored
    break_chunk(path, "t", 2, whole)
    os.utime(path)
    assert report(squall, path, store, "--chunks", "time=4")["fields_carried"] == 0
    assert files(store) == before


def test_a_part_of_a_zarr_source_that_could_not_be_read_is_tried_again(squall, tmp_path, store):
    values = np.arange(40, dtype="f4").reshape(4, 10)
    source = tmp_path / "in.zarr"
    xr.Dataset({"v": (("time", "x"), values)}, {"time": np.arange(4)}).to_zarr(source, encoding={"v": {"chunks": (1, 10)}})
    squall("convert", source, store, "--chunks", "time=4")
    chunk = source / "v/c/2/0"
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:-3])
    os.utime(source / "zarr.json")
    report(squall, source, store, "--chunks", "time=4", code=3)
    np.testing.assert_array_equal(xr.open_zarr(store).v, values)
    chunk.write_bytes(whole)
    assert report(squall, source, store, "--chunks", "time=4")["units"]["done"] == 1
    assert report(squall, source, store, "--chunks", "time=4")["units"]["done"] == 0


# ---- killed ----------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["fields", "arrays"])
def sweep(request, squall, support, tmp_path):
    """Before: three runs, of which files have gone; the command adds a late file to what they gave."""
    before, store = tmp_path / "before.zarr", tmp_path / "s" / "out.zarr"
    if request.param == "arrays":
        options = ["--chunks", "time=7,lat=4", "--select", "name=t|p", "--threads", "2"]
        paths = small.make(tmp_path / "in", 3)
        squall("convert", *paths[:2], before, *options)
        sweep = Sweep(support, before, paths[2], store, options)
        sweep.other = paths[0]  # which gives nothing new
    else:
        options = ["--chunks", "latitude=6", "--threads", "2", "-q"]
        source, _, comes = late(tmp_path)
        squall("convert", source, before, *options)
        comes()
        sweep = Sweep(support, before, source, store, options)
        sweep.other = archive.path_of(source, 3, "a")
    sweep.then = files(before)
    return sweep


every = pytest.mark.parametrize("stride", [41, pytest.param(1, marks=pytest.mark.long)])


@every
def test_killed_at_every_call_it_goes_on_and_loses_nothing(sweep, stride):
    sweep.kill_at_every_call(stride)


COORDINATES = ("time", "init_time", "valid_time", "latitude", "longitude", "step", "lat/", "lon/", "series")


def units_of(now):
    """Unit → its files, flags among them."""
    units = {}
    for path, data in now.items():
        if "/c/" in path and not path.startswith(COORDINATES):
            units.setdefault(path.split("/c/")[1].split("/")[0], {})[path] = data
    return units


@every
def test_killed_at_every_call_when_the_late_file_has_gone_too(squall, sweep, stride):
    """Each unit is then as it was, or as the killed run was to make it: nothing is mixed, lost, or unflagged."""
    old, new = units_of(sweep.then), units_of(sweep.after)
    seen = set()
    for n in range(1 + stride // 2, sweep.calls + 1, stride):
        sweep.reset()
        sweep.run(check=False, SQUALL_FAULT=f"{n}:kill")
        options = [o for o in sweep.command[3:] if o != "-q"]
        squall("convert", sweep.other, sweep.store, *options, check=False)
        assert squall("verify", sweep.store).code == 0
        now = units_of(files(sweep.store))
        for unit in old:
            assert now[unit] in (old[unit], new[unit]), (n, unit)
            seen.add(now[unit] == old[unit])
    assert stride > 1 or seen == {False, True}


@every
@pytest.mark.parametrize("fault, words", [("ENOSPC", "No space left"), ("EIO", "Input/output error")])
def test_failed_at_every_call_it_goes_on_and_loses_nothing(sweep, stride, fault, words):
    sweep.fail_every_call(stride, fault, words)


def test_what_a_killed_run_staged_and_came_to_no_line_is_removed(squall, tmp_path, store):
    source, _, comes = late(tmp_path)
    squall("convert", source, store)
    before = times(store)
    (store / "chunk_exists/.squall/staged/1/t2m/c/1").mkdir(parents=True)
    (store / "chunk_exists/.squall/staged/1/t2m/c/1/0").write_bytes(b"x")
    squall("convert", source, store)
    assert times(store) == before and not (store / "chunk_exists/.squall/staged/1").exists()
