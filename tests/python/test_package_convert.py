"""squall.convert, status and verify from Python. The oracle for what is stored is the command, whose values test_convert.py holds against
ecCodes; for reports it is the command's --json."""

import asyncio
import datetime
import inspect
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings

import h5py
import numpy as np
import pytest
import small_archive as archive
import squall
import xarray as xr


def files(store):
    """Path → bytes of every file of a store, without the records, which name the run."""
    paths = [p for p in sorted(pathlib.Path(store).rglob("*")) if p.is_file() and ".squall" not in p.parts]
    return {str(p.relative_to(store)): p.read_bytes() for p in paths}


@pytest.fixture(scope="module")
def grib(tmp_path_factory):
    return archive.make(tmp_path_factory.mktemp("grib"), inits=3)


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Three NetCDF files, a day each."""
    folder = tmp_path_factory.mktemp("days")
    for day in range(3):
        times = np.datetime64("2024-01-01", "ns") + np.arange(day * 4, day * 4 + 4) * np.timedelta64(6, "h")
        values = np.random.default_rng(day).standard_normal((4, 6, 8)).astype("f4")
        ds = xr.Dataset({"t2m": (("time", "y", "x"), values, {"units": "K"})}, {"time": times, "y": np.arange(6.0), "x": np.arange(8.0)})
        ds.to_netcdf(folder / f"day{day}.nc", unlimited_dims="time")
    return folder


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """One run's file is cut off in its last message, one is no GRIB."""
    folder = archive.make(tmp_path_factory.mktemp("damaged"), inits=3)
    cut = archive.path_of(folder, 1)
    cut.write_bytes(cut.read_bytes()[:-20])
    (folder / "page.grib2").write_text("<html>no GRIB</html>")
    return folder


def quiet(*args, **options):
    return squall.convert(*args, progress=False, **options)


ZSTD = {"name": "zstd", "configuration": {"level": 3}}
FROM_GRIB = [
    ({"chunks": {"init_time": 2, "step": "all", "y": 6, "x": np.int64(10)}}, ["--chunks", "init_time=2,step=all,y=6,x=10"]),
    ({"chunks": {"step": -1, "latitude": 5}}, ["--chunks", "step=all,latitude=5"]),
    ({"dtype": np.float16}, ["--dtype", "float16"]),
    ({"dtype": {"t2m": np.dtype("f8"), None: "float16"}}, ["--dtype", "t2m=float64,float16"]),
    ({"dtype": "float16", "on_overflow": "clip"}, ["--dtype", "float16", "--on-overflow", "clip"]),
    ({"codec": ZSTD}, ["--codec", "zstd:level=3"]),
    ({"codec": [ZSTD, {"name": "crc32c"}]}, ["--codec", "zstd:level=3+crc32c"]),
    ({"codec": []}, ["--codec", "none"]),
    ({"codec": {"t2m": [ZSTD], "r2": [], None: "gzip:level=1"}}, ["--codec", "t2m=zstd:level=3;r2=none;gzip:level=1"]),
    ({"chunks": {"y": 6, "t2m": {"y": 3}}, "shards": {"y": -1, "t2m": {"y": 6}}}, ["--chunks", "y=6,t2m:y=3", "--shards", "y=all,t2m:y=6"]),
    ({"bitround": {"t2m": 5, None: 9}}, ["--bitround", "t2m=5,9"]),
    ({"bitround": 7}, ["--bitround", "7"]),
    ({"codec": "gzip:level=1"}, ["--codec", "gzip:level=1"]),
    ({"select": {"name": ["t2m", "u10"], "step": 1}}, ["--select", "name=t2m|u10,step=1"]),
    ({"select": [{"name": "t2m"}, "name=r2"]}, ["--select", "name=t2m", "--select", "name=r2"]),
    ({"rename": {"t2m": "temperature", "r2": "humidity"}}, ["--rename", "t2m=temperature", "--rename", "r2=humidity"]),
    ({"coarsen": {"y": 2, "x": 4}}, ["--coarsen", "y=2,x=4"]),
    ({"y_order": "ascending"}, ["--y-order", "ascending"]),
    ({"zarr_format": 2}, ["--zarr-format", "2"]),
    ({"every": datetime.timedelta(hours=3)}, ["--every", "3h"]),
    ({"every": np.timedelta64(90, "m")}, ["--every", "90min"]),
    ({"stack": "variable", "stack_name": "all"}, ["--stack", "variable", "--stack-name", "all"]),
    ({"threads": 1, "memory": "64M"}, ["--threads", "1", "--memory", "64M"]),
    ({"strict": True}, ["--strict"]),
]
FROM_NETCDF = [
    ({"append_dim": "time", "chunks": {"time": 2}}, ["--append-dim", "time", "--chunks", "time=2"]),
    ({"concat_dim": "time"}, ["--concat-dim", "time"]),
    ({"drift": "first"}, ["--drift", "first"]),
]


