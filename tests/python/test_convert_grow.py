"""`squall convert --schema`: what becomes of variables that the store was made without. The oracle is a store that had all runs at once."""

import json
import os

import pytest
import small_archive as archive
import small_files
import xarray as xr


def write(folder, n, fields, part=""):
    folder.mkdir(exist_ok=True)
    archive.path_of(folder, n, part).write_bytes(b"".join(fields))


def values(store):
    with xr.open_zarr(store) as ds:
        return ds.load()


def same(grown, whole):
    """Whatever the order of the variables; history tells of the options."""
    assert set(grown.variables) == set(whole.variables)
    for name in whole.variables:
        xr.testing.assert_identical(grown[name], whole[name])


@pytest.fixture
def source(tmp_path):
    """Two runs of two variables; the third has two more, one of them on levels."""
    folder = tmp_path / "source"
    for n in range(2):
        write(folder, n, archive.run(n, ("t", "r")))
    return folder


def add_third(folder):
    levels = [archive.field("u", archive.init(2), step, level=level) for level in (10, 80) for step in range(3)]
    write(folder, 2, archive.run(2, ("t", "r", "prmsl")) + levels)


@pytest.mark.parametrize("more", [[], ["--shards", "init_time=2"], ["--chunks", "init_time=2"]])
def test_new_variables_join_the_store(squall, source, tmp_path, more):
    """The past has fill, and no flag of it changes; a run without the option afterwards takes them for its own."""
    grown, whole = tmp_path / "grown.zarr", tmp_path / "whole.zarr"
    squall("convert", source, grown, "--every", "6h", *more)
    before = {p: p.stat().st_mtime_ns for p in (grown / "t2m" / "c" / "0").rglob("*") if p.is_file()}
    add_third(source)
    done = squall("convert", source, grown, "--every", "6h", *more, "--schema", "grow", "-v")
    assert "new in the store: prmsl, u" in done.err and before
    assert {p: p.stat().st_mtime_ns for p in before} == before
    squall("convert", source, whole, "--every", "6h", *more)
    same(values(grown), values(whole))
    write(source, 3, archive.run(3, ("t", "r", "prmsl")))
    for store in (grown, whole):
        assert squall("convert", source, store, "--every", "6h", *more).code == 0
        assert squall("verify", store).code == 0
    same(values(grown), values(whole))


def test_late_fields_of_new_variables_fill_the_past(squall, source, tmp_path):
    grown, whole = tmp_path / "grown.zarr", tmp_path / "whole.zarr"
    squall("convert", source, grown, "--every", "6h")
    write(source, 0, archive.run(0, ("prmsl",)), "late")
    squall("convert", source, grown, "--every", "6h", "--schema", "grow")
    squall("convert", source, whole, "--every", "6h")
    same(values(grown), values(whole))
    assert values(grown).field_count.values.tolist() == [9, 6]


def test_ignored_is_named_and_exit_3_once(squall, source, tmp_path):
    store = tmp_path / "s.zarr"
    squall("convert", source, store, "--every", "6h")
    add_third(source)
    first = squall("convert", source, store, "--every", "6h", check=False)
    assert first.code == 3 and "the store was made without prmsl (meanSea)" in first.err
    assert squall("convert", source, store, "--every", "6h", "--schema", "ignore").code == 0
    assert squall("convert", source, store, "--every", "6h", "--schema", "grow").code == 0  # they are not lost
    assert set(values(store).data_vars) >= {"t2m", "r2", "prmsl"}


def test_strict_writes_nothing(squall, source, tmp_path):
    store = tmp_path / "s.zarr"
    squall("convert", source, store, "--every", "6h", "--schema", "strict")
    add_third(source)
    before = {p: p.read_bytes() for p in store.rglob("*") if p.is_file()}
    done = squall("convert", source, store, "--every", "6h", "--schema", "strict", check=False)
    assert done.code == 4 and "the store was made without" in done.err and "202402281200.grib2" in done.err
    assert {p: p.read_bytes() for p in store.rglob("*") if p.is_file()} == before


