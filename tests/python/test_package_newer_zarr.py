"""What only newer zarr-python writes (3.4 and later): rectilinear grids, and structures by v3's own name."""

import random

import numpy as np
import pytest
import squall
import zarr

if tuple(map(int, zarr.__version__.split(".")[:2])) < (3, 4):
    pytest.skip(f"zarr-python {zarr.__version__} writes neither rectilinear grids nor struct", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore")


def random_edges(rng, length):
    """Lengths of chunks along a dimension; sometimes one for all."""
    if rng.random() < 0.3:
        return rng.randint(1, 6)
    edges = []
    while sum(edges) < length:
        edges.append(rng.randint(1, min(5, length - sum(edges))))
    return edges


@pytest.mark.parametrize("number", range(40))
def test_rectilinear_grids_read_equal(tmp_path, number):
    rng = random.Random(number)
    shape = tuple(rng.randint(1, 14) for _ in range(rng.randint(1, 3)))
    chunks = [random_edges(rng, n) for n in shape]
    chunks[0] = chunks[0] if isinstance(chunks[0], list) else [shape[0]]
    transposed = {"filters": [zarr.codecs.TransposeCodec(order=tuple(reversed(range(len(shape)))))]} if rng.random() < 0.5 else {}
    with zarr.config.set({"array.rectilinear_chunks": True}):
        wanted = zarr.create_array(tmp_path / "a.zarr", shape=shape, chunks=tuple(chunks), dtype="i4", fill_value=7, **transposed)
        written = tuple(slice(0, n if rng.random() < 0.8 else n // 2) for n in shape)  # the chunks behind are missing
        wanted[written] = np.random.default_rng(number).integers(0, 1000, shape)[written]
        values = wanted[...]
    found = squall.open_array(tmp_path / "a.zarr")
    assert found.unsupported is None and np.array_equal(found[...], values), chunks
    for _ in range(5):
        key = tuple(slice(rng.randint(0, n - 1), None, rng.choice([1, 2, 3])) for n in shape)
        assert np.array_equal(found[key], values[key]), (chunks, key)


def test_shards_of_a_rectilinear_grid_read_equal(tmp_path):
    with zarr.config.set({"array.rectilinear_chunks": True}):
        zarr.create_array(tmp_path / "a.zarr", shape=(10,), shards=([4, 6],), chunks=(2,), dtype="i4")[:] = np.arange(10)
    assert squall.open_array(tmp_path / "a.zarr")[...].tolist() == list(range(10))


@pytest.mark.parametrize("number", range(40))
def test_rectilinear_grids_of_ours_read_equal(tmp_path, number):
    rng, numbers = random.Random(number), np.random.default_rng(number)
    shape = tuple(rng.randint(1, 14) for _ in range(rng.randint(1, 3)))
    chunks = [random_edges(rng, n) for n in shape]
    chunks[0] = chunks[0] if isinstance(chunks[0], list) else [shape[0]]
    how = rng.choice([{}, {"codecs": "none"}, {"chunks": (1,) * len(shape), "shards": chunks}])
    array = squall.create_array(tmp_path / "a.zarr", shape=shape, dtype="i4", fill_value=7, **({"chunks": chunks} | how))
    values = np.full(shape, 7, "i4")
    for _ in range(6):
        key = tuple(slice(rng.randint(0, n - 1), None, rng.choice([1, 1, 2])) for n in array.shape)
        values[key] = array[key] = numbers.integers(0, 1000, values[key].shape)
        with zarr.config.set({"array.rectilinear_chunks": True}):
            theirs = zarr.open_array(tmp_path / "a.zarr")
            assert np.array_equal(theirs[...], values) and np.array_equal(array[...], values), (chunks, key)
            if rng.random() < 0.5:  # grow or shrink, by either; what both hold stays
                shape = tuple(max(1, n + rng.randint(-3, 6)) for n in array.shape)
                kept = tuple(slice(0, min(a, b)) for a, b in zip(shape, array.shape, strict=True))
                if rng.random() < 0.5:
                    array.resize(shape)
                else:
                    theirs.resize(shape)
                    array = squall.open_array(tmp_path / "a.zarr", mode="r+")
                found = zarr.open_array(tmp_path / "a.zarr")[...]
                assert found.shape == shape and np.array_equal(found[kept], values[kept]) and np.array_equal(array[...], found)
                values = found


def test_grids_grow_as_zarr_pythons(tmp_path):
    with zarr.config.set({"array.rectilinear_chunks": True}):
        theirs = zarr.create_array(tmp_path / "theirs.zarr", shape=(35, 6), chunks=[[10, 20, 5], 3], dtype="i4")
        ours = squall.create_array(tmp_path / "ours.zarr", shape=(35, 6), chunks=[[10, 20, 5], 3], dtype="i4")
        for shape in ((40, 6), (12, 6), (45, 9), (30, 1), (61, 6)):
            theirs.resize(shape)
            ours.resize(*shape)
            assert zarr.open_array(ours.path).read_chunk_sizes == theirs.read_chunk_sizes


@pytest.mark.parametrize("endian", ["little", "big"])
def test_structures_by_v3s_own_name(tmp_path, endian):
    dtype = np.dtype([("a", "<i4"), ("p", [("x", "<f4"), ("t", "<M8[ms]")]), ("s", "S3")])
    fill = np.array((1, (2, "NaT"), b"x"), dtype)[()]
    options = dict(shape=(4,), chunks=(2,), dtype=dtype, fill_value=fill, serializer=zarr.codecs.BytesCodec(endian=endian))
    wanted = zarr.create_array(tmp_path / "a.zarr", **options)
    wanted[:2] = np.array([(258, (1.5, 5), b"ab")] * 2, dtype)
    found = squall.open_array(tmp_path / "a.zarr")
    assert found.dtype["a"] == ("<i4" if endian == "little" else ">i4")
    assert found[...].astype(dtype).tobytes() == wanted[...].tobytes()