def said(options):
    return " ".join(options)


@pytest.mark.parametrize(("keywords", "options"), FROM_GRIB, ids=[said(options) for _, options in FROM_GRIB])
def test_grib_becomes_what_the_command_makes_of_it(squall_command, grib, tmp_path, keywords, options):
    squall_command("convert", grib, tmp_path / "a.zarr", *options)
    report = quiet(grib, tmp_path / "b.zarr", **keywords)
    assert files(tmp_path / "b.zarr") == files(tmp_path / "a.zarr")
    assert report.ok and report.units["done"] > 0 and report.units["failed"] == 0


@pytest.mark.parametrize(("keywords", "options"), FROM_NETCDF, ids=[said(options) for _, options in FROM_NETCDF])
def test_netcdf_becomes_what_the_command_makes_of_it(squall_command, days, tmp_path, keywords, options):
    paths = sorted(days.glob("*.nc"))
    squall_command("convert", *paths, tmp_path / "a.zarr", *options)
    quiet(paths, tmp_path / "b.zarr", **keywords)
    assert files(tmp_path / "b.zarr") == files(tmp_path / "a.zarr")


@pytest.fixture
def squall_command(request):
    return request.getfixturevalue("squall")


def test_every_option_of_the_command_is_a_keyword(squall_command):
    options = re.findall(r"--([a-z-]+)", "\n".join(re.findall(r"(?m)^ +(?:-.,)? *--[a-z-]+", squall_command("help", "convert").out)))
    ours = {"sources", "dest", "client", "progress"}
    keywords = set(inspect.signature(squall.convert).parameters) - ours
    # strict=False is --keep-going; without part= what parts have left is finished;
    # the report is what --json, --verbose and --log print, progress=False is --quiet; settings are in Python
    assert keywords == {o.replace("-", "_") for o in options} - {
        *("keep_going", "finish", "json", "quiet", "verbose", "help"),
        *("config", "print_config", "log"),
    }


def test_sources_are_paths_patterns_and_lists_of_both(grib, days, tmp_path, monkeypatch):
    files_of = sorted(grib.glob("*.grib2"))
    quiet(grib, tmp_path / "a.zarr")
    wanted = files(tmp_path / "a.zarr")
    monkeypatch.chdir(grib)
    for number, sources in enumerate(
        (str(grib), "*.grib2", files_of, [str(files_of[0]), grib / "*[026]00.grib2"], os.fsencode(grib), iter(files_of))
    ):
        quiet(sources, tmp_path / f"{number}.zarr")
        assert files(tmp_path / f"{number}.zarr") == wanted
    quiet(str(days / "**" / "*.nc"), tmp_path / "days.zarr")
    quiet(tmp_path / "days.zarr", tmp_path / "again.zarr", chunks={"time": -1})
    parts = [xr.load_dataset(path, engine="netcdf4") for path in sorted(days.glob("*.nc"))]
    expected = xr.concat(parts, "time", data_vars="minimal", coords="minimal", compat="override", join="exact")
    found = xr.open_dataset(tmp_path / "again.zarr", engine="zarr", consolidated=False).drop_vars(["chunk_exists", "field_count"])
    xr.testing.assert_equal(found, expected)
    with pytest.raises(FileNotFoundError, match=r"nothing\*"):
        quiet("nothing*", tmp_path / "n.zarr")
    with pytest.raises(FileNotFoundError, match="nothing"):
        quiet(["nothing"], tmp_path / "n.zarr")
    with pytest.raises(ValueError, match="sources"):
        quiet([], tmp_path / "n.zarr")
    assert not (tmp_path / "n.zarr").exists()


