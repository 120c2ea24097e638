"""squall convert, status and verify, as a user runs them. The oracle for values is ecCodes, for stores xarray and zarr-python."""

import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import warnings

import eccodes as ec
import numpy as np
import pytest
import small_archive as archive
import xarray as xr
from conftest import BUILD

STEP = np.timedelta64(1, "h")


def opened(store):
    """As the README says: no argument, no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return xr.open_zarr(store).load()


def files(store, records=False):
    """Path → bytes of every file of a store; without the records, which name files and differ from run to run."""
    store = pathlib.Path(store)
    paths = [p for p in sorted(store.rglob("*")) if p.is_file() and (records or ".squall" not in p.parts)]
    return {str(p.relative_to(store)): p.read_bytes() for p in paths}


def times(store):
    return {str(p): p.stat().st_mtime_ns for p in pathlib.Path(store).rglob("*") if p.is_file()}


def check_values(ds, paths, dtype="float32"):
    """Every field of the files is in the dataset, bit for bit; returns how many there were."""
    count = 0
    for name, _, start, hours, values in archive.decoded(paths):
        stored = ds[name].sel(init_time=start, step=hours * STEP).values
        expected = values.astype("float32").astype(dtype) if dtype != "float64" else values
        np.testing.assert_array_equal(stored, expected, err_msg=f"{name} {start} +{hours} h")
        assert stored.dtype == dtype
        count += 1
    return count


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return archive.make(tmp_path_factory.mktemp("small"))


@pytest.fixture
def store(tmp_path):
    return tmp_path / "out.zarr"


# ---- the main job ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, dtype",
    [
        ([], "float32"),
        (["--dtype", "float16"], "float16"),
        (["--dtype", "float64"], "float64"),
        (["--chunks", "init_time=3,step=2,y=5,x=7"], "float32"),
        (["--codec", "zstd:level=3"], "float32"),
        (["--codec", "none", "--chunks", "y=all,x=all"], "float32"),
        (["--codec", "gzip:level=1", "--chunks", "init_time=all,step=1"], "float32"),
    ],
)
def test_every_value_equals_eccodes(squall, small, store, options, dtype):
    squall("convert", small, store, *options)
    ds = opened(store)
    assert check_values(ds, sorted(small.iterdir()), dtype) == 36
    assert ds.chunk_exists.values.tolist() == [True] * 4
    assert ds.field_count.values.tolist() == [9] * 4
    assert ds.chunk_exists.dtype == bool and ds.field_count.dtype == np.int32


def test_coordinates_and_attributes_are_those_of_cf(squall, small, store):
    squall("convert", small, store)
    ds = opened(store)
    np.testing.assert_array_equal(ds.init_time, [np.datetime64(archive.init(n), "ns") for n in range(4)])
    np.testing.assert_array_equal(ds.step, np.arange(3) * STEP)
    np.testing.assert_array_equal(ds.valid_time, ds.init_time.values[:, None] + ds.step.values[None])
    np.testing.assert_allclose(ds.latitude, 61 - 0.5 * np.arange(archive.ROWS))
    np.testing.assert_allclose(ds.longitude, 0.5 * np.arange(archive.COLUMNS))
    assert ds.t2m.attrs["standard_name"] == "air_temperature" and ds.t2m.attrs["units"] == "K"
    assert ds.latitude.attrs["units"] == "degrees_north"
    assert ds.attrs["Conventions"].startswith("CF-")
    assert ds.attrs["history"].startswith("squall ")
    assert all("_FillValue" not in v.attrs for v in ds.variables.values())


def test_the_store_is_consolidated_and_flags_have_a_chunk_an_element(squall, small, store):
    squall("convert", small, store)
    root = json.loads((store / "zarr.json").read_text())
    metadata = root["consolidated_metadata"]["metadata"]
    assert {"t2m", "r2", "u10", "init_time", "valid_time", "step", "latitude", "longitude", "chunk_exists", "field_count"} <= set(metadata)
    assert metadata["init_time"]["chunk_grid"]["configuration"]["chunk_shape"] == [4096]
    for flag in ("chunk_exists", "field_count"):
        assert metadata[flag]["chunk_grid"]["configuration"]["chunk_shape"] == [1]
        assert len(list((store / flag / "c").iterdir())) == 4
    for name, array in metadata.items():
        assert json.loads((store / name / "zarr.json").read_text()) == array


def test_a_stack_holds_all_variables_in_one_array(squall, small, store):
    squall("convert", small, store, "--stack", "variable", "--stack-name", "UKV", "--dtype", "float16")
    ds = opened(store)
    assert ds.UKV.dims == ("init_time", "variable", "step", "latitude", "longitude")
    assert ds["variable"].values.tolist() == ["r2", "t2m", "u10"]
    for name, _, start, hours, values in archive.decoded(sorted(small.iterdir())):
        stored = ds.UKV.sel(init_time=start, variable=name, step=hours * STEP)
        np.testing.assert_array_equal(stored, values.astype("float32").astype("float16"))


def test_select_rename_and_coarsen(squall, small, store):
    squall(
        "convert",
        small,
        store,
        "--select",
        "name=t2m",
        "--select",
        "name=u10",
        "--rename",
        "t2m=temperature",
        "--coarsen",
        "latitude=2,longitude=5",
    )
    ds = opened(store)
    assert {"temperature", "u10"} <= set(ds.data_vars) and "r2" not in ds and "t2m" not in ds
    for name, _, start, hours, values in archive.decoded(sorted(small.iterdir())):
        if name == "r2":
            continue
        rows, columns = archive.ROWS // 2, archive.COLUMNS // 5
        blocks = values.astype("float32").astype("float64").reshape(rows, 2, columns, 5).swapaxes(1, 2).reshape(rows, columns, 10)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            expected = np.nanmean(blocks, axis=2)
        stored = ds["temperature" if name == "t2m" else name].sel(init_time=start, step=hours * STEP)
        np.testing.assert_allclose(stored, expected, rtol=2e-7)
    np.testing.assert_allclose(ds.latitude, (61 - 0.5 * np.arange(archive.ROWS)).reshape(-1, 2).mean(axis=1))


def test_the_same_bytes_for_any_number_of_threads(squall, small, tmp_path):
    stores = [tmp_path / f"{n}.zarr" for n in (1, 2, 3, 7)]
    for n, store in zip((1, 2, 3, 7), stores, strict=True):
        squall("convert", small, store, "--threads", n, "--chunks", "y=5,x=7")
    first = files(stores[0])
    assert len(first) > 100
    for store in stores[1:]:
        assert files(store) == first


SPARSE = 8


def make_sparse(folder):
    """A run of t on the diagonal of levels and steps, and another of half of it: most chunks of a run have no field."""
    for n, levels in ((0, range(SPARSE)), (1, range(SPARSE // 2))):
        archive.write(archive.path_of(folder, n), [archive.field("t", archive.init(n), k, level=100 * (k + 1)) for k in levels])
    return folder


def data_chunks(store):
    return {str(p.relative_to(store)) for p in store.glob("t/c/*/**/*") if p.is_file()}


def test_only_chunks_that_a_field_touches_are_stored(squall, tmp_path, store):
    source = make_sparse(tmp_path / "in")
    squall("convert", source, store, "--chunks", "step=1,level=1,y=all,x=10")
    expected = {f"t/c/{n}/{k}/{k}/0/{x}" for n, count in ((0, SPARSE), (1, SPARSE // 2)) for k in range(count) for x in (0, 1)}
    assert data_chunks(store) == expected
    t = opened(store)["t"]
    count = 0
    for _, level, start, hours, values in archive.decoded(sorted(source.iterdir())):
        stored = t.sel(init_time=start, step=hours * STEP, heightAboveGround=level).values
        np.testing.assert_array_equal(stored, values.astype("float32"))
        count += 1
    assert count == SPARSE + SPARSE // 2
    assert int(t.notnull().sum()) == count * archive.ROWS * archive.COLUMNS  # and all else is fill
    assert squall("verify", store).code == 0
    assert "nothing new" in squall("convert", source, store, "--chunks", "step=1,level=1,y=all,x=10").out


def test_memory_is_planned_for_the_chunks_that_fields_touch(squall, support, tmp_path, store):
    source = make_sparse(tmp_path / "in")
    inits = 5000
    chunk_bytes = inits * archive.ROWS * archive.COLUMNS * 4
    options = ["--chunks", f"init_time={inits},step=1,level=1,y=all,x=all", "--threads", "1"]
    plan = json.loads(squall("convert", source, store, *options, "--dry-run", "--json").out)
    assert [a["chunk_bytes"] for a in plan["arrays"]] == [chunk_bytes]
    assert plan["bytes_out_decoded"] == SPARSE * chunk_bytes  # of SPARSE × SPARSE chunks
    assert SPARSE * chunk_bytes < plan["peak_memory_bytes"] < SPARSE * SPARSE * chunk_bytes / 2
    peak = peak_bytes([support.parents[1] / "squall", "convert", source, store, "-q", "--memory", plan["peak_memory_bytes"], *options])
    assert SPARSE * chunk_bytes < peak <= plan["peak_memory_bytes"]
    assert len(data_chunks(store)) == SPARSE
    again = json.loads(squall("convert", source, store, *options, "--dry-run", "--json").out)
    assert again["bytes_out_decoded"] == 0
    assert again["peak_memory_bytes"] < plan["peak_memory_bytes"] - SPARSE * chunk_bytes / 2


def test_a_folder_of_many_grids_takes_memory_for_one_run_of_them(squall, shared, store):
    plan = json.loads(squall("convert", shared / "data" / "grib", store, "--threads", "2", "--dry-run", "--json", check=False).out)
    all_chunks = 0
    for a in plan["arrays"]:
        chunks = [-(-length // chunk) for length, chunk in zip(a["shape"][1:], a["chunks"][1:], strict=True)]
        all_chunks += a["chunk_bytes"] * int(np.prod(chunks))
    assert plan["peak_memory_bytes"] < 3 << 30 < 16 << 30 < all_chunks
    assert not store.exists()


def test_memory_is_planned_for_the_coordinates(squall, tmp_path, store):
    hours = 50000
    for n in (0, hours):
        archive.write(tmp_path / "in" / f"{n}.grib2", [archive.field("t", archive.init(n, hours=1), step) for step in range(10)])
    few, many = (
        json.loads(squall("convert", tmp_path / "in", store, "--every", f"{every}h", "--dry-run", "--json").out) for every in (hours, 1)
    )
    assert (few["init_time"]["count"], many["init_time"]["count"]) == (2, hours + 1)
    assert many["peak_memory_bytes"] - few["peak_memory_bytes"] >= (hours - 1) * 10 * 8  # valid_time(init_time, step)


def test_dry_run_touches_nothing_and_tells_the_plan(squall, small, store):
    plan = json.loads(squall("convert", small, store, "--dry-run", "--json", "--dtype", "float16").out)
    assert not store.exists()
    assert plan["kind"] == "new"
    assert plan["fields"] == {"found": 36, "placed": 36, "ignored": 0, "duplicates": 0, "not_selected": 0}
    assert plan["units"] == {"write": 4, "redo": 0, "done": 0, "left": 0}
    assert {a["name"]: a["shape"] for a in plan["arrays"]}["t2m"] == [4, 3, archive.ROWS, archive.COLUMNS]
    assert all(a["dtype"] == "float16" for a in plan["arrays"])
    assert plan["peak_memory_bytes"] > 0
    text = squall("convert", small, store, "--dry-run").out
    assert "t2m float32" in text and "4 to write" in text


# ---- again, and more -------------------------------------------------------------------------------------------------------------------


def test_a_rerun_does_nothing(squall, small, store):
    squall("convert", small, store)
    before = times(store)
    report = json.loads(squall("convert", small, store, "--json", "--quiet").out)
    assert report["units"] == {"done": 0, "skipped": 4, "failed": 0}
    assert times(store) == before


def test_late_runs_and_late_files_fill_in(squall, tmp_path, store):
    source, all_at_once = tmp_path / "in", tmp_path / "all.zarr"
    for n in (0, 1, 2, 5):  # runs 3 and 4 are late
        archive.write(archive.path_of(source, n, "a"), archive.run(n, ("t", "r")))
    archive.write(archive.path_of(source, 0, "b"), archive.run(0, ("u",)))
    squall("convert", source, store)
    ds = opened(store)
    assert ds.chunk_exists.values.tolist() == [True, True, True, False, False, True]
    assert ds.field_count.values.tolist() == [9, 6, 6, 0, 0, 6]
    assert np.isnan(ds.t2m.isel(init_time=3)).all()
    for n in (1, 3, 4, 5, 6):
        if n in (3, 4, 6):
            archive.write(archive.path_of(source, n, "a"), archive.run(n, ("t", "r")))
        archive.write(archive.path_of(source, n, "b"), archive.run(n, ("u",)))
    report = json.loads(squall("convert", source, store, "--json", "--quiet").out)
    assert report["units"] == {"done": 5, "skipped": 2, "failed": 0}
    ds = opened(store)
    assert ds.sizes["init_time"] == 7
    assert ds.field_count.values.tolist() == [9, 9, 6, 9, 9, 9, 9]
    check_values(ds, sorted(source.iterdir()))
    squall("convert", source, all_at_once)
    assert files(all_at_once) == files(store)


def test_sources_that_are_gone_are_no_reason_to_do_anything(squall, small, tmp_path, store):
    latest = tmp_path / "latest"
    squall("convert", small, store)
    before = files(store)
    archive.write(archive.path_of(latest, 3), archive.run(3))
    shutil.copystat(archive.path_of(small, 3), archive.path_of(latest, 3))
    report = json.loads(squall("convert", latest, store, "--json", "--quiet").out)
    assert report["units"] == {"done": 0, "skipped": 1, "failed": 0}
    archive.write(archive.path_of(latest, 4), archive.run(4))
    squall("convert", latest, store)
    after = files(store)
    assert opened(store).chunk_exists.values.tolist() == [True] * 5
    assert all(after[p] == before[p] for p in before if p.startswith(("t2m/c", "r2/c", "u10/c")))


def test_flags_that_a_killed_run_did_not_come_to_are_mended(squall, small, store):
    squall("convert", small, store)
    before = files(store)
    for flag in ("chunk_exists", "field_count"):
        (store / flag / "c" / "1").unlink()
    assert json.loads(squall("status", store, "--json").out)["interrupted"] == 1
    squall("convert", archive.path_of(small, 3), store)  # though the sources of that run are gone
    assert files(store) == before


def test_a_changed_file_is_converted_again(squall, tmp_path, store):
    source = archive.make(tmp_path / "in", 3)
    squall("convert", source, store)
    archive.write(
        archive.path_of(source, 1),
        [archive.field(name, archive.init(1), step, seed=9, missing=name == "u") for name in ("t", "r", "u") for step in range(3)],
    )
    report = json.loads(squall("convert", source, store, "--json", "--quiet").out)
    assert report["units"] == {"done": 1, "skipped": 2, "failed": 0}
    check_values(opened(store), sorted(source.iterdir()))


def test_another_layout_is_refused_and_the_setting_named(squall, small, store):
    squall("convert", small, store)
    before = files(store, records=True)
    for options, words in [
        (["--dtype", "float16"], "--dtype"),
        (["--chunks", "latitude=5"], "--chunks"),
        (["--codec", "zstd:level=1"], "--codec"),
        (["--select", "name=t2m"], "--select"),
        (["--rename", "t2m=temp"], "--rename"),
        (["--coarsen", "y=2"], "--coarsen"),
        (["--stack", "variable"], "--stack"),
    ]:
        done = squall("convert", small, store, *options, check=False)
        assert done.code == 4, options
        assert words in done.err and "other settings" in done.err
    assert files(store, records=True) == before


def convert_runs(squall, source, store, runs, **kwargs):
    for n in runs:
        archive.write(archive.path_of(source, n), archive.run(n, **kwargs))
    return squall("convert", source, store, check=False)


def test_a_store_begins_with_one_run(squall, tmp_path, store):
    source = tmp_path / "in"
    for runs in ([0], [1], [2, 3], [6]):
        assert convert_runs(squall, source, store, runs).code == 0
    ds = opened(store)
    assert ds.chunk_exists.values.tolist() == [True, True, True, True, False, False, True]
    check_values(ds, sorted(source.iterdir()))


def test_an_append_that_would_space_the_runs_anew_is_refused(squall, tmp_path, store):
    """But where all can move at once: test_convert_prepend.py."""
    source = tmp_path / "in"
    for runs, late, options in (
        ([0, 2], [3, 4, 5], ["--chunks", "init_time=2"]),
        ([0, 3], [5, 7], []),
        ([0, 2], [1], ["--part", "1/1"]),
    ):
        made, early, every = tmp_path / f"{late}.zarr", tmp_path / f"{late} early", tmp_path / f"{late} all"
        for n in runs:
            archive.write(archive.path_of(early, n), archive.run(n))
        for n in (*runs, *late):
            archive.write(archive.path_of(every, n), archive.run(n))
        squall("convert", early, made, *options)
        before = files(made, records=True)
        done = squall("convert", every, made, *options, check=False)
        assert done.code == 4, (late, done.err)
        assert "would have to move" in done.err
        assert files(made, records=True) == before
    for n in (0, 2, 3, 4, 5):
        archive.write(archive.path_of(source, n), archive.run(n))
    hourly = tmp_path / "every.zarr"
    squall("convert", archive.path_of(source, 0), archive.path_of(source, 2), hourly, "--every", "6h")
    assert opened(hourly).chunk_exists.values.tolist() == [True, False, True]
    squall("convert", source, hourly, "--every", "6h")
    squall("convert", source, hourly)  # the store's own cadence holds
    assert opened(hourly).chunk_exists.values.tolist() == [True, False, True, True, True, True]


def test_what_a_killed_overwrite_left_is_removed_by_the_next_run(squall, small, tmp_path, store):
    squall("convert", small, store)
    shutil.copytree(store, tmp_path / ".out.zarr.squall-new")
    squall("convert", small, store)
    assert [p.name for p in tmp_path.iterdir()] == ["out.zarr"]


def test_what_the_store_was_not_made_for_is_ignored_and_named(squall, tmp_path, store):
    source = tmp_path / "in"
    assert convert_runs(squall, source, store, [2, 3, 4], names=("t", "r")).code == 0
    before = files(store)
    done = convert_runs(squall, source, store, [1], names=("t", "r"))  # before its first run
    assert done.code == 3 and "2024-02-28T06:00" in done.err, done.err
    done = convert_runs(squall, source, store, [5], names=("t", "r", "u"), steps=range(4))  # a variable and a step more
    assert done.code == 3 and "u10" in done.err, done.err
    ds = opened(store)
    assert "u10" not in ds and ds.sizes["step"] == 3 and ds.chunk_exists.values.tolist() == [True] * 4
    after = files(store)
    assert all(after[p] == before[p] for p in before if "/c/" in p and not p.startswith(("init_time", "valid_time")))
    assert squall("convert", source, store).code == 0  # known by now


def test_overwrite_replaces_a_store_of_ours_and_nothing_else(squall, small, tmp_path, store):
    squall("convert", small, store)
    squall("convert", small, store, "--dtype", "float16", "--overwrite")
    ds = opened(store)
    assert ds.t2m.dtype == np.float16
    check_values(ds, sorted(small.iterdir()), "float16")
    assert [p.name for p in tmp_path.iterdir()] == ["out.zarr"]
    squall("convert", small, tmp_path / "new.zarr", "--overwrite")  # nothing there: nothing to replace
    (tmp_path / "link.zarr").symlink_to(tmp_path / "new.zarr")
    squall("convert", small, tmp_path / "link.zarr", "--overwrite", "--dtype", "float64")
    assert (tmp_path / "link.zarr").is_symlink() and opened(tmp_path / "new.zarr").t2m.dtype == np.float64
    other = tmp_path / "other.zarr"
    xr.Dataset({"a": ("x", [1, 2])}).to_zarr(other)
    before = files(other)
    done = squall("convert", small, other, "--overwrite", check=False)
    assert done.code == 4 and "without squall's records" in done.err
    assert files(other) == before


# ---- inputs that are bad -----------------------------------------------------------------------------------------------------------------


def test_a_bad_file_costs_only_itself_and_is_news_once(squall, tmp_path, store):
    source = archive.make(tmp_path / "in", 4)
    whole = archive.path_of(source, 2).read_bytes()
    archive.path_of(source, 2).write_bytes(whole[:-100])
    (source / "empty.grib2").write_bytes(b"")
    (source / "page.grib2").write_bytes(b"<html>503 Service Unavailable</html>\n")
    done = squall("convert", source, store, check=False)
    assert done.code == 3
    cut = len(whole) - len(archive.run(2)[-1])
    for words in ("empty.grib2: the file is empty", "page.grib2", "<html>", f"{archive.path_of(source, 2).name}: at byte {cut}"):
        assert words in done.err, words
    ds = opened(store)
    assert ds.field_count.values.tolist() == [9, 9, 8, 9]
    assert ds.chunk_exists.values.tolist() == [True] * 4
    assert np.isnan(ds.u10.isel(init_time=2, step=2)).all()
    report = json.loads(squall("convert", source, store, "--json", "--quiet").out)  # the same again: no news
    assert report["units"]["done"] == 0 and len(report["bad"]) == 3 and all(b["known"] for b in report["bad"])
    assert report["partial"] == [{"init_time": "2024-02-28T12:00", "fields": 8}]
    archive.path_of(source, 2).write_bytes(whole)  # the file arrives complete
    squall("convert", source, store)
    assert opened(store).field_count.values.tolist() == [9] * 4


def test_a_field_whose_data_are_damaged_is_named_and_left_out(squall, tmp_path, store):
    source = tmp_path / "in"
    for n in range(3):
        messages = archive.run(n)
        if n == 1:  # the count of values in section 5 contradicts the grid
            bad = bytearray(messages[4])
            at = bad.index(b"\x00\x00\x00\x15\x05") + 5
            bad[at : at + 4] = b"\x00\x00\xff\xff"
            messages[4] = bytes(bad)
        archive.write(archive.path_of(source, n), messages)
    done = squall("convert", source, store, check=False)
    assert done.code == 3
    assert f"{archive.path_of(source, 1).name}: at byte" in done.err
    ds = opened(store)
    assert ds.field_count.values.tolist() == [9, 8, 9]
    assert np.isnan(ds.r2.isel(init_time=1, step=1)).all() and not np.isnan(ds.r2.isel(init_time=1, step=0)).any()
    assert squall("convert", source, store, "--json", "--quiet").code == 0  # nothing to do, and no news


def test_strict_writes_no_unit_with_a_bad_input(squall, tmp_path, store):
    source = archive.make(tmp_path / "in", 3)
    with open(archive.path_of(source, 1), "ab") as f:
        f.write(b"GRIB")
    done = squall("convert", archive.path_of(source, 1), tmp_path / "none.zarr", "--strict", check=False)
    assert done.code == 3 and "none is stored yet" in squall("status", tmp_path / "none.zarr").out
    for _ in range(2):  # with --strict it stays an error
        done = squall("convert", source, store, "--strict", check=False)
        assert done.code == 3
        assert opened(store).chunk_exists.values.tolist() == [True, False, True]
    assert squall("convert", source, store, check=False).code == 0
    assert opened(store).chunk_exists.values.tolist() == [True] * 3


def broken_inside(message):
    """The same field packed as JPEG 2000, its codestream zeros: only decoding finds that out."""
    h = ec.codes_new_from_message(message)
    ec.codes_set(h, "packingType", "grid_jpeg")
    packed = bytearray(ec.codes_get_message(h))
    start = packed.index(b"\xff\x4f\xff\x51")
    packed[start:-4] = bytes(len(packed) - 4 - start)
    ec.codes_release(h)
    return bytes(packed)


@pytest.mark.parametrize("options", [[], ["--strict"]])
def test_a_rerun_that_meets_only_what_is_known_leaves_the_records_as_they_are(squall, tmp_path, store, options):
    source = archive.make(tmp_path / "in", 3)
    (source / "page.grib2").write_bytes(b"<html>503 Service Unavailable</html>\n")
    broken = broken_inside(archive.field("t", archive.init(1), 0))
    archive.write(archive.path_of(source, 1), [broken, *archive.run(1)[1:]])
    with open(archive.path_of(source, 2), "ab") as f:
        f.write(b"GRIB")
    assert squall("convert", source, store, *options, check=False).code == 3
    before = files(store, records=True)
    for _ in range(2):
        assert squall("convert", source, store, *options, check=False).code == (3 if options else 0)
        assert files(store, records=True) == before


def test_runs_off_the_cadence_are_ignored_and_named(squall, tmp_path, store):
    source = archive.make(tmp_path / "in", 4)
    stray = archive.init(1) + (archive.init(1) - archive.init(0)) / 3
    archive.write(source / "stray.grib2", [archive.field("t", stray, 0)])
    done = squall("convert", source, store, check=False)
    assert done.code == 3 and "off the cadence" in done.err and "stray.grib2" in done.err
    assert opened(store).sizes["init_time"] == 4


@pytest.mark.parametrize(
    "make, code, words",
    [
        (lambda p: None, 1, "no such file or folder"),
        (lambda p: p.mkdir(), 1, "no file to convert in this folder"),
        (lambda p: p.write_bytes(b""), 1, "the file is empty"),
        (lambda p: p.write_bytes(b"<html></html>"), 1, "no GRIB message"),
        (lambda p: p.write_bytes(archive.run(0)[0][:-7]), 1, "cut off"),
    ],
)
def test_a_source_without_any_field_is_an_error(squall, tmp_path, store, make, code, words):
    source = tmp_path / "source"
    make(source)
    done = squall("convert", source, store, check=False)
    assert done.code == code and words in done.err, done.err
    assert not store.exists()


def test_overflow_that_the_packing_tells_is_refused_before_anything_is_written(squall, tmp_path, store):
    source = archive.make(tmp_path / "in", 2, names=("t", "prmsl"))
    done = squall("convert", source, store, "--dtype", "float16", check=False)
    assert done.code == 1
    for words in ("prmsl", archive.path_of(source, 0).name, "float16", "--on-overflow", "--dtype prmsl=float32"):
        assert words in done.err, words
    assert not store.exists()
    squall("convert", source, store, "--dtype", "prmsl=float32,float16")
    ds = opened(store)
    assert ds.prmsl.dtype == np.float32 and ds.t2m.dtype == np.float16


def test_overflow_found_in_the_values_is_refused_before_its_run_is_stored(squall, tmp_path, store):
    source = archive.make(tmp_path / "in", 2, names=("t", "orog"))
    plan = json.loads(squall("convert", source, store, "--dtype", "float16", "--dry-run", "--json").out)
    assert {a["name"]: a["overflow"] for a in plan["arrays"]} == {"t2m": "ruled out", "orog": "possible"}
    done = squall("convert", source, store, "--dtype", "float16", check=False)
    assert done.code == 1
    for words in ("orog: 65", archive.path_of(source, 0).name, "float16", "--on-overflow", "--dtype orog=float32"):
        assert words in done.err, words
    assert not opened(store).chunk_exists.values.any()
    assert not list(store.glob("t2m/c/*"))
    squall("convert", source, store, "--dtype", "float16", "--on-overflow", "inf")  # the store goes on
    values = np.array([v for name, *_, v in archive.decoded(sorted(source.iterdir())) if name == "orog"])
    assert 0 < (values > 65520).sum() < values.size
    assert np.isinf(opened(store).orog).sum() == (values.astype("float32") >= 65520).sum()
    clip = tmp_path / "clip.zarr"
    squall("convert", source, clip, "--dtype", "float16", "--on-overflow", "clip")
    assert opened(clip).orog.max() == 65504 and np.isfinite(opened(clip).orog).all()


@pytest.mark.parametrize(
    "options, words",
    [
        (["--chunks", "time=1"], 'no dimension "time"; there are init_time, step, latitude, longitude'),
        (["--chunks", "step=0"], "--chunks"),
        (["--dtype", "int16"], "int16 is not written yet"),
        (["--dtype", "sst=float16"], 'no variable "sst"; there are'),
        (["--codec", "zip"], "zip"),
        (["--codec", "blosc:cname=nothing"], "nothing"),
        (["--on-overflow", "wrap"], "wrap"),
        (["--every", "6"], "--every"),
        (["--coarsen", "step=2"], "--coarsen"),
        (["--select", "nonsense"], "nonsense"),
        (["--rename", "sst=x"], "sst"),
        (["--stack", "level"], "--stack"),
    ],
)
def test_wrong_values_of_options_are_usage_errors(squall, small, store, options, words):
    done = squall("convert", small, store, *options, check=False)
    assert done.code == 2, done.err
    assert words in done.err
    assert not store.exists()


def test_too_little_memory_is_refused_with_what_would_fit(squall, small, store):
    done = squall("convert", small, store, "--memory", "8M", check=False)
    assert done.code == 1 and "--memory" in done.err
    fits = done.err.split("--memory ")[1].split("M")[0]
    assert not store.exists()
    squall("convert", small, store, "--memory", f"{fits}M")
    assert "and 1.0 " in squall("convert", small, store, "--memory", "1K", check=False).err


def test_dry_run_shows_a_plan_that_memory_is_too_small_for(squall, small, store):
    plan = json.loads(squall("convert", small, store, "--dry-run", "--json").out)
    done = squall("convert", small, store, "--dry-run", "--json", "--memory", "8M", check=False)
    assert done.code == 1 and "of memory are needed" in done.err and "8.0 MiB may be used" in done.err
    small_plan = json.loads(done.out)
    assert small_plan["memory_budget_bytes"] == 8 << 20 < small_plan["peak_memory_bytes"]
    assert small_plan["arrays"] == plan["arrays"] and small_plan["units"] == plan["units"]
    assert plan["peak_memory_bytes"] <= plan["memory_budget_bytes"]
    done = squall("convert", small, store, "--dry-run", "--memory", "8M", check=False)
    assert done.code == 1 and "t2m float32" in done.out and "4 to write" in done.out
    fits = done.err.split("--memory ")[1].split("M")[0]
    assert squall("convert", small, store, "--dry-run", "--memory", f"{fits}M").code == 0
    assert not store.exists()


def test_shorter_chunks_are_advised_only_where_they_can_be_chosen_and_fit(squall, tmp_path, store):
    source = archive.make(tmp_path / "in", inits=6)
    wide = ["--threads", "1", "--codec", "zstd:level=1", "--memory", "24M"]
    advice = squall("convert", source, store, *wide, "--chunks", "init_time=9000", check=False).err
    fits = int(advice.split("--chunks init_time=")[1].split(",")[0])
    assert 1 <= fits < 9000
    assert squall("convert", source, store, *wide, "--chunks", f"init_time={fits}", "--dry-run").code == 0
    squall("convert", archive.path_of(source, 0), store, *wide[:-2], "--every", "6h", "--chunks", "init_time=9000")
    done = squall("convert", source, store, *wide, "--every", "6h", "--chunks", "init_time=9000", check=False)
    assert done.code == 1 and "--memory" in done.err and "--chunks" not in done.err and "--select" not in done.err


def peak_bytes(command):
    """Of the process alone, as the system has it; asked while it runs."""
    process = subprocess.Popen([str(word) for word in command])
    peak = 0
    while process.poll() is None:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        peak = max([peak, *(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))])
        time.sleep(0.002)
    assert process.returncode == 0
    return peak


def test_memory_stays_within_what_the_plan_says(squall, support, ukv, store):
    for options in ([], ["--dtype", "float16", "--on-overflow", "inf", "--chunks", "init_time=2"], ["--threads", "5", "--codec", "none"]):
        plan = json.loads(squall("convert", ukv, store, *options, "--overwrite", "--dry-run", "--json").out)
        peak = peak_bytes([support.parents[1] / "squall", "convert", ukv, store, "-q", "--overwrite", *options])
        assert plan["peak_memory_bytes"] / 4 < peak <= plan["peak_memory_bytes"]


# ---- destinations ----------------------------------------------------------------------------------------------------------------------


def test_destinations_that_are_something_else_are_refused(squall, small, tmp_path):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("mine")
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    for destination, words in ((file, "a file, where a folder"), (folder, "holds other things")):
        done = squall("convert", small, destination, check=False)
        assert done.code == 4 and words in done.err
    assert file.read_text() == "mine" and [p.name for p in folder.iterdir()] == ["notes.txt"]
    empty = tmp_path / "empty"
    empty.mkdir()
    squall("convert", small, empty)
    squall("convert", small, tmp_path / "a" / "b" / "c.zarr")  # folders above are made
    for args in ((small, "s3://bucket/a.zarr"), ("https://host/a.grib2", "b.zarr")):  # no folder "s3:" is made
        done = squall("convert", *args, check=False, cwd=tmp_path)
        assert done.code == 1 and "only files and folders are read and written" in done.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "empty", "file", "folder"]


def test_a_file_whose_name_looks_like_a_glob_is_itself(squall, tmp_path, store):
    archive.write(tmp_path / "run[1].grib2", archive.run(0))
    (tmp_path / "run1.grib2").write_bytes(b"")
    squall("convert", tmp_path / "run[1].grib2", store)
    done = squall("convert", tmp_path / "run[0-9].grib2", tmp_path / "other.zarr", check=False)
    assert done.code == 1 and "run1.grib2: the file is empty" in done.err


WITHOUT_ROOT_S_RIGHTS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


@pytest.mark.parametrize("mode", [0o000, 0o300, 0o600])
def test_a_folder_that_cannot_be_read_costs_only_itself(small, tmp_path, mode):
    """As a whole, only its listing, or only what is in it; below a source or named beside others."""
    shutil.copytree(small, tmp_path / "archive")
    closed = tmp_path / "archive" / "closed"
    closed.mkdir()
    archive.write(closed / "run.grib2", archive.run(4))
    (tmp_path / "archive" / "loop").symlink_to("loop")
    named = "closed/run.grib2" if mode == 0o600 else "closed"
    command = [*WITHOUT_ROOT_S_RIGHTS, str(BUILD / "squall")]
    closed.chmod(mode)
    try:
        for i, sources in enumerate(([tmp_path / "archive"], sorted((tmp_path / "archive").glob("[!l]*")))):
            store = tmp_path / f"{i}.zarr"
            done = subprocess.run([*command, "convert", *sources, store], capture_output=True, text=True)
            assert done.returncode == 3, done.stderr
            assert done.stderr.count(f"{tmp_path}/archive/{named}: Permission denied\n") == 1
            assert done.stderr.count("archive/loop: Too many levels of symbolic links\n") == 1 - i
            assert xr.open_zarr(store).chunk_exists.values.tolist() == [True] * 4
            again = subprocess.run([*command, "convert", *sources, store], capture_output=True, text=True)
            assert again.returncode == 0, again.stderr
        info = subprocess.run([*command, "info", tmp_path / "archive"], capture_output=True, text=True)
        assert info.returncode == 3 and f"{named}: Permission denied" in info.stderr
        alone = subprocess.run([*command, "convert", closed, tmp_path / "none.zarr"], capture_output=True, text=True)
        assert alone.returncode == 1 and f"{named}: Permission denied" in alone.stderr
    finally:
        closed.chmod(0o755)


def closed_folder(tmp_path):
    """A folder in which nothing can be made: root may write into any folder of a disk, but not into the kernel's."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    for folder in (closed, pathlib.Path("/sys/kernel"), pathlib.Path("/dev/pts")):
        try:
            (folder / "probe").mkdir()
        except PermissionError:
            return folder
        except OSError:
            continue
        (folder / "probe").rmdir()
    pytest.skip("root may make folders everywhere here")


