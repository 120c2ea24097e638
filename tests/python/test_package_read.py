"""The Python package reads: what numpy selects from an array in memory, squall selects from the same array in a store."""

import math
import os

import numpy as np
import pytest
import squall
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SHAPE, CHUNKS = (7, 10, 9), (3, 4, 9)
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def stored(folder, values, **kwargs):
    array = zarr.create_array(folder, shape=values.shape, dtype=values.dtype, **kwargs)
    array[...] = values
    return squall.open_array(folder)


@pytest.fixture(scope="module")
def cube(tmp_path_factory):
    values = np.random.default_rng(1).integers(0, 1 << 30, SHAPE, dtype=np.int32)
    return values, stored(tmp_path_factory.mktemp("cube") / "a.zarr", values, chunks=CHUNKS)


def same(found, wanted):
    assert type(found) is type(wanted)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)


def integers(length):
    return st.integers(-length, length - 1)


def slices(length):
    bound = st.none() | st.integers(-2 * length, 2 * length)
    return st.builds(slice, bound, bound, st.none() | st.integers(-length - 1, length + 1).filter(bool))


@st.composite
def basic_keys(draw):
    key = [draw(slices(n) | integers(n)) for n in SHAPE[: draw(st.integers(0, 3))]]
    if draw(st.booleans()):
        cut = draw(st.integers(0, len(key)))
        tail = [draw(slices(n) | integers(n)) for n in SHAPE[len(SHAPE) - (len(key) - cut) :]]
        key = [*key[:cut], ..., *tail]
    return tuple(key)


def index_arrays(length, shape):
    return st.lists(integers(length), min_size=math.prod(shape), max_size=math.prod(shape)).map(
        lambda x: np.array(x, dtype=np.int64).reshape(shape)
    )


def masks(length):
    return st.lists(st.booleans(), min_size=length, max_size=length).map(np.array)


