"""squall.zarr.CodecPipeline: zarr-python reads with it what it reads without, and says which of the two did it."""

import concurrent.futures
import pickle
import subprocess
import sys

import numpy as np
import pytest
import squall.zarr
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from squall.zarr import CodecPipeline
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, TransposeCodec, ZstdCodec

SHAPE, CHUNKS = (13, 9, 10), (4, 3, 5)


@pytest.fixture(autouse=True)
def pipeline():
    with zarr.config.set({"codec_pipeline.path": "squall.zarr.CodecPipeline"}):
        yield


@pytest.fixture
def done_by(monkeypatch):
    """A list that grows by "squall" or "zarr" with every batch that is read."""
    found, read = [], CodecPipeline._read

    async def watched(self, *args):
        native = await read(self, *args)
        found.append("squall" if native else "zarr")
        return native

    monkeypatch.setattr(CodecPipeline, "_read", watched)
    return found


LAYOUTS = {
    "v3": {},
    "v3 dots": {"chunk_key_encoding": {"name": "default", "separator": "."}},
    "v3 as v2": {"chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "sharded": {"shards": (8, 9, 10)},
    "sharded far": {"shards": (16, 9, 20)},  # beyond the shape
    "blosc": {"compressors": BloscCodec(cname="lz4", shuffle="bitshuffle")},
    "transposed": {"filters": [TransposeCodec(order=(2, 0, 1))], "compressors": GzipCodec(level=1)},
    "big endian": {"serializer": BytesCodec(endian="big"), "compressors": None},
    "v2": {"zarr_format": 2},
    "v2 slashes, F": {"zarr_format": 2, "order": "F", "chunk_key_encoding": {"name": "v2", "separator": "/"}},
}


def make(folder, layout, values=None):
    values = np.random.default_rng(7).integers(0, 999, SHAPE, dtype=np.int32) if values is None else values
    array = zarr.create_array(folder, shape=values.shape, dtype=values.dtype, chunks=CHUNKS, **LAYOUTS[layout])
    array[...] = values
    return values, zarr.open_array(folder)


KEYS = [np.s_[...], np.s_[5], np.s_[2:11:3, 1:, ::4], np.s_[3:5, 2, 9], np.s_[..., 0], np.s_[0:0], (1, 2, 3)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_slices_are_read_by_squall(layout, tmp_path, done_by):
    values, array = make(tmp_path / "a.zarr", layout)
    for key in KEYS:
        found = array[key]
        assert type(found) is type(values[key]) or found.shape == ()
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, values[key])
    assert set(done_by) == {"squall"}


def test_zarr_finds_it_without_help():
    """By the entry point: nothing of squall has been imported."""
    code = 'import zarr; zarr.config.set({"codec_pipeline.path": "squall.zarr.CodecPipeline"}); '
    code += "print(type(zarr.create_array({}, shape=(3,), dtype=int)._async_array.codec_pipeline).__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "squall.zarr\n", done.stderr


@pytest.mark.parametrize("layout", ["v3", "sharded", "sharded far", "v2"])
def test_arrays_of_indices(layout, tmp_path, done_by):
    values, array = make(tmp_path / "a.zarr", layout)
    rows, columns, mask = [12, 0, 5, 5], [8, 1, 3, 3], np.arange(10) % 3 == 1
    np.testing.assert_array_equal(array.oindex[rows, :, mask], values[np.ix_(rows, range(9), mask.nonzero()[0])])
    np.testing.assert_array_equal(array.oindex[rows, 2], values[rows, 2])
    np.testing.assert_array_equal(array.oindex[3, rows[1:3], 1:9:3], values[3, rows[1:3], 1:9:3])
    np.testing.assert_array_equal(array.vindex[rows, columns, 4], values[rows, columns, 4])
    np.testing.assert_array_equal(array.vindex[[[0, 9], [2, 12]], [[8], [0]], 4], values[[[0, 9], [2, 12]], [[8], [0]], 4])
    np.testing.assert_array_equal(array.vindex[values > 700], values[values > 700])
    np.testing.assert_array_equal(array[values > 700], values[values > 700])
    if not array.shards:
        np.testing.assert_array_equal(array.blocks[1, 2], values[outer(array, 0, 1), outer(array, 1, 2)])
    assert set(done_by) == {"squall"}


def outer(array, axis, block):
    length = array.chunks[axis]
    return slice(block * length, (block + 1) * length)


@st.composite
def keys(draw):
    out = []
    for n in SHAPE:
        start, stop, step = draw(st.integers(0, n - 1)), draw(st.integers(0, n)), draw(st.none() | st.integers(1, 7))
        out.append(start if draw(st.integers(0, 2)) == 0 else slice(start, stop, step))
    return tuple(out)


@pytest.fixture(scope="module", params=["v3", "sharded"])
def cube(request, tmp_path_factory):
    with zarr.config.set({"codec_pipeline.path": "squall.zarr.CodecPipeline"}):
        return make(tmp_path_factory.mktemp("cube") / "a.zarr", request.param)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(key=keys())
def test_any_box(cube, key):
    values, array = cube
    np.testing.assert_array_equal(array[key], values[key])


TYPES = ["bool", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", "M8[s]", "m8[10ms]", "S5", "U4"]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:.*Zarr V3 specification.*")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", [*TYPES, ">f4", "str"])
def test_types(dtype, zarr_format, tmp_path):
    numbers = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 99, (6, 5))
    values = numbers.astype("i8").astype(dtype) if dtype[0] in "Mm" else numbers.astype(dtype)
    array = zarr.create_array(tmp_path / "a.zarr", shape=(6, 5), dtype=dtype, chunks=(4, 2), zarr_format=zarr_format)
    array[:4] = values[:4]  # two rows keep the fill value
    found = zarr.open_array(tmp_path / "a.zarr")[...]
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        wanted = zarr.open_array(tmp_path / "a.zarr")[...]
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(found[:4], values[:4])


