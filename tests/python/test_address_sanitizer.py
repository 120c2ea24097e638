"""Conversions of GRIB and NetCDF files in the build with the address and undefined-behaviour sanitizers, which end a process that does
wrong, or leaks, with an exit code of their own."""

import os
import subprocess

import pytest
import small_archive as archive
import small_files as small
from conftest import ROOT

ASAN = ROOT / "build-asan" / "squall"
WRONG = 99
pytestmark = pytest.mark.skipif(not ASAN.exists(), reason="no build with the address sanitizer (make test makes one)")


def run(*args, code=0):
    orders = {"ASAN_OPTIONS": f"exitcode={WRONG}", "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:exitcode={WRONG}"}
    done = subprocess.run([ASAN, *map(str, args)], capture_output=True, text=True, env=os.environ | orders)
    assert done.returncode == code, f"{args[0]}: {done.returncode}: {done.stdout}{done.stderr}"


def test_the_build_is_one_with_sanitizers():
    program = ASAN.read_bytes()
    assert b"__asan_init" in program and b"__ubsan_handle" in program


def look_at(store):
    for args in (["status", store], ["status", store, "--json"], ["verify", store], ["ls", store], ["info", store]):
        run(*args)


def test_fields_are_converted_in_parts_done_again_grown_and_mended(tmp_path):
    source, store = tmp_path / "in", tmp_path / "out.zarr"
    archive.make(source, 4, names=("t", "r"))
    early = archive.path_of(source, 0).rename(tmp_path / "early.grib2")
    options = ["--chunks", "init_time=2,latitude=6", "--threads", "3", "--every", "6h"]
    run("convert", source, store, *options, "--dry-run")
    for part in ("1/2", "2/2"):
        run("convert", source, store, *options, "--part", part)
    archive.write(archive.path_of(source, 2, "b"), [archive.field("t", archive.init(2), 0, seed=5)])  # replaces a field
    run("convert", source, store, *options, code=3)  # which is there twice
    archive.path_of(source, 2, "b").unlink()
    archive.write(archive.path_of(source, 4), archive.run(4, ("t", "r", "u")))
    run("convert", source, store, *options, "--schema", "grow")
    early.rename(archive.path_of(source, 0))
    run("convert", source, store, *options, "--prepend")
    look_at(store)
    chunk = next(path for path in (store / "t2m" / "c").rglob("*") if path.is_file())
    chunk.write_bytes(b"x" + chunk.read_bytes()[1:])
    run("verify", store, code=5)
    run("convert", source, store, *options)
    look_at(store)
    run("convert", source, store, *options, "--overwrite", "--dtype", "float16", "--bitround", "r2=4")
    look_at(store)


def test_arrays_are_converted_and_done_again_and_the_store_is_a_source(tmp_path):
    source, store = tmp_path / "in", tmp_path / "out.zarr"
    paths = small.make(source, 3)
    options = ["--chunks", "time=3,lat=4", "--threads", "3"]
    run("convert", source / "*.nc", store, *options)
    small.write(paths[0], 0, seed=5)
    small.write(source / "day03.nc", 3)
    run("convert", source / "*.nc", store, *options)
    look_at(store)
    run("convert", store, tmp_path / "again.zarr", "--chunks", "time=5", "--dtype", "float64")
    look_at(tmp_path / "again.zarr")


def test_what_cannot_be_read_is_told(tmp_path):
    source, store = tmp_path / "in", tmp_path / "out.zarr"
    archive.make(source, 3, names=("t",))
    cut = archive.path_of(source, 1)
    cut.write_bytes(cut.read_bytes()[:-40])
    run("convert", source, store, code=3)
    run("status", store, "--json")
    run("convert", source, store, "--chunks", "no_such=3", "--overwrite", code=2)
