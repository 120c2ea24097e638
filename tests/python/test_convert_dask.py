"""squall.convert(client=...): a Dask cluster of processes writes a store, also where workers die. The oracle is one run of the whole."""

import contextlib
import os
import random
import shutil
import signal
import subprocess

import pytest
import small_archive as archive
from test_convert import files

pytest.importorskip("xarray")
distributed = pytest.importorskip("distributed")
import squall  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # what dying workers make distributed tell
OPTIONS = {"chunks": {"latitude": 6}}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = archive.make(tmp_path_factory.mktemp("in"), 12, names=("t", "r"), steps=range(2))
    archive.path_of(folder, 4).unlink()  # a gap
    (folder / "bad.grib2").write_bytes(archive.path_of(folder, 0).read_bytes()[:-50])
    return folder


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    store = tmp_path_factory.mktemp("whole") / "out.zarr"
    return squall.convert(source, store, progress=False, threads=1, **OPTIONS), files(store)


@contextlib.contextmanager
def cluster_client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with cluster_client() as client:
        yield client


def told(report):
    return {key: value for key, value in report.items() if key != "destination"}


def test_a_cluster_makes_the_store_of_the_whole_and_its_report(client, source, whole, tmp_path):
    store, shown = tmp_path / "out.zarr", []
    report = squall.convert(source, store, client=client, progress=shown.append, **OPTIONS)
    assert files(store) == whole[1]
    assert told(report) == told(whole[0]) and report.exit_code == 3
    assert "11 units written by" in report.text and "known already" not in report.text
    assert shown[-1].units_done == shown[-1].units == 11 and shown[-1].bytes_out == report.bytes_out
    assert not list((store / "chunk_exists/.squall").glob("lock*"))
    again = squall.convert(source, store, client=client, progress=False, **OPTIONS)
    assert again.ok and again.units == {"done": 0, "skipped": 11, "failed": 0}


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.long)])
def test_a_killed_worker_is_of_no_consequence(source, whole, tmp_path, rounds):
    for number in range(rounds):
        with cluster_client() as client:  # one of its own: which of them a nanny starts again is Dask's affair
            store, doomed = tmp_path / f"{number}.zarr", [random.Random(number).choice(list(client.run(os.getpid).values()))]

            def kill(progress, doomed=doomed):
                if doomed:
                    os.kill(doomed.pop(), signal.SIGKILL)

            report = squall.convert(source, store, client=client, progress=kill, **OPTIONS)
            assert not doomed and files(store) == whole[1] and report.units["failed"] == 0
            assert not list(store.rglob(".*.squall-tmp"))


def test_threads_parts_and_clusters_go_on_from_each_other(client, source, whole, tmp_path):
    store = tmp_path / "out.zarr"
    few = tmp_path / "few"
    few.mkdir()
    for path in sorted(source.glob("2*.grib2"))[:6]:
        shutil.copy2(path, few)
    squall.convert(source, store, part=(2, 3), threads=1, progress=False, **OPTIONS)
    squall.convert(few, store, client=client, progress=False, **OPTIONS)
    squall.convert(source, store, client=client, progress=False, **OPTIONS)
    assert files(store) == whole[1]


def test_what_ends_the_waiting_cancels_the_tasks_and_the_store_goes_on(client, source, whole, tmp_path):
    store = tmp_path / "out.zarr"

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        squall.convert(source, store, client=client, progress=stop, **OPTIONS)
    squall.convert(source, store, client=client, progress=False, **OPTIONS)
    assert files(store) == whole[1]


def test_what_is_refused_is_told_before_anything_is_written(client, source, tmp_path):
    for keywords in ({"overwrite": True}, {"prepend": True}, {"part": "1/2"}):
        with pytest.raises(ValueError, match="client exclude"):
            squall.convert(source, tmp_path / "out.zarr", client=client, progress=False, **keywords)
    with pytest.raises(MemoryError):
        squall.convert(source, tmp_path / "out.zarr", client=client, progress=False, memory=1000)
    assert not (tmp_path / "out.zarr").exists()


def test_an_error_of_a_task_is_the_caller_s(client, tmp_path):
    source = archive.make(tmp_path / "in", 3, names=("orog",), steps=range(1))
    with pytest.raises((squall.Error, OverflowError, ValueError), match="float16"):
        squall.convert(source, tmp_path / "out.zarr", client=client, progress=False, dtype="float16")


def test_a_store_in_use_is_refused(client, source, squall_binary, tmp_path):
    store = tmp_path / "out.zarr"
    process = subprocess.Popen(
        [squall_binary, "convert", source, store, "--threads", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not (store / "chunk_exists/.squall/lock").exists() and process.poll() is None:
            pass
        process.send_signal(signal.SIGSTOP)
        if (store / "chunk_exists/.squall/lock").exists():
            with pytest.raises(squall.Error, match="in use by process"):
                squall.convert(source, store, client=client, progress=False)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def squall_binary(request):
    return request.getfixturevalue("squall").binary
