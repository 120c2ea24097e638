"""Threads of several processes that write one array at the same time, in random order, and readers beside them."""

import concurrent.futures
import multiprocessing
import random

import numpy as np
import pytest
import squall
import zarr

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

SHAPE, CHUNKS = (61, 90), (8, 10)
PROCESSES, THREADS = 4, 8
LAYOUTS = {
    "plain": {"codecs": None},
    "zstd": {"codecs": "zstd"},
    "blosc": {"codecs": "blosc:cname=lz4,shuffle=shuffle"},
    "shards": {"shards": (16, 30), "codecs": "zstd"},
    "plain shards": {"shards": (16, 30), "codecs": None},
    "v2": {"zarr_format": 2},
}


@pytest.fixture(params=LAYOUTS)
def array(request, tmp_path):
    return squall.create_array(tmp_path / "a.zarr", shape=SHAPE, chunks=CHUNKS, dtype="i4", fill_value=-1, **LAYOUTS[request.param])


@pytest.fixture
def processes():
    with concurrent.futures.ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("fork")) as pool:
        yield pool


def boxes(array):
    """Of the chunks, or shards."""
    rows, columns = array.shards or array.chunks
    return [
        (slice(r, min(r + rows, SHAPE[0])), slice(c, min(c + columns, SHAPE[1])))
        for r in range(0, SHAPE[0], rows)
        for c in range(0, SHAPE[1], columns)
    ]


def pieces(box):
    """A box in four that cut its chunks, one of them every other row."""
    rows, columns = box
    middle = (columns.start * 2 + columns.stop) // 3
    yield rows, slice(columns.start, middle)
    yield slice(rows.start, rows.start + 1), slice(middle, columns.stop)
    yield slice(rows.start + 1, rows.stop, 2), slice(middle, columns.stop)
    yield slice(rows.start + 2, rows.stop, 2), slice(middle, columns.stop)


def write_pieces(array, values, own, seed):
    regions = [piece for box in own for piece in pieces(box) if values[piece].size]
    random.Random(seed).shuffle(regions)

    def write(region):
        array[region] = values[region]

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(write, regions))
    return len(regions)


def test_threads_and_processes_write_distinct_regions_in_any_order(array, processes):
    values = np.random.default_rng(3).integers(0, 1 << 30, SHAPE, dtype="i4")
    every = boxes(array)
    random.Random(5).shuffle(every)
    own = [every[i::PROCESSES] for i in range(PROCESSES)]  # a chunk is one process's: between them nothing is locked
    written = processes.map(write_pieces, [array] * PROCESSES, [values] * PROCESSES, own, range(PROCESSES))
    assert sum(written) > 3 * len(every)
    np.testing.assert_array_equal(array[...], values)
    np.testing.assert_array_equal(zarr.open_array(array.path, mode="r")[...], values)


def write_waves(array, own, seed, waves):
    """Wave after wave over the boxes, in another order each time; the waves of a box are written one after the other."""
    rng = random.Random(seed)
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        for wave in range(1, waves + 1):
            list(pool.map(lambda box, wave=wave: array.__setitem__(box, wave), rng.sample(own, len(own))))
    return True


def test_readers_see_each_chunk_whole_and_never_an_older_one_again(array, processes):
    every = boxes(array)
    own = [every[i::PROCESSES] for i in range(PROCESSES)]
    writers = [processes.submit(write_waves, array, part, i, 40) for i, part in enumerate(own)]
    again = squall.open_array(array.path)

    def read(seed):
        rng, last, changes = random.Random(seed), {}, 0
        while not all(writer.done() for writer in writers):
            which, source = rng.randrange(len(every)), rng.choice([array, again])
            rows, columns = every[which]
            if rng.random() < 0.5:  # a small part: what is kept of a chunk is of one wave, too
                rows, columns = slice(rows.start + 1, rows.stop, 2), slice(columns.start + 3, columns.start + 5)
            found = source[rows, columns]
            assert (found == found.flat[0]).all()
            assert found.flat[0] >= last.get(which, -1)
            changes += last.get(which) != found.flat[0]
            last[which] = found.flat[0]
        return changes

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(read, range(4))) > 4
    assert all(writer.result() for writer in writers)
    assert (array[...] == 40).all()