def test_what_squall_does_not_read_is_read_by_zarr(tmp_path, done_by):
    values = np.arange(60.0).reshape(6, 10)
    for store in (zarr.storage.MemoryStore(), zarr.storage.ZipStore(tmp_path / "a.zip", mode="w")):
        array = zarr.create_array(store, data=values, chunks=(4, 4))
        np.testing.assert_array_equal(array[1:, ::3], values[1:, ::3])
    lzma = zarr.create_array(tmp_path / "x.zarr", data=values, chunks=(4, 4), zarr_format=2, compressors=zarr_lzma())
    np.testing.assert_array_equal(lzma[...], values)
    texts = zarr.create_array(tmp_path / "t.zarr", shape=(3,), dtype="str")
    texts[...] = np.array(["a", "", "ü"])
    assert list(texts[...]) == ["a", "", "ü"]
    assert set(done_by) == {"zarr"}


def zarr_lzma():
    import numcodecs

    return numcodecs.LZMA()


def test_missing_chunks_are_filled_and_damaged_ones_told(tmp_path, done_by):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(10,), chunks=(3,), dtype="i4", fill_value=-7)
    array[3:6] = [1, 2, 3]
    assert list(array[...]) == [-7] * 3 + [1, 2, 3] + [-7] * 4
    chunk = tmp_path / "a.zarr" / "c" / "1"
    chunk.write_bytes(chunk.read_bytes()[:-3])
    with pytest.raises(squall.Error, match="c/1"):
        array[...]
    assert list(array[6:]) == [-7] * 4


def test_a_resized_array_is_read_to_its_end(tmp_path, done_by):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(4,), chunks=(3,), dtype="i4")
    array[...] = 1
    assert array[...].sum() == 4
    array.resize((100_000,))
    array[99_990:] = 2
    assert array[...].sum() == 24
    array.append(np.full(5, 3, "i4"))
    assert array[99_998:].tolist() == [2, 2, 3, 3, 3, 3, 3]
    assert done_by and set(done_by) == {"squall"}


def test_what_is_written_is_read_at_once(tmp_path):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(30,), chunks=(10,), dtype="i4")
    for i in range(30):
        array[i] = i
        assert list(array[: i + 1]) == list(range(i + 1))


