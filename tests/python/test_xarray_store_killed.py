"""squall.store on a cluster whose workers are killed: what is stored is what an undisturbed one stores."""

import concurrent.futures
import os
import signal
import time

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
pytest.importorskip("zarr")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import squall  # noqa: E402
from test_xarray_store import contents, weather  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
CONFIG = {
    "distributed.scheduler.allowed-failures": 10,
    # a cluster gives a worker up that is away 15 s after it was lost once: so one that is lost again and again
    "distributed.deploy.lost-worker-timeout": "1h",
}


def slowly(block):
    time.sleep(0.02)
    return block


def parts():
    first, second = weather(10, seed=3), weather(24, "2000-02-01", seed=4)
    return first.chunk(time=1), second.chunk(time=1)


def store(ds, folder, what):
    if what == "append":
        squall.store(ds, folder, append_dim="time")
    else:
        squall.store(ds, folder, mode="w", compute=False).compute()


def count_of_files(folder):
    return sum(len(files) for _, _, files in os.walk(folder / "t2m"))


def published(folder):
    """Without what a killed worker was about to write, in a file that no reader looks at."""
    return {name: data for name, data in contents(folder).items() if not name.endswith(".squall-tmp")}


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.long)])
def test_a_store_is_the_same_when_workers_are_killed(tmp_path, rounds):
    random = np.random.default_rng(8)
    first, second = parts()
    squall.store(first, tmp_path / "append")
    for what in ("new", "append"):
        store(second, tmp_path / what, what)
    with (
        dask.config.set(CONFIG),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        concurrent.futures.ThreadPoolExecutor(1) as thread,
    ):
        for round_number in range(rounds):
            what = ("new", "append")[round_number % 2]
            folder = tmp_path / f"{round_number}"
            if what == "append":
                squall.store(first, folder)
            wanted = count_of_files(folder) + int(random.integers(2, 13))
            client.wait_for_workers(2, timeout=60)
            later = thread.submit(store, second.map_blocks(slowly), folder, what)
            while count_of_files(folder) < wanted and not later.done():
                time.sleep(0.005)
            assert not later.done()
            victims = [worker.pid for worker in cluster.workers.values()]
            os.kill(victims[int(random.integers(2))], signal.SIGKILL)
            later.result(timeout=120)
            assert published(folder) == contents(tmp_path / what)
