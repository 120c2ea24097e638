"""Regions of every type, written at random: zarr-python, which shares no code with squall, finds what numpy says is there."""

import random
import warnings

import numpy as np
import pytest
import squall
import zarr

warnings.filterwarnings("ignore", module="zarr")
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
TYPES += ["<M8[10ms]", "<m8[s]", "|S5", "<U4", "|V3", "string", "bytes"]
CODECS = [None, "none", "zstd:level=3", "gzip:level=1", "blosc:cname=lz4,clevel=5,shuffle=shuffle", "blosc:cname=zstd,shuffle=bitshuffle"]


def values_of(kind, shape, rng):
    """Values of a type, some of them equal to its fill value."""
    count = int(np.prod(shape))
    numbers = [rng.choice([0, 0, rng.randrange(120)]) for _ in range(count)]
    if kind == "string":
        made = np.array([("" if n == 0 else "ü" * (n % 7) + str(n)) for n in numbers] + [""], dtype=object)[:count]
    elif kind == "bytes":
        made = np.array([bytes([n]) * (n % 5) for n in numbers] + [b""], dtype=object)[:count]
    elif kind[1] in "SU" and kind[0] in "|<":
        made = np.array([str(n) if n else "" for n in numbers] + [""])[:count].astype(kind)
    elif kind == "|V3":
        made = np.array([bytes([n, 0, n]) for n in numbers] + [b"abc"], dtype=kind)[:count]
    else:
        made = np.array(numbers).astype("i8").astype(kind)
    return made.reshape(shape)


def whole(path, dtype):
    """All of an array, as zarr-python reads it."""
    return np.array(zarr.open_array(path, mode="r")[...], dtype)


def check(path, expected):
    assert expected.dtype in (object, zarr.open_array(path, mode="r").dtype)
    got = whole(path, expected.dtype)
    if expected.dtype == object:
        assert got.shape == expected.shape and got.reshape(-1).tolist() == expected.reshape(-1).tolist()
    else:
        np.testing.assert_array_equal(got, expected)


def random_slices(shape, rng):
    out = []
    for n in shape:
        start = rng.randrange(n)
        out.append(slice(start, rng.randrange(start, n) + 1, rng.choice([1, 1, 1, 2, 5])))
    return tuple(out)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("kind", TYPES)
def test_random_regions_of_every_type_are_what_zarr_reads(tmp_path, kind, zarr_format):
    rng = random.Random(f"{kind} {zarr_format}")
    for case in range(6):
        rank = rng.randrange(0, 4)
        shape = tuple(rng.randrange(1, 9) for _ in range(rank))
        chunks = tuple(rng.randrange(1, n + 3) for n in shape)
        shards = tuple(c * rng.randrange(1, 4) for c in chunks) if zarr_format == 3 and kind != "|V3" and rng.random() < 0.4 else None
        options = {"index_location": rng.choice(["start", "end"])} if shards else {"separator": rng.choice("/.")}
        if zarr_format == 2 and kind not in ("string", "bytes"):
            options["order"] = rng.choice("CF")
        path = tmp_path / f"{case}.zarr"
        sizes = {"shape": shape, "chunks": chunks, "shards": shards}
        dtype = {"string": str, "bytes": bytes}.get(kind, kind)
        array = squall.create_array(path, dtype=dtype, codecs=rng.choice(CODECS), zarr_format=zarr_format, **sizes, **options)
        expected = whole(path, object if kind in ("string", "bytes") else kind)
        for _ in range(4):
            slices = random_slices(shape, rng)
            part = values_of(kind, np.empty(shape)[slices].shape, rng)
            array[slices] = part
            expected[slices] = part
            check(path, expected)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("codecs", CODECS)
def test_tensorstore_reads_the_same_values(tmp_path, zarr_format, codecs):
    tensorstore = pytest.importorskip("tensorstore")
    rng = random.Random(f"{codecs} {zarr_format}")
    for kind in ("bool", "int16", "uint64", "float16", "float64", "complex64"):
        for sharded in (False, True) if zarr_format == 3 else (False,):
            path, expected = tmp_path / f"{kind} {sharded}.zarr", values_of(kind, (13, 7), rng)
            sizes = {"chunks": (4, 2), "shards": (8, 6) if sharded else None}
            array = squall.create_array(path, data=expected, codecs=codecs, zarr_format=zarr_format, **sizes)
            array[3:9, 1:4] = expected[3:9, 1:4]
            spec = {"driver": "zarr3" if zarr_format == 3 else "zarr", "kvstore": {"driver": "file", "path": str(path)}}
            np.testing.assert_array_equal(tensorstore.open(spec).result().read().result(), expected)