def test_groups_threads_and_pickles(tmp_path, done_by):
    root = zarr.open_group(tmp_path / "g.zarr", mode="w")
    values = np.random.default_rng(2).random((50, 40))
    root.create_array("a/b", data=values, chunks=(7, 8))
    array = zarr.open_group(tmp_path / "g.zarr", mode="r")["a/b"]
    back = pickle.loads(pickle.dumps(array))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for found, row in zip(pool.map(lambda i: (array[i], back[i : i + 1]), range(50)), values, strict=True):
            np.testing.assert_array_equal(found[0], row)
            np.testing.assert_array_equal(found[1][0], row)
    assert set(done_by) == {"squall"}


def test_memory_of_the_callers(tmp_path):
    from zarr.core.buffer import default_buffer_prototype

    values, array = make(tmp_path / "a.zarr", "v3")
    out = np.zeros((13, 10), np.int32)[::-1]
    buffer = default_buffer_prototype().nd_buffer.from_numpy_array(out)
    array.get_basic_selection((slice(None), 4), out=buffer)
    np.testing.assert_array_equal(out, values[:, 4])


def test_nothing_but_the_zstd_level_matters(tmp_path, done_by):
    values, _ = make(tmp_path / "a.zarr", "v3")
    array = zarr.create_array(tmp_path / "b.zarr", data=values, chunks=CHUNKS, compressors=[ZstdCodec(level=9, checksum=True)])
    np.testing.assert_array_equal(array[...], values)
    assert set(done_by) == {"squall"}


@pytest.fixture
def written_by(monkeypatch):
    """A list that grows by "squall" or "zarr" with every batch that is written."""
    found, write = [], CodecPipeline._write

    async def watched(self, *args):
        native = await write(self, *args)
        found.append("squall" if native else "zarr")
        return native

    monkeypatch.setattr(CodecPipeline, "_write", watched)
    return found


def read_by_zarr(path):
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        return zarr.open_array(path, mode="r")[...]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_slices_are_written_by_squall(layout, tmp_path, written_by):
    values, array = make(tmp_path / "a.zarr", layout)
    np.testing.assert_array_equal(read_by_zarr(tmp_path / "a.zarr"), values)
    for i, key in enumerate(KEYS):
        new = np.arange(values[key].size, dtype=np.int32).reshape(values[key].shape) * 7 + i
        array[key], values[key] = new, new
        np.testing.assert_array_equal(read_by_zarr(tmp_path / "a.zarr"), values)
    array[2:9, 1] = 5
    values[2:9, 1] = 5
    array[...] = np.asfortranarray(values)[::-1]
    np.testing.assert_array_equal(read_by_zarr(tmp_path / "a.zarr"), values[::-1])
    assert set(written_by) == {"squall"}


@pytest.mark.parametrize("layout", ["v3", "sharded", "sharded far", "v2"])
def test_arrays_of_indices_are_written(layout, tmp_path, written_by):
    values, array = make(tmp_path / "a.zarr", layout)
    rows, columns = [12, 0, 5], [8, 1, 3]
    for indexer, key, plain in (
        (array.oindex, (rows, slice(None), [1, 2]), np.ix_(rows, range(9), [1, 2])),
        (array.oindex, (3, rows[1:], slice(1, 9, 3)), np.s_[3, rows[1:], 1:9:3]),
        (array.vindex, (rows, columns, [0, 4, 9]), (rows, columns, [0, 4, 9])),
        (array.vindex, values > 700, values > 700),
        (array, (slice(3), 2), (slice(3), 2)),
    ):
        values[plain] += 1
        indexer[key] = values[plain]
        np.testing.assert_array_equal(read_by_zarr(tmp_path / "a.zarr"), values)
        values[plain] = 5
        indexer[key] = 5
        np.testing.assert_array_equal(read_by_zarr(tmp_path / "a.zarr"), values)
        by = "zarr" if array.shards and isinstance(indexer, type(array.vindex)) else "squall"
        assert set(written_by) == {by}
        written_by.clear()