def test_every_kind_of_source_is_taken(squall_command, grib, days, tmp_path):
    with xr.open_dataset(days / "day0.nc", engine="netcdf4") as ds:
        ds.to_netcdf(tmp_path / "classic.nc", format="NETCDF3_64BIT", engine="netcdf4")
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file["t"] = np.arange(24.0).reshape(4, 6)
    squall.create_array(tmp_path / "cube.zarr", "t2m", data=np.ones((4, 6), "f4"), dims=("time", "x"), zarr_format=2)
    for source in (next(grib.glob("*.grib2")), days / "day0.nc", tmp_path / "classic.nc", tmp_path / "plain.h5", tmp_path / "cube.zarr"):
        squall_command("convert", source, tmp_path / f"{source.name}.a")
        quiet(source, tmp_path / f"{source.name}.b")
        assert files(tmp_path / f"{source.name}.a") == files(tmp_path / f"{source.name}.b")


def test_the_report_is_the_commands_json(squall_command, grib, tmp_path):
    report = quiet(grib, tmp_path / "b.zarr", dtype="float16")
    told = json.loads(squall_command("convert", grib, tmp_path / "a.zarr", "--dtype", "float16", "--json").out)
    assert {**report, "destination": ""} == {**told, "destination": ""} and report["destination"] == str(tmp_path / "b.zarr")
    assert report.bytes_in == report["bytes_in"] > 0 and report.seconds > 0 and "bytes_in" in dir(report)
    assert re.search(r"b\.zarr: 3 units written \(27 fields, .* KiB of GRIB, .* KiB of Zarr\), 0 done before\n", repr(report))
    assert re.fullmatch(r"\d+\.\d s, exit code 0: all done", repr(report).splitlines()[-1])
    with pytest.raises(AttributeError, match="no units_done; it has destination, units"):
        _ = report.units_done
    again = quiet(grib, tmp_path / "b.zarr", dtype="float16")
    assert again.units == {"done": 0, "skipped": 3, "failed": 0} and "nothing new, 3 done before" in repr(again)
    new = quiet(grib, tmp_path / "b.zarr", overwrite=True)
    assert new.units["done"] == 3 and squall.open(tmp_path / "b.zarr")["t2m"].dtype == np.float32


def test_a_dry_run_tells_the_plan_and_does_nothing(squall_command, grib, tmp_path):
    plan = quiet(grib, tmp_path / "a.zarr", dry_run=True)
    told = json.loads(squall_command("convert", grib, tmp_path / "a.zarr", "--dry-run", "--json").out)
    assert dict(plan) == told and plan.ok and "3 to write" in repr(plan) and not (tmp_path / "a.zarr").exists()
    small = quiet(grib, tmp_path / "a.zarr", dry_run=True, memory=1000)
    assert small.exit_code == 1 and "1000 B may be used; give memory= 17M" in repr(small) and not small.ok


def test_losses_are_in_the_report_and_warned_of_once(squall_command, damaged, tmp_path):
    with pytest.warns(UserWarning, match=r"a\.zarr: 2 inputs or units are missing or ignored, the first of them .*cut off") as caught:
        report = squall.convert(damaged, tmp_path / "a.zarr", progress=False)
    assert len(caught) == 1 and caught[0].filename == __file__
    told = json.loads(squall_command("convert", damaged, tmp_path / "b.zarr", "--json", check=False).out)
    assert report.bad == told["bad"] and len(report.bad) == 2 and report.exit_code == 3 and not report.ok
    assert any(one["file"].endswith("page.grib2") for one in report.bad)
    shown, page = repr(report), report._repr_html_()
    assert "could not be read:" in shown and "page.grib2" in shown and "exit code 3: finished, but not of all inputs" in shown
    assert "<summary>bad: 2</summary>" in page and "<html>no GRIB" not in page and "page.grib2" in page
    assert files(tmp_path / "a.zarr") == files(tmp_path / "b.zarr")
    with warnings.catch_warnings():  # they are known by now
        warnings.simplefilter("error")
        assert quiet(damaged, tmp_path / "a.zarr").ok


def test_names_that_are_no_utf8_are_shown(grib, tmp_path):
    folder = shutil.copytree(grib, tmp_path / "in")
    odd = os.path.join(os.fsencode(folder), b"caf\xe9.grib2")
    with open(odd, "wb") as file:
        file.write(b"no GRIB")
    with pytest.warns(UserWarning, match=r"caf\\udce9\.grib2"):
        report = quiet(os.fsencode(folder), os.fsencode(tmp_path / "a.zarr"))
    assert os.fsencode(report.bad[0]["file"]) == odd
    assert r"caf\udce9.grib2" in report.text and (repr(report) + report._repr_html_()).encode()