@st.composite
def advanced_keys(draw):
    """Arrays that broadcast together, among slices and integers; or a mask of one to three dimensions."""
    kind = draw(st.sampled_from(["arrays", "mask"]))
    if kind == "mask":
        first, count = draw(st.sampled_from([(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (2, 1)]))
        shape = SHAPE[first : first + count]
        mask = np.random.default_rng(draw(st.integers(0, 99))).random(shape) < draw(st.sampled_from([0.0, 0.1, 0.6]))
        rest = [draw(slices(n) | integers(n)) for n in SHAPE[first + count :]]
        return (*(draw(slices(n)) for n in SHAPE[:first]), mask, *rest)
    shapes = draw(st.sampled_from([[(4,), (4,), (1,)], [(2, 3), (3,), ()], [(3, 1), (1, 4), (3, 4)], [(0,), (1,), ()], [(5,), (), ()]]))
    key = [draw(index_arrays(n, s) | slices(n) | integers(n)) for n, s in zip(SHAPE, draw(st.permutations(shapes)), strict=True)]
    at = draw(st.integers(0, 2))
    key[at] = draw(index_arrays(SHAPE[at], (1,)))
    return tuple(key)


@QUICK
@given(basic_keys())
def test_basic_selections_are_numpys(cube, key):
    values, a = cube
    same(a[key], values[key])


@QUICK
@given(advanced_keys())
def test_advanced_selections_are_numpys(cube, key):
    values, a = cube
    same(a[key], values[key])


@QUICK
@given(
    st.tuples(*(slices(n) | integers(n) | index_arrays(n, (3,)) | index_arrays(n, (0,)) | st.just(np.arange(n) % 3 == 1) for n in SHAPE))
)
def test_oindex_takes_each_dimension_by_itself(cube, key):
    values, a = cube
    wanted = values
    for d in reversed(range(len(SHAPE))):
        index = key[d].nonzero()[0] if isinstance(key[d], np.ndarray) and key[d].dtype == bool else key[d]
        wanted = wanted[(slice(None),) * d + (index,)]
    found = a.oindex[key]
    assert found.shape == np.shape(wanted)
    np.testing.assert_array_equal(found, wanted)


@QUICK
@given(st.tuples(*(index_arrays(n, (2, 3)) | index_arrays(n, (3,)) | integers(n) for n in SHAPE)))
def test_vindex_takes_points(cube, key):
    values, a = cube
    np.testing.assert_array_equal(a.vindex[key], values[key])


def test_points_far_apart_are_read_by_chunk(tmp_path, monkeypatch):
    """As with an array too large to be read around them, nor in one go."""
    monkeypatch.setattr(squall._select, "ONE_BOX_BYTES", 0)
    monkeypatch.setattr(squall._select, "TOGETHER_BYTES", 20000)
    monkeypatch.setattr(squall._select, "TOGETHER_BOXES", 4)
    rng = np.random.default_rng(3)
    values = rng.random((40, 50, 6))
    a = stored(tmp_path / "a.zarr", values, chunks=(7, 8, 6))
    y, x = rng.integers(-40, 40, 30), rng.integers(-50, 50, (2, 30))
    same(a[y, x], values[y, x])
    same(a[y, :, x[0] % 6], values[y, :, x[0] % 6])
    same(a[y], values[y])
    same(a.oindex[y, x[1], ::-2], values[np.ix_(y, x[1])][..., ::-2])
    mask = values > 0.97
    same(a[mask], values[mask])
    texts = np.array([f"{i}" for i in range(2000)], object).reshape(40, 50)
    t = squall.create_array(tmp_path / "t.zarr", data=texts, dtype=str, chunks=(7, 8))
    assert t[y, x].tolist() == texts[y, x].tolist()
    for chunk in (tmp_path / "a.zarr/c").rglob("0"):
        if chunk.is_file():
            chunk.write_bytes(chunk.read_bytes()[:-1])
    with pytest.raises(squall.Error, match=r"chunk \d/\d/0"):
        a[y, x]


def test_many_boxes_are_each_what_their_key_gives(cube):
    values, a = cube
    keys = [np.s_[0], np.s_[::-2, 3, 1:5], np.s_[...], np.s_[5:5], np.s_[6, 9, 8]]
    for key, box in zip(keys, a._read_boxes(keys), strict=True):
        same(box[()], values[key])
    for wrong, error in ((keys[0], TypeError), ([[1, 2]], TypeError), ([np.s_[0], 99], IndexError)):
        with pytest.raises(error):
            a._read_boxes(wrong)


@pytest.mark.parametrize("shuffle", ["noshuffle", "shuffle", "bitshuffle"])
@pytest.mark.parametrize("cname", ["zstd", "lz4", "blosclz"])
def test_few_elements_of_a_large_blosc_chunk(cname, shuffle, tmp_path):
    """What is kept of it for the next few elements does not outlive it."""
    rng = np.random.default_rng(8)
    values = rng.integers(0, 1 << 17, (50, 60, 70), dtype=np.int32)
    codec = zarr.codecs.BloscCodec(cname=cname, shuffle=shuffle, typesize=4, blocksize=50000)
    a = stored(tmp_path / "a.zarr", values, chunks=(50, 60, 60), compressors=codec)
    file = tmp_path / "a.zarr" / "c" / "0" / "0" / "0"
    assert file.stat().st_size > 1 << 18
    keys = [
        np.s_[:, 7, 59],
        np.s_[::-3, 59, 0:5],
        np.s_[:, :, 33],
        np.s_[49, 59, 69],
        np.s_[:],
        np.s_[:, 31, 31:33],
        np.s_[5:40:9, ::13, 1:60:17],
    ]
    for mtime, change in enumerate((0, 1)):
        values += change
        zarr.open_array(tmp_path / "a.zarr")[:] = values
        os.utime(file, (mtime, mtime))
        for key in keys + keys[::-1]:
            same(a[key], values[key])
    file.write_bytes(file.read_bytes()[:-1])
    for key in keys:
        if key != keys[3]:
            with pytest.raises(squall.Error, match=r"^array a.zarr, chunk 0/0/0: \S*/c/0/0/0: blosc: .*truncated") as caught:
                a[key]
            assert str(caught.value).count("c/0/0/0") == 1


KEYS = [(1, 2), (1, ...), (..., 2), ..., (), slice(0, 0), (slice(2), 2), [1, 0], (np.array(1), 0)]


@pytest.mark.parametrize("key", [*KEYS, np.int64(1), np.uint8(1), np.array([True, False]), (np.array(1), [1, 0])])
def test_results_have_numpys_types(key, tmp_path):
    values = np.arange(6.0).reshape(2, 3)
    same(stored(tmp_path / "a.zarr", values, chunks=(2, 2))[key], values[key])


@pytest.mark.parametrize("key", [(), ...])
def test_an_array_without_dimensions(key, tmp_path):
    values = np.array(2.5)
    a = stored(tmp_path / "a.zarr", values)
    same(a[key], values[key])
    assert (a.shape, a.chunks, a.size, float(a)) == ((), (), 1, 2.5)


@pytest.mark.parametrize(
    "key, error, words",
    [
        (7, IndexError, "index 7 is out of bounds for axis 0 with size 7"),
        (-8, IndexError, "index -8 is out of bounds for axis 0 with size 7"),
        ((0, 0, 0, 0), IndexError, "array is 3-dimensional, but 4 were indexed"),
        ((..., ...), IndexError, "single ellipsis"),
        (None, IndexError, "newaxis"),
        ((0, None), IndexError, "newaxis"),
        (1.5, IndexError, "only integers, slices"),
        ("t2m", IndexError, "only integers, slices"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        (slice(0.5, 2), TypeError, "slice indices must be integers"),
        ([0.5, 1], IndexError, "integer \\(or boolean\\) type"),
        ([0, 9], IndexError, "index 9 is out of bounds for axis 0 with size 7"),
        (([0, 1], [0, 1, 2]), IndexError, "could not be broadcast together"),
        (np.ones(8, bool), IndexError, "size of axis is 7 but size of corresponding boolean axis is 8"),
        (True, IndexError, "True or False"),
        (1 << 70, IndexError, "cannot fit"),
    ],
)
def test_keys_that_select_nothing_are_refused(cube, key, error, words):
    values, a = cube
    with pytest.raises(error, match=words):
        a[key]


TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_of_every_type(dtype, zarr_format, tmp_path):
    values = np.random.default_rng(2).integers(0, 100, (5, 4)).astype(dtype)
    a = stored(tmp_path / "a.zarr", values, chunks=(2, 3), zarr_format=zarr_format, fill_value=values[0, 0])
    same(a[...], values)
    assert a.dtype == values.dtype and a.fill_value == values[0, 0] and a.fill_value.dtype == values.dtype
    assert (a.nbytes, a.itemsize, a.ndim, len(a)) == (values.nbytes, values.itemsize, 2, 5)


def test_texts_are_python_objects(tmp_path):
    values = np.array([["", "ü", "long " * 9], ["a", "b", "c"]], dtype=object)
    array = zarr.create_array(tmp_path / "a.zarr", shape=values.shape, dtype="str", chunks=(1, 2))
    array[...] = values
    a = squall.open_array(tmp_path / "a.zarr")
    same(a[...], values)
    same(a[::-1, ::-2], values[::-1, ::-2])
    assert a[0, 1] == "ü" and type(a[0, 1]) is str
    same(a[[1, 0], 1], values[[1, 0], 1])


def test_read_into_memory_that_is_there(cube):
    values, a = cube
    out = np.empty((3, 10, 9), np.int32)
    assert a.read(slice(0, 3), out=out) is out
    np.testing.assert_array_equal(out, values[:3])
    wide = np.zeros((7, 20, 18), np.int32)
    a.read(np.s_[:, ::-1, :], out=wide[::-1, ::2, 1::2])  # any strides, backwards too
    np.testing.assert_array_equal(wide[::-1, ::2, 1::2], values[:, ::-1])
    assert not wide[:, 1::2].any() and not wide[..., ::2].any()
    raw = bytearray(10 * 9 * 4)
    a.read(2, out=memoryview(raw).cast("i", (10, 9)))
    np.testing.assert_array_equal(np.frombuffer(raw, np.int32).reshape(10, 9), values[2])
    a.read([4, 1], out=out[:2])
    np.testing.assert_array_equal(out[:2], values[[4, 1]])


def test_memory_that_does_not_fit_is_refused(cube):
    _, a = cube
    with pytest.raises(ValueError, match=r"out has shape \(3,\), but the selection \(10, 9\)"):
        a.read(0, out=np.empty(3, np.int32))
    with pytest.raises(TypeError, match="out holds float32, but array a.zarr int32"):
        a.read(0, out=np.empty((10, 9), np.float32))
    with pytest.raises(ValueError, match="cannot be written"):
        a.read(0, out=np.frombuffer(bytes(360), np.int32).reshape(10, 9))
    with pytest.raises(TypeError, match="neither a buffer nor DLPack"):
        a.read(0, out=[1])


def test_numpy_and_dlpack_take_the_whole(cube):
    values, a = cube
    same(np.asarray(a), values)
    same(np.asarray(a, dtype="f8"), values.astype("f8"))
    same(np.from_dlpack(a), values)
    same(np.stack(list(a)), values)
    assert a.__dlpack_device__() == (1, 0)
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(a, copy=False)


def test_a_large_result_outlives_its_array_and_its_memory_comes_back(tmp_path):
    values = np.random.default_rng(3).random((64, 64, 128))
    array = stored(tmp_path / "a.zarr", values, chunks=(16, 64, 128))
    address = None
    for _ in range(3):
        result = array[...]
        assert result.flags.writeable and result.ctypes.data % 64 == 0
        assert address in (None, result.ctypes.data)
        address = result.ctypes.data
        del result
    result = squall.open_array(tmp_path / "a.zarr")[...]
    part = result[3]
    del array, result
    np.testing.assert_array_equal(part, values[3])
