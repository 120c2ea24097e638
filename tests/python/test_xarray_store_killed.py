"""squall.store that is killed, or workers of it: what is stored in the end is what an undisturbed one stores, and no value of another."""

import concurrent.futures
import os
import signal
import time

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
pytest.importorskip("zarr")
dask = pytest.importorskip("dask")
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
    distributed = pytest.importorskip("distributed")
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


# ---- what is left of an append that was killed -----------------------------------------------------------------------------------------


class Killed(Exception):
    pass


def numbers(count, start, random, is_empty=False):
    """is_empty: nothing but fill values, of which no chunk is stored."""
    shape = (count, 4)
    data = {
        "v": np.full(shape, np.nan) if is_empty else random.normal(size=shape),
        "n": np.zeros(shape, "i8") if is_empty else random.integers(1, 9, shape),
    }
    return xr.Dataset({name: (("t", "x"), values) for name, values in data.items()}, coords={"t": np.arange(start, start + count)})


def killed_after(ds, blocks):
    done = iter(range(blocks))

    def pass_on(block):
        if next(done, None) is None:
            raise Killed
        return block

    return ds.assign({name: v.copy(data=v.data.map_blocks(pass_on, meta=np.zeros((0, 0), v.dtype))) for name, v in ds.items()})


@pytest.mark.parametrize("seed", range(24))
def test_no_value_of_a_killed_append_is_seen(tmp_path, seed):
    random = np.random.default_rng(seed)
    length, killed, chunk = (int(random.integers(1, n)) for n in (7, 9, 5))
    is_sharded = seed % 4 == 3
    how = {"chunks": (chunk, 2)} | ({"shards": (chunk * 2, 4)} if is_sharded else {})
    first = numbers(length, 0, random)
    squall.store(first, tmp_path, mode="w", encoding={"v": dict(how), "n": dict(how)}, zarr_format=3 if is_sharded else 2 + seed % 2)
    with dask.config.set(scheduler="sync"), pytest.raises(Killed):
        ds = numbers(killed, length, random).chunk(t=1)
        squall.store(killed_after(ds, int(random.integers(killed, 2 * killed))), tmp_path, append_dim="t", align_chunks=True)
    xr.testing.assert_identical(xr.open_zarr(tmp_path).load(), first)

    count = int(random.integers(1, killed + 1))  # the next is of the same length, or shorter
    second = numbers(count, length, random, is_empty=random.random() < 0.5)
    if seed % 3:
        squall.store(second.chunk(t=2) if seed % 2 else second, tmp_path, append_dim="t", align_chunks=True)
    else:
        later = squall.store(second.chunk(t=2), tmp_path, append_dim="t", align_chunks=True, compute=False)
        found = xr.open_zarr(tmp_path).isel(t=slice(length, None)).load()
        assert found.v.isnull().all() and (found.n == 0).all()  # as long as nothing is written
        later.compute()
    both = xr.concat([first, second], "t")
    xr.testing.assert_identical(xr.open_zarr(tmp_path).load(), both)
    third = numbers(5, length + count, random, is_empty=True)
    squall.store(third, tmp_path, append_dim="t")
    xr.testing.assert_identical(xr.open_zarr(tmp_path).load(), xr.concat([both, third], "t"))