def test_names_that_are_taken_say_more(squall, source, tmp_path):
    """Another grid of what the store has: its own names and dimensions stay."""
    import eccodes as ec

    store = tmp_path / "s.zarr"
    levels = [archive.field("u", archive.init(0), 0, level=level) for level in (10, 80)]
    write(source, 0, archive.run(0, ("t", "r")) + levels)
    squall("convert", source, store, "--every", "6h")
    first = values(store)
    h = ec.codes_new_from_message(archive.field("t", archive.init(1), 0))
    ec.codes_set(h, "latitudeOfFirstGridPointInDegrees", 51)
    ec.codes_set(h, "latitudeOfLastGridPointInDegrees", 51 - (archive.ROWS - 1) * 0.5)
    other_grid = ec.codes_get_message(h)
    ec.codes_release(h)
    write(source, 1, archive.run(1, ("t", "r")) + [other_grid], "b")
    squall("convert", source, store, "--every", "6h", "--schema", "grow", check=False)
    now = values(store)
    new = set(now.data_vars) - set(first.data_vars)
    assert len(new) == 1 and all(name.startswith("t2m_") for name in new)
    dims = now[new.pop()].dims
    assert dims[:2] == ("init_time", "step") and set(dims[2:]).isdisjoint(first.t2m.dims)
    xr.testing.assert_identical(
        now[list(first.data_vars)].isel(init_time=[0]), first.isel(init_time=[0]).assign_attrs(now.attrs)[list(first.data_vars)]
    )


def test_stacks_and_arrays_do_not_grow(squall, source, tmp_path):
    squall("convert", source, tmp_path / "s.zarr", "--every", "6h", "--stack", "variable")
    add_third(source)
    done = squall("convert", source, tmp_path / "s.zarr", "--every", "6h", "--stack", "variable", "--schema", "grow", check=False)
    assert done.code == 4 and "a stack cannot grow" in done.err
    small_files.write(tmp_path / "a.nc", 0)
    done = squall("convert", tmp_path / "a.nc", tmp_path / "a.zarr", "--schema", "grow", check=False)
    assert done.code == 2 and "--schema grow is for GRIB" in done.err


def test_strict_arrays_write_nothing(squall, tmp_path):
    for day in range(2):
        small_files.write(tmp_path / f"{day}.nc", day, without=("flag",) if day == 0 else ())
    store = tmp_path / "a.zarr"
    squall("convert", tmp_path / "0.nc", store)
    done = squall("convert", tmp_path / "1.nc", store, "--schema", "strict", check=False)
    assert done.code == 4 and "flag" in done.err and "1.nc" in done.err


@pytest.mark.parametrize("kill", range(8))
def test_a_killed_growth_goes_on(squall, source, tmp_path, support, kill):
    """At eight moments of the calls that change the file system; all of them are in the sweep of test_convert_faults.py."""
    import shutil
    import subprocess

    made, store = tmp_path / "made.zarr", tmp_path / "s.zarr"
    squall("convert", source, made, "--every", "6h")
    add_third(source)
    how = ["convert", source, store, "--every", "6h", "--schema", "grow"]
    program, preload, count = support.parents[1] / "squall", support / "fail_io.so", tmp_path / "count"

    def run(**environment):
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(made, store)
        env = os.environ | {"LD_PRELOAD": str(preload)} | environment
        return subprocess.run([program, *how], env=env, capture_output=True, text=True)

    run(SQUALL_FAULT_COUNT=str(count))
    whole, calls = values(store), int(count.read_text())
    assert run(SQUALL_FAULT=f"{1 + kill * calls // 8}:kill").returncode == -9
    runs = json.loads(squall("status", "--json", store, check=False).out)["runs"]
    assert [run["state"] for run in runs][:2] == ["complete", "complete"] or len(runs) == 3
    subprocess.run([program, *how], check=True)
    same(values(store), whole)


def test_growth_goes_with_parts_and_earlier_runs(squall, source, tmp_path):
    """Each part finds the new variable for itself; runs before the first may bring it."""
    parts, earlier, whole = tmp_path / "parts.zarr", tmp_path / "earlier.zarr", tmp_path / "whole.zarr"
    for store in (parts, earlier):
        squall("convert", source, store, "--every", "6h")
    add_third(source)
    for part in ("2/2", "1/2"):
        squall("convert", source, parts, "--every", "6h", "--schema", "grow", "--part", part)
    squall("convert", source, whole, "--every", "6h")
    same(values(parts), values(whole))
    write(source, -1, archive.run(-1, ("t", "r", "prmsl")))
    squall("convert", source, earlier, "--every", "6h", "--schema", "grow", "--prepend")
    squall("convert", source, tmp_path / "all.zarr", "--every", "6h")
    same(values(earlier), values(tmp_path / "all.zarr"))