def test_a_destination_that_cannot_be_written_is_an_error(squall, small, tmp_path):
    folder = closed_folder(tmp_path)
    done = squall("convert", small, folder / "out.zarr", check=False)
    assert done.code == 1 and f"{folder}/out.zarr" in done.err
    assert any(words in done.err for words in ("Permission denied", "not permitted", "Read-only"))


def test_flags_that_were_deleted_end_the_store_s_growth(squall, small, store):
    squall("convert", small, store)
    shutil.rmtree(store / "chunk_exists")
    done = squall("convert", small, store, check=False)
    assert done.code == 4 and "without squall's records" in done.err


# ---- one at a time ---------------------------------------------------------------------------------------------------------------------


def me():
    stat = pathlib.Path(f"/proc/{os.getpid()}/stat").read_text()
    return {
        "host": os.uname().nodename,
        "boot": pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "pid_namespace": os.readlink("/proc/self/ns/pid"),
        "pid": os.getpid(),
        "start_ticks": int(stat.rsplit(")", 1)[1].split()[19]),
        "since": "2026-01-01T00:00:00Z",
    }


def test_a_store_in_use_is_refused_and_its_holder_named(squall, small, store):
    squall("convert", small, store)
    lock = store / "chunk_exists" / ".squall" / "lock"
    assert not lock.exists()
    lock.write_text(json.dumps(me()))
    done = squall("convert", small, store, check=False)
    assert done.code == 4 and f"squall: {store}: in use by" in done.err
    assert f"process {os.getpid()}" in done.err and os.uname().nodename in done.err and "2026-01-01T00:00:00Z" in done.err
    assert f"process {os.getpid()}" in squall("status", store).out
    lock.write_text(json.dumps(me() | {"start_ticks": 1}))  # a process that is dead, though its number is in use again
    squall("convert", small, store)
    assert not lock.exists()
    lock.write_text(json.dumps(me() | {"host": "elsewhere"}))
    done = squall("convert", small, store, check=False)
    assert done.code == 4 and "elsewhere" in done.err and str(lock) in done.err