def test_strict_raises_when_all_that_is_good_is_written(squall_command, damaged, tmp_path):
    squall_command("convert", damaged, tmp_path / "a.zarr", "--strict", check=False)
    for _ in range(2):  # and goes on doing so
        with pytest.raises(squall.Error, match="inputs or units are missing or ignored, the first of them") as caught:
            quiet(damaged, tmp_path / "b.zarr", strict=True)
    assert caught.value.status == squall.Status.ECORRUPT and caught.value.path == str(tmp_path / "b.zarr")
    assert caught.value.report.units["failed"] == 1 and len(caught.value.report.bad) == 2
    assert files(tmp_path / "a.zarr") == files(tmp_path / "b.zarr")


def test_the_traps_of_real_archives_are_told(squall_command, support, tmp_path):
    maker = [
        support / "make_archive",
        tmp_path / "archive",
        "--inits",
        "6",
        "--steps",
        "2",
        "--vars",
        "9",
        "--ny",
        "64",
        "--nx",
        "64",
        "--traps",
    ]
    subprocess.run(maker, check=True, capture_output=True)
    with pytest.warns(UserWarning, match="the report lists all"):
        report = quiet(tmp_path / "archive", tmp_path / "a.zarr")
    told = json.loads(squall_command("convert", tmp_path / "archive", tmp_path / "b.zarr", "--json", check=False).out)
    assert {**report, "destination": ""} == {**told, "destination": ""} and report.bad and report.ignored and report.partial
    assert files(tmp_path / "a.zarr") == files(tmp_path / "b.zarr")


@pytest.mark.parametrize(
    ("keywords", "kind", "message"),
    [
        ({"chunks": {"depth": 1}}, ValueError, 'chunks: there is no dimension "depth"'),
        ({"chunks": {"y": 0}}, ValueError, 'chunks: y="0"'),
        ({"chunks": [1, 2]}, TypeError, "chunks: .*list"),
        ({"chunks": {"y": 1.5}}, TypeError, "chunks: 1.5"),
        ({"chunks": {"y,x": 2}}, ValueError, "chunks: 'y,x'"),
        ({"dtype": "int8"}, ValueError, "dtype: int8"),
        ({"dtype": object()}, TypeError, "dtype: "),
        ({"codec": "nix"}, ValueError, 'codec: no codec is called "nix"'),
        ({"codec": {"id": "zstd"}}, ValueError, "codec: .*'id'"),
        ({"codec": 3}, TypeError, "codec: 3"),
        ({"on_overflow": "wrap"}, ValueError, 'on_overflow: "wrap" is none of error, inf, clip'),
        ({"on_overflow": True}, TypeError, "on_overflow: True"),
        ({"select": {"colour": 1}}, ValueError, "select= colour=1"),
        ({"select": 5}, TypeError, "select: 5"),
        ({"rename": {"nothing": "x"}}, ValueError, "rename= nothing=x: there is no variable"),
        ({"rename": [{"t2m": "t"}]}, TypeError, "rename: "),
        ({"coarsen": {"z": 2}}, ValueError, "coarsen: z is no horizontal dimension"),
        ({"every": "soon"}, ValueError, 'every: "soon"'),
        ({"every": datetime.timedelta(milliseconds=1)}, ValueError, "every: "),
        ({"every": 6}, TypeError, "every: 6"),
        ({"stack_name": "all"}, ValueError, "stack_name: .*add stack= variable"),
        ({"drift": "warn"}, ValueError, "drift= is for HDF5"),
        ({"threads": 0}, ValueError, "threads=0"),
        ({"memory": "much"}, ValueError, "memory='much'"),
        ({"memory": 1000}, MemoryError, "give memory= 17M"),
        ({"progress": "bar"}, TypeError, "progress='bar'"),
        ({"client": object()}, TypeError, "client: .*distributed.Client"),
        ({"colour": 1}, TypeError, "colour"),
    ],
)
def test_what_makes_no_sense_names_the_keyword(grib, tmp_path, keywords, kind, message):
    with pytest.raises(kind, match=message):
        squall.convert(grib, tmp_path / "a.zarr", **{"progress": False} | keywords)
    assert not (tmp_path / "a.zarr").exists()


def test_another_layout_is_refused(grib, tmp_path):
    quiet(grib, tmp_path / "a.zarr")
    with pytest.raises(squall.Error, match='dtype= is "float32" there and "float16" now') as caught:
        quiet(grib, tmp_path / "a.zarr", dtype="float16")
    assert caught.value.status == squall.Status.EREFUSED and caught.value.path == str(tmp_path / "a.zarr")