@st.composite
def index_keys(draw):
    """(kind, key for it): arrays of indices, in any order and doubled, masks, slices and integers."""
    if draw(st.booleans()):
        n = draw(st.integers(1, 9))
        return "vindex", tuple(draw(st.lists(st.integers(-length, length - 1), min_size=n, max_size=n)) for length in SHAPE)
    out = [slice(None)] * len(SHAPE)
    for d, n in enumerate(SHAPE):
        indices, mask = st.lists(st.integers(-n, n - 1), min_size=1, max_size=9), st.lists(st.booleans(), min_size=n, max_size=n)
        out[d] = draw(
            indices | mask.filter(any).map(np.array) | st.integers(0, n - 1) | st.builds(slice, st.integers(0, n - 1), st.just(n))
        )
    return "oindex", tuple(out)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(which=index_keys())
def test_any_arrays_of_indices(cube, which):
    kind, key = which
    _, array = cube
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        wanted = getattr(zarr.open_array(array.store_path.store.root), kind)[key]
    np.testing.assert_array_equal(getattr(array, kind)[key], wanted)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(which=index_keys())
@pytest.mark.parametrize("layout", ["v3", "sharded"])
def test_any_arrays_of_indices_are_written(layout, tmp_path_factory, which):
    kind, key = which
    values, array = make(tmp_path_factory.mktemp("w") / "a.zarr", layout)
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        plain = zarr.create_array({}, data=values, chunks=CHUNKS)  # to shards zarr-python 3.1.6 writes no orthogonal selections
        new = getattr(plain, kind)[key] * 7 + 1  # the same for an element that is selected twice: zarr-python has no order for these
        getattr(plain, kind)[key] = new
    getattr(array, kind)[key] = new
    np.testing.assert_array_equal(read_by_zarr(array.store_path.store.root), plain[...])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_chunks_that_are_written_whole_are_not_read(layout, tmp_path):
    """Also those at the edge: there is nothing in them that could be read."""
    values, array = make(tmp_path / "a.zarr", layout)
    for path in (tmp_path / "a.zarr").rglob("*"):
        if path.is_file() and not path.name.startswith((".z", "zarr")):
            path.write_bytes(b"damaged")
    array[...] = values
    np.testing.assert_array_equal(read_by_zarr(tmp_path / "a.zarr"), values)
    array.resize((16, 9, 20))
    array[13:], array[:13, :, 10:] = 3, 4
    values = np.pad(values, ((0, 3), (0, 0), (0, 10)), constant_values=4)
    values[13:] = 3
    np.testing.assert_array_equal(read_by_zarr(tmp_path / "a.zarr"), values)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(key=keys(), seed=st.integers(0, 9))
@pytest.mark.parametrize("layout", ["v3", "sharded"])
def test_any_box_is_written(layout, tmp_path_factory, key, seed):
    values, array = make(tmp_path_factory.mktemp("w") / "a.zarr", layout)
    new = np.random.default_rng(seed).integers(0, 99, values[key].shape, dtype=np.int32)
    array[key], values[key] = new, new
    np.testing.assert_array_equal(read_by_zarr(array.store_path.store.root), values)


def test_chunks_of_fill_values_are_written_where_zarr_is_told_to(tmp_path, written_by):
    for write_empty, count in ((False, 1), (True, 3)):
        array = zarr.create_array(
            tmp_path / f"{count}.zarr", shape=(6,), chunks=(2,), dtype="i4", fill_value=3, config={"write_empty_chunks": write_empty}
        )
        array[...] = [3, 3, 1, 3, 3, 3]
        assert len(list((tmp_path / f"{count}.zarr" / "c").iterdir())) == count
    assert set(written_by) == {"squall"}


def test_read_only_stores_are_not_written(tmp_path):
    values, _ = make(tmp_path / "a.zarr", "v3")
    with pytest.raises(ValueError, match="read.only"):
        zarr.open_array(tmp_path / "a.zarr", mode="r")[0] = 1
    np.testing.assert_array_equal(read_by_zarr(tmp_path / "a.zarr"), values)