def test_of_two_runs_at_once_one_is_refused_or_has_nothing_to_do(squall, small, tmp_path, support):
    for attempt in range(5):
        store = tmp_path / f"{attempt}.zarr"
        both = [
            subprocess.Popen([support.parents[1] / "squall", "convert", small, store, "-q"], stderr=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        codes = sorted(p.wait() for p in both)
        assert codes in ([0, 0], [0, 4]), [p.stderr.read() for p in both]
        check_values(opened(store), sorted(small.iterdir()))
        for p in both:
            p.stderr.close()


# ---- status and verify -----------------------------------------------------------------------------------------------------------------


def test_status_is_a_calendar(squall, tmp_path, store):
    source = archive.make(tmp_path / "in", 6)
    archive.path_of(source, 3).unlink()
    archive.write(archive.path_of(source, 1), archive.run(1, ("t",)))
    (source / "empty.grib2").write_bytes(b"")
    squall("convert", source, store, check=False)
    text = squall("status", store).out.splitlines()
    rows = [line.split() for line in text if line.startswith("2024-")]
    assert rows == [["2024-02-28", "#", "~", "#", "."], ["2024-02-29", "#", "#"]]
    assert any(line.split() == ["00:00", "06:00", "12:00", "18:00"] for line in text)
    assert any("empty.grib2: the file is empty" in line for line in text)
    assert f"to go on: squall convert {source} {store}" in text
    report = json.loads(squall("status", store, "--json").out)
    assert (report["complete"], report["partial"], report["missing"], report["interrupted"]) == (4, 1, 1, 0)
    assert report["runs"][1] == {"init_time": "2024-02-28T06:00", "state": "partial", "fields": 3}


def test_status_tells_how_fast_the_last_run_was(squall, store, tmp_path):
    small = archive.make(tmp_path / "in")
    squall("convert", small, store)
    before = datetime.datetime.now(datetime.UTC)
    told = json.loads(squall("status", store, "--json").out)["last_run"]
    assert told["units"] == 4 and 0 <= told["seconds"] < 60
    assert told["bytes_in"] == sum(path.stat().st_size for path in small.iterdir())
    assert told["bytes_out"] == sum(path.stat().st_size for path in store.glob("[tru]*/c/**/*") if path.is_file())
    assert abs(before - datetime.datetime.fromisoformat(told["ended"])) < datetime.timedelta(minutes=1)
    line = re.search(
        "last run: 4 units in [0-9.]+ s, [0-9.e+]+ a second; .* KiB read, .* KiB written; ended .*Z\n", squall("status", store).out
    )
    assert line
    squall("convert", small, store)  # nothing to do
    assert json.loads(squall("status", store, "--json").out)["last_run"] == told
    squall("status", store, "--html", tmp_path / "s.html")
    assert "<p>Last run: 4 units in " in (tmp_path / "s.html").read_text()
    for n in range(70):  # so many journals are put into one
        os.utime(archive.path_of(small, 0), (n, n))
        squall("convert", small, store, "-q")
    assert len(list((store / "chunk_exists/.squall").glob("*.journal"))) < 60
    assert json.loads(squall("status", store, "--json").out)["last_run"]["units"] == 1


def test_the_command_that_goes_on_can_be_given_from_anywhere(squall, tmp_path, store):
    archive.make(tmp_path / "in", 10)
    squall("convert", "in", "out.zarr", "--strict", "--chunks", "step=1", cwd=tmp_path)
    command = json.loads(squall("status", store, "--json", cwd="/").out)["command"]
    assert command == f"squall convert --chunks step=1 --strict {tmp_path}/in {store}"
    moved = tmp_path / "moved to.zarr"
    shutil.copytree(store, moved)
    command = json.loads(squall("status", moved, "--json", cwd="/").out)["command"]
    assert command == f"squall convert --chunks step=1 --strict {tmp_path}/in '{moved}'"
    squall("convert", *sorted((tmp_path / "in").iterdir()), store, "--chunks", "step=1", "--overwrite")
    command = json.loads(squall("status", store, "--json").out)["command"]  # a long list is not repeated
    assert command == f"squall convert --chunks step=1 {archive.path_of(tmp_path / 'in', 0)} [and 9 more sources] {store}"


def test_status_and_verify_of_what_is_no_store(squall, tmp_path, small):
    assert squall("status", tmp_path / "nothing", check=False).code == 1
    done = squall("status", small, check=False)
    assert done.code in (1, 2) and "no records" in done.err
    assert squall("verify", tmp_path / "nothing", check=False).code == 1


@pytest.mark.parametrize("options", [[], ["--json"], ["-v"]])
def test_verify_tells_damage_once(squall, small, store, options):
    squall("convert", small, store)
    chunk = next(p for p in (store / "t2m" / "c").rglob("*") if p.is_file())
    chunk.unlink()
    done = squall("verify", store, *options, check=False)
    assert done.code == 5 and done.out.count(str(chunk)) == 1 and str(chunk) not in done.err


def test_verify_names_each_damaged_and_missing_chunk(squall, small, store):
    squall("convert", small, store)
    report = json.loads(squall("verify", store, "--json").out)
    assert report["bad"] == [] and report["chunks"] == 12 and report["by"] == "records"
    chunks = [
        next(p for p in (store / name / "c" / str(unit)).rglob("*") if p.is_file()) for name, unit in (("t2m", 0), ("r2", 2), ("u10", 3))
    ]
    flipped = bytearray(chunks[0].read_bytes())
    flipped[len(flipped) // 2] ^= 1
    chunks[0].write_bytes(flipped)
    chunks[1].unlink()
    chunks[2].write_bytes(chunks[2].read_bytes()[:-1])
    done = squall("verify", store, "--json", "-q", check=False)
    assert done.code == 5
    bad = json.loads(done.out)["bad"]
    assert len(bad) == 3
    for chunk, words in zip(chunks, ("checksum", "missing", "bytes, its record says"), strict=True):
        assert any(str(chunk) in line and words in line for line in bad), words
    squall("convert", small, store)
    assert json.loads(squall("verify", store, "--json", "-q").out)["bad"] == []


@pytest.mark.parametrize("place", ["latitude/c/0", "valid_time/c/0/0", "zarr.json"])
@pytest.mark.parametrize("damage", ["missing", "overwritten"])
def test_verify_reads_what_has_no_record_and_a_run_mends_it(squall, small, store, place, damage):
    squall("convert", small, store)
    whole = files(store)
    (store / place).unlink()
    if damage == "overwritten":
        (store / place).write_bytes(b"nonsense")
    done = squall("verify", store, check=False)
    assert done.code == 5 and place.split("/")[0] in done.out and "1 bad" in done.out and "to mend it: remove" in done.out
    (store / place).unlink(missing_ok=True)
    squall("convert", small, store)
    assert files(store) == whole
    assert "0 bad" in squall("verify", store).out


def test_verify_without_records_decodes(squall, small, tmp_path):
    store = tmp_path / "theirs.zarr"
    xr.Dataset({"a": (("y", "x"), np.arange(80.0).reshape(8, 10))}).to_zarr(
        store, encoding={"a": {"chunks": (4, 5)}}, zarr_format=3, consolidated=True
    )
    report = json.loads(squall("verify", store, "--json").out)
    assert report["by"] == "decoding" and report["bad"] == [] and report["absent"] == []
    (store / "a" / "c" / "0" / "1").unlink()
    (store / "a" / "c" / "1" / "0").write_bytes(b"nonsense")
    done = squall("verify", store, "--json", "-q", check=False)
    assert done.code == 5
    report = json.loads(done.out)
    assert len(report["bad"]) == 1 and "1/0" in report["bad"][0]
    assert len(report["absent"]) == 1 and "0/1" in report["absent"][0]


# ---- archives like the UK model's ------------------------------------------------------------------------------------------------------


def made(maker, folder, *options):
    subprocess.run([*map(str, maker), folder, *map(str, options)], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def ukv(tmp_path_factory, support):
    return made([support / "make_archive"], tmp_path_factory.mktemp("ukv") / "archive", "--inits", 2, "--steps", 2, "--vars", 17)


@pytest.fixture(scope="module")
def few(tmp_path_factory, support):
    """The same, less of it, for what is done many times over."""
    return made(
        [support / "make_archive"], tmp_path_factory.mktemp("few") / "archive", "--inits", 5, "--steps", 4, "--vars", 4, "--ny", 352
    )


@pytest.fixture(scope="module", params=["ours", "ecCodes'"])
def traps(request, tmp_path_factory, support):
    """Made by our own writer, and by a tool that lets ecCodes write."""
    if request.param != "ours":
        return request.getfixturevalue("ukv_traps")
    folder = tmp_path_factory.mktemp("traps") / "archive"
    return made([support / "make_archive"], folder, "--inits", 6, "--steps", 2, "--vars", 10, "--traps")


def check_ukv(ds, folder):
    count = 0
    for name, _, start, hours, values in archive.decoded(sorted(folder.glob("*.grib"))):
        stored = ds[name].sel(init_time=start, step=hours * STEP)
        np.testing.assert_array_equal(stored, values.astype("float32"))
        count += 1
    return count


def test_a_ukv_archive_converts(squall, ukv, store):
    squall("convert", ukv, store)
    ds = opened(store)
    assert check_ukv(ds, ukv) == 2 * 2 * 17
    assert ds.attrs["Conventions"].startswith("CF-")
    mapping = ds[ds.t.attrs["grid_mapping"]]
    assert mapping.attrs["grid_mapping_name"] == "transverse_mercator"
    assert ds.y[0] > ds.y[-1] and np.allclose(np.diff(ds.x), 2000)


def test_the_traps_of_real_archives(squall, traps, store):
    done = squall("convert", traps, store, "--json", check=False)
    found = json.loads((traps.parent / "archive.traps.json").read_text())
    report = json.loads(done.out[done.out.index("{\n") :])
    assert done.code == 3
    ds = opened(store)
    inits = ds.init_time.values
    bad = {pathlib.Path(b["file"]).name: b["what"] for b in report["bad"]}
    # truncated file: whole messages used, the cut one named with its offset
    truncated = traps / found["truncated"]
    whole = list(archive.messages_of(truncated))
    assert f"at byte {whole[-1][0]}" in bad[found["truncated"]]
    assert ds.field_count.values[4] == len(whole) - 1 + len(list(archive.messages_of(traps / found["truncated"].replace("sale1", "sale2"))))
    # empty file, HTML: named
    assert "empty" in bad[found["empty"]] and "html" in bad[found["not GRIB"]]
    assert len(bad) == 3
    # file missing, step missing: NaN, lower field_count, run partial
    assert np.isnan(ds.lcc.isel(init_time=3)).all()
    assert np.isnan(ds.r.sel(init_time=found["step missing"][0]).isel(step=-1)).all()
    partial = {p["init_time"] for p in report["partial"]}
    assert {"2022-01-01T06:00", "2022-01-01T18:00", "2022-01-02T00:00"} <= partial
    # identical duplicate: counted; conflicting duplicate: the last wins, named
    assert report["fields"]["duplicates"] == 2
    assert "there is twice" in done.err.replace("is there twice", "there is twice") and found["conflicting duplicate"][0] in done.err
    # off cadence: ignored, named, no coordinate
    assert np.datetime64(found["off cadence"]) not in inits and "off the cadence" in done.err
    assert len(inits) == 6
    # probability twin: a variable of its own
    assert "vis_probability" in ds and not np.isnan(ds.vis_probability.isel(init_time=0, step=0)).all()
    assert np.isnan(ds.vis_probability.isel(init_time=1)).all()
    # two heights: heightAboveGround = [0, 1], NaN at 0 m before the third run
    levels = next(d for d in ds.t.dims if d.startswith("heightAboveGround"))
    assert ds[levels].values.tolist() == [0, 1]
    assert np.isnan(ds.t.isel(init_time=slice(0, 2)).sel({levels: 0})).all()
    assert not np.isnan(ds.t.isel(init_time=slice(2, 4)).sel({levels: 0})).any()
    # bulletin header: no effect
    assert not np.isnan(ds.t.isel(init_time=2).sel({levels: 1})).any()
    # and all values are those of ecCodes; of a field that is there twice, the last
    last = {}
    for name, level, start, hours, values in archive.decoded([p for p in sorted(traps.glob("*.grib")) if p.name != found["truncated"]]):
        last[name, level, start, hours] = values
    for (name, level, start, hours), values in last.items():
        if start not in inits or name == "vis" and start == inits[0]:
            continue
        a = ds[name].sel(init_time=start, step=hours * STEP)
        np.testing.assert_array_equal(a.sel({levels: level}) if name == "t" else a, values.astype("float32"))


# ---- interrupted -----------------------------------------------------------------------------------------------------------------------


def is_never_ahead(store):
    """chunk_exists says true only of runs whose every field reads as it should."""
    if (store / "zarr.json").exists():
        for n, exists in enumerate(opened(store).chunk_exists.values):
            if exists:
                yield n


def test_killed_at_random_moments_a_run_goes_on(squall, few, tmp_path, support):
    command = [support.parents[1] / "squall", "convert", few, tmp_path / "killed.zarr", "-q", "--dtype", "float16", "--on-overflow", "inf"]
    whole, store = tmp_path / "whole.zarr", tmp_path / "killed.zarr"
    start = time.monotonic()
    squall("convert", few, whole, "--dtype", "float16", "--on-overflow", "inf")
    duration = time.monotonic() - start
    undisturbed = files(whole)
    rng = np.random.default_rng(3)
    for moment in rng.random(20) * duration:
        shutil.rmtree(store, ignore_errors=True)
        process = subprocess.Popen(command)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for n in is_never_ahead(store):
            assert all(files_equal(store, whole, name, n) for name in ("t", "si10"))
        assert squall(*command[1:]).code == 0
        assert files(store) == undisturbed


def files_equal(a, b, name, unit):
    chunks = [p.relative_to(b) for p in (b / name / "c" / str(unit)).rglob("*") if p.is_file()]
    return chunks and all((a / c).read_bytes() == (b / c).read_bytes() for c in chunks)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_cleanly(squall, ukv, store, support, number):
    process = subprocess.Popen([support.parents[1] / "squall", "convert", ukv, store, "--threads", "1"], stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (store / "zarr.json").exists():
        time.sleep(0.005)
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == 128 + number, err
    assert not (store / "chunk_exists" / ".squall" / "lock").exists()
    assert not [p for p in store.rglob(".*.squall-tmp")]
    assert f"{store} is whole as far as it goes; the same command goes on" in err
    squall("convert", ukv, store)
    assert opened(store).chunk_exists.values.all()


def test_an_interrupted_overwrite_leaves_the_store_and_says_so(squall, ukv, small, store, support):
    squall("convert", small, store)
    before = files(store)
    command = [support.parents[1] / "squall", "convert", ukv, store, "--overwrite", "--threads", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (store.parent / f".{store.name}.squall-new" / "zarr.json").exists():
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130 and f"{store} is as it was" in err
    assert files(store) == before
    squall("convert", ukv, store, "--overwrite")
    assert opened(store).chunk_exists.values.all()