def test_progress_grows_and_ends_at_the_total(grib, tmp_path):
    seen = []
    report = squall.convert(grib, tmp_path / "a.zarr", progress=seen.append)
    assert seen[-1][:4] == (3, 3, report.bytes_in, report.bytes_out)
    for before, after in zip(seen, seen[1:], strict=False):
        assert all(x <= y for x, y in zip(before, after, strict=True)) and before[:4] != after[:4]
    chunks = []
    squall.verify(tmp_path / "a.zarr", progress=chunks.append)
    assert chunks[-1].units_done == chunks[-1].units == 9
    nothing = []
    squall.convert(grib, tmp_path / "a.zarr", progress=nothing.append)
    assert nothing == []


def test_what_a_progress_function_raises_ends_the_conversion(many_runs, tmp_path):
    def stop(numbers):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        squall.convert(many_runs, tmp_path / "a.zarr", progress=stop, threads=1)
    assert quiet(many_runs, tmp_path / "a.zarr").units["skipped"] < 300
    assert not any(thread.name.startswith("squall") for thread in threading.enumerate())


@pytest.mark.parametrize("tqdm", [True, False])
def test_a_bar_is_shown_with_tqdm_and_without(grib, tmp_path, capfd, monkeypatch, tqdm):
    if not tqdm:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setitem(sys.modules, "ipykernel", sys)  # as in a notebook, whose lines can be written again
    squall.convert(grib, tmp_path / "a.zarr")
    shown = capfd.readouterr()
    assert shown.out == "" and shown.err.endswith("\n")
    last = shown.err.rstrip().split("\r")[-1]
    assert "3/3" in last and "units" in last and "KiB in" in last and "KiB out" in last
    squall.convert(grib, tmp_path / "b.zarr", progress=False)
    assert capfd.readouterr().err == ""


@pytest.fixture(scope="module")
def many_runs(tmp_path_factory):
    return archive.make(tmp_path_factory.mktemp("many"), inits=300, names=("t",), steps=range(1))


INTERRUPTED = """
import sys, time, squall

def tell(numbers):
    if not told and numbers.units_done:
        told.append(time.monotonic())
        print("begun", flush=True)

told = []
try:
    squall.convert(sys.argv[1], sys.argv[2], progress=tell, threads=1)
except KeyboardInterrupt as e:
    print(f"stopped {time.monotonic() - told[0]:.3f}", *e.__notes__, sep="|", flush=True)
    sys.exit(9)
"""


def test_ctrl_c_leaves_a_store_that_goes_on(many_runs, tmp_path):
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED, many_runs, tmp_path / "a.zarr"], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    said_last, _ = child.communicate(timeout=60)
    assert child.returncode == 9
    stopped, note = said_last.strip().split("|")
    assert float(stopped.split()[1]) < 5 and "is whole as far as it goes" in note
    before = squall.status(tmp_path / "a.zarr")
    assert 0 < before.complete < 300 and squall.verify(tmp_path / "a.zarr", progress=False).bad == []
    report = quiet(many_runs, tmp_path / "a.zarr")
    assert report.units["skipped"] == before.complete and report.units["done"] == 300 - before.complete
    quiet(many_runs, tmp_path / "b.zarr")
    assert files(tmp_path / "a.zarr") == files(tmp_path / "b.zarr")


def test_status_and_verify_tell_what_the_command_tells(squall_command, grib, tmp_path):
    store = tmp_path / "a.zarr"
    quiet(grib, store)
    status, verify = squall.status(store), squall.verify(store, progress=False)
    assert dict(status) == json.loads(squall_command("status", store, "--json").out) and status.ok
    assert dict(verify) == json.loads(squall_command("verify", store, "--json").out) and verify.ok
    assert repr(status).startswith(squall_command("status", store).out.rstrip()) and "complete: 3" in status._repr_html_()
    assert repr(verify).startswith(squall_command("verify", store).out.rstrip())
    chunk = next(p for p in (store / "t2m" / "c").rglob("*") if p.is_file())
    chunk.write_bytes(chunk.read_bytes()[:-1])
    damage = squall.verify(store, progress=False)
    assert damage.exit_code == 5 and len(damage.bad) == 1 and "t2m" in damage.bad[0] and "exit code 5: there is damage" in repr(damage)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        squall.verify(tmp_path / "nowhere", progress=False)
    with pytest.raises(squall.Error):
        squall.status(tmp_path / "nowhere")


def test_other_threads_and_event_loops_go_on_meanwhile(many_runs, tmp_path):
    ticks, reports, done = [], {}, threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    def convert(name):
        reports[name] = quiet(many_runs, tmp_path / name)

    threads = [threading.Thread(target=convert, args=(f"{i}.zarr",)) for i in range(3)]
    ticker = threading.Thread(target=tick)
    ticker.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set(), ticker.join()
    assert len(ticks) > 20 and all(report.units["done"] == 300 for report in reports.values())
    assert files(tmp_path / "0.zarr") == files(tmp_path / "1.zarr") == files(tmp_path / "2.zarr")

    async def notebook():
        here = quiet(many_runs, tmp_path / "0.zarr")  # in a running loop, as cells are
        there = await asyncio.to_thread(quiet, many_runs, tmp_path / "1.zarr")
        return here, there

    assert all(report.units["skipped"] == 300 for report in asyncio.run(notebook()))


def test_a_second_conversion_waits_where_it_is_told_to(many_runs, tmp_path):
    waited = []

    def again(numbers):
        if not waited:
            waited.append(quiet(many_runs, tmp_path / "s.zarr", lock_timeout=datetime.timedelta(minutes=2)))

    first = squall.convert(many_runs, tmp_path / "s.zarr", progress=again)
    assert waited[0].units["done"] + first.units["done"] == 300 and waited[0].units["skipped"] == first.units["done"] > 0
    with pytest.raises(TypeError, match="lock_timeout: 'long' is a str; wanted is seconds from 0 on, or a timedelta"):
        quiet(many_runs, tmp_path / "s.zarr", lock_timeout="long")


def test_a_second_conversion_into_a_store_is_refused(many_runs, tmp_path):
    refused = []

    def again(numbers):
        if not refused:
            with pytest.raises(squall.Error, match=f"in use by process {os.getpid()} on this host") as caught:
                quiet(many_runs, tmp_path / "a.zarr")
            refused.append(caught.value.status)

    report = squall.convert(many_runs, tmp_path / "a.zarr", progress=again, threads=1)
    assert refused == [squall.Status.EREFUSED] and report.units["done"] == 300


def test_a_forked_child_converts(grib, tmp_path):
    quiet(grib, tmp_path / "a.zarr")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if quiet(grib, tmp_path / "b.zarr").ok else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert files(tmp_path / "a.zarr") == files(tmp_path / "b.zarr")


PEAK = """
import pathlib, re, sys, squall

def peak():
    return 1024 * int(re.search("VmHWM: *([0-9]+)", pathlib.Path("/proc/self/status").read_text().replace(chr(9), " "))[1])

before = peak()
squall.convert(sys.argv[1], sys.argv[2], progress=False, chunks={"time": 8, "y": -1, "x": -1}, memory="110M")
print(peak() - before)
"""


def test_memory_is_kept_to(tmp_path):
    values = np.random.default_rng(0).standard_normal((64, 512, 512)).astype("f4")  # 64 MiB, a chunk of the store has 8
    squall.create_array(tmp_path / "in.zarr", "t2m", data=values, dims=("time", "y", "x"), chunks=(1, 512, 512))

    assert quiet(tmp_path / "in.zarr", tmp_path / "a.zarr", dry_run=True, memory="110M").memory_budget_bytes == 110 << 20
    command = [sys.executable, "-c", PEAK, tmp_path / "in.zarr", tmp_path / "a.zarr"]
    assert int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout) < 110 << 20
    assert (squall.open_array(tmp_path / "a.zarr/t2m")[...] == values).all()


def test_a_notebook_shows_bar_and_report(grib, tmp_path):
    import nbclient
    import nbformat

    cell = nbformat.v4.new_code_cell(f"import squall\nsquall.convert({str(grib)!r}, {str(tmp_path / 'a.zarr')!r})")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    bar = "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stderr")
    (report,) = (output.data for output in cell.outputs if output.output_type == "execute_result")
    assert "3/3" in bar and "3 units written" in report["text/html"] and "all done" in report["text/plain"]


def test_sources_that_are_no_paths_are_told(tmp_path):
    with pytest.raises(TypeError, match="sources: 3 is a int; wanted is a path, a pattern, or several"):
        quiet(3, tmp_path / "s.zarr")
