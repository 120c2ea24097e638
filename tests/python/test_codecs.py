"""Codecs against numcodecs and zarr-python: what they encode we decode to the same bytes, and the other way round."""

import asyncio
import json
import random

import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs
from codec_request import Failed, describe
from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.core.dtype import parse_dtype


def numbers(dtype, shape, seed=0, small=False):
    """Values of the type, smooth with a little noise, some of them extreme."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype).newbyteorder("=")
    count = int(np.prod(shape))
    if dtype.kind == "b":
        values = rng.integers(0, 2, count)
    elif dtype.kind in "iu":
        bounds = (0, 50) if small else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        values = rng.integers(*bounds, count, dtype, endpoint=True)
    elif dtype.kind in "fc":
        values = 20 * np.sin(np.arange(count) / 50) + rng.normal(size=count)
        if not small and count > 3:
            values[:4] = [-0.0, np.inf, np.nan, 1e-7]
    else:
        return np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).reshape(shape)
    return values.astype(dtype).reshape(shape)


# ---- v2: numcodecs itself ----------------------------------------------------------------------------------------------------------

ALL = ["i1", "<i2", ">i2", "<i4", ">i4", "<i8", "u1", "<u2", ">u2", "<u4", "<u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"]
COMPRESSORS = [
    None,
    {"id": "zstd", "level": 3},
    {"id": "zstd", "level": -1, "checksum": True},
    {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    {"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2, "blocksize": 0},
    {"id": "blosc", "cname": "blosclz", "clevel": 9, "shuffle": -1, "blocksize": 1000},
    {"id": "blosc", "cname": "zlib", "clevel": 1, "shuffle": 0, "blocksize": 0},
    {"id": "blosc", "cname": "lz4hc", "clevel": 4, "shuffle": 1, "blocksize": 4096},
    {"id": "gzip", "level": 1},
    {"id": "zlib", "level": 6},
    {"id": "bz2", "level": 3},
    {"id": "lz4", "acceleration": 2},
    {"id": "crc32"},
    {"id": "crc32", "location": "end"},
    {"id": "adler32"},
    {"id": "crc32c"},
    {"id": "fletcher32"},
    {"id": "shuffle", "elementsize": 4},
    {"id": "shuffle", "elementsize": 1},
]


def by_numcodecs(array, order, codecs):
    """As zarr 2 encodes a chunk."""
    chunk = np.asarray(array, order=order)
    for codec in codecs:
        chunk = numcodecs.get_codec(dict(codec)).encode(chunk)
    return numcodecs.compat.ensure_bytes(chunk)


def undo_numcodecs(stored, codecs, dtype, shape, order):
    chunk = stored
    for codec in reversed(codecs):
        chunk = numcodecs.get_codec(dict(codec)).decode(chunk)
    return np.frombuffer(numcodecs.compat.ensure_bytes(chunk), dtype).reshape(shape, order=order)


def check_v2(codec_try, array, order, filters, compressor, deterministic=True):
    """numcodecs' bytes give what numcodecs makes of them; our bytes give numcodecs the same."""
    stored_dtype = array.dtype
    native = stored_dtype.newbyteorder("=")
    codecs = [*filters, *([compressor] if compressor else [])]
    request = describe(
        native,
        array.shape,
        filters=filters or None,
        compressor=compressor,
        big_endian=int(stored_dtype.byteorder == ">"),
        column_major=int(order == "F"),
        threads=2,
    )
    stored = by_numcodecs(array, order, codecs)
    back = undo_numcodecs(stored, codecs, stored_dtype, array.shape, order).astype(native, order="C")
    ours = codec_try(request, 0, stored, array.nbytes)
    assert ours == back.tobytes(), f"decode {codecs} of {stored_dtype} {order}"
    mine = codec_try(request, 1, array.astype(native, order="C").tobytes(), 4 * array.nbytes + 4096)
    again = undo_numcodecs(mine, codecs, stored_dtype, array.shape, order).astype(native, order="C")
    assert again.tobytes() == back.tobytes(), f"encode {codecs} of {stored_dtype} {order}"
    if deterministic:
        assert mine == stored, f"bytes of {codecs} of {stored_dtype} {order}"


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=lambda x: json.dumps(x))
def test_compressors_of_v2_are_numcodecs(codec_try, compressor):
    """All but deflate, where libdeflate has a way of its own, give the very bytes."""
    exact = not compressor or compressor["id"] not in ("gzip", "zlib") and compressor.get("cname") != "zlib"
    for seed, (dtype, shape) in enumerate([("<f4", (50, 60)), (">i2", (7, 300)), ("|u1", (4000,)), ("<c16", (8, 9)), ("|b1", (16,))]):
        for order in "CF":
            # zstd's own version decides on its bytes
            same = exact and (not compressor or "zstd" not in (compressor["id"], compressor.get("cname")))
            same = same and (not compressor or compressor["id"] not in ("blosc", "lz4"))
            check_v2(codec_try, numbers(dtype, shape, seed).astype(dtype), order, [], compressor, deterministic=same)


def test_arrays_of_any_type_and_order_are_numpys(codec_try):
    for dtype in [*ALL, "|b1", "<c8", ">c16", "|S7", "<U5", ">U5", "|V11", "<M8[ns]", ">m8[s]"]:
        for order in "CF":
            for shape in [(3, 4, 5), (17,), (1, 6), ()]:
                values = numbers(np.dtype(dtype), shape)
                if np.dtype(dtype).kind == "U":
                    values = np.frombuffer(np.arange(65, 65 + 5 * max(1, values.size), dtype="<u4").tobytes(), "<U5").reshape(shape)
                check_v2(codec_try, values.astype(dtype), order, [], {"id": "lz4"})


def test_delta_is_numcodecs(codec_try):
    for seed, dtype in enumerate(ALL):
        for order in "CF":
            array = numbers(dtype, (30, 41), seed, small=np.dtype(dtype).kind == "f").astype(dtype)  # NaNs' bits are nobody's
            check_v2(codec_try, array, order, [{"id": "delta", "dtype": dtype}], {"id": "crc32c"})
    for dtype, astype in [("<i4", "<i2"), ("<i8", ">i4"), ("<u2", "<i2"), ("<f8", "<f4"), ("<f4", "<i4"), ("<i2", "<f8"), (">u4", "u1")]:
        array = numbers(dtype, (1000,), small=True).astype(dtype)
        check_v2(codec_try, array, "C", [{"id": "delta", "dtype": dtype, "astype": astype}], None)
    times = np.arange("2020-01-01", "2020-03-01", dtype="M8[h]")
    check_v2(codec_try, times, "C", [{"id": "delta", "dtype": "<i8"}], None)


def test_fixedscaleoffset_is_numcodecs(codec_try):
    for dtype in ["<f2", ">f4", "<f4", "<f8", "<i2", "<i4", ">i8", "u1", "<u2"]:
        for offset, scale in [(0, 1), (0, 10), (5, 0.25), (0.5, 3), (-3.75, 100.0), (1, 2)]:
            if np.dtype(dtype).kind == "u" and offset < 0 and isinstance(offset, int):
                continue
            for astype in [dtype, "<i2", "<i4", ">f4", "<f8"]:
                array = numbers(dtype, (9, 77), small=True).astype(dtype)
                if np.dtype(dtype).kind in "iu":
                    array = (array + np.array(5, dtype)).astype(dtype)
                filters = [{"id": "fixedscaleoffset", "offset": offset, "scale": scale, "dtype": dtype, "astype": astype}]
                check_v2(codec_try, array, "C", filters, None)


def test_quantize_is_numcodecs(codec_try):
    for dtype in ["<f2", "<f4", ">f8"]:
        for digits in [0, 1, 2, 3, 5, -1]:
            for astype in {dtype, "<f4", "<f8"}:
                if np.dtype(dtype) == "f2" and digits > 3:
                    continue
                filters = [{"id": "quantize", "digits": digits, "dtype": dtype, "astype": astype}]
                check_v2(codec_try, numbers(dtype, (800,), small=True).astype(dtype), "C", filters, {"id": "zlib"}, deterministic=False)


def test_astype_is_numcodecs(codec_try):
    for decoded in [*ALL, "|b1"]:
        for encoded in [*ALL, "|b1"]:
            filters = [{"id": "astype", "encode_dtype": encoded, "decode_dtype": decoded}]
            array = numbers(decoded, (300,), small=True)
            if array.dtype.kind == "f":
                array = np.abs(array)
            check_v2(codec_try, array.astype(decoded), "C", filters, None)


def test_every_half_and_what_lies_between_is_numpys(codec_try):
    """float64 → float16 in one rounding, each half and the ties between them."""
    halves = np.arange(65536, dtype="u2").view("f2").astype("f8")
    halves = halves[np.isfinite(halves)]
    halves.sort()
    between = (halves[1:] + halves[:-1]) / 2
    near = np.nextafter(between, np.inf), np.nextafter(between, -np.inf)
    values = np.concatenate([halves, between, *near, [65519.9, 65520, 1e300, -np.inf, np.nan, 5e-324]])
    with np.errstate(over="ignore"):
        check_v2(codec_try, values, "C", [{"id": "astype", "encode_dtype": "<f2", "decode_dtype": "<f8"}], None)
        singles = values.astype("f4")
        check_v2(codec_try, singles, "C", [{"id": "astype", "encode_dtype": "<f2", "decode_dtype": "<f4"}], None)


def test_bitround_and_packbits_are_numcodecs(codec_try):
    for dtype, most in [("<f2", 10), ("<f4", 23), (">f4", 23), ("<f8", 52)]:
        for keepbits in [0, 1, 7, most - 1, most]:
            array = numbers(dtype, (900,), keepbits, small=True).astype("=" + dtype[1:])
            filters = [{"id": "bitround", "keepbits": keepbits}]
            expected = numcodecs.get_codec(dict(filters[0])).encode(array).tobytes()
            request = describe(array.dtype, array.shape, filters=filters, big_endian=int(dtype[0] == ">"))
            mine = codec_try(request, 1, array.tobytes(), array.nbytes)
            assert np.frombuffer(mine, dtype).astype(array.dtype).tobytes() == expected
            assert codec_try(request, 0, mine, array.nbytes) == expected
    for count in [1, 7, 8, 9, 64, 1001]:
        check_v2(codec_try, numbers("|b1", (count,)), "C", [{"id": "packbits"}], {"id": "bz2"})


def test_filters_follow_one_another(codec_try):
    filters = [
        {"id": "fixedscaleoffset", "offset": 10, "scale": 100, "dtype": "<f8", "astype": "<i4"},
        {"id": "delta", "dtype": "<i4"},
        {"id": "shuffle", "elementsize": 4},
        {"id": "adler32"},
    ]
    for order in "CF":
        check_v2(codec_try, numbers("<f8", (40, 50), small=True), order, filters, {"id": "bz2", "level": 9})


def test_what_does_not_fit_is_refused_by_name(codec_try):
    request = describe("f4", (4,))
    for filters, part in [
        ([{"id": "delta", "dtype": "<f8"}], 'codec delta: unsupported "dtype" <f8 for elements of float32'),
        ([{"id": "delta", "dtype": ">f4"}], 'unsupported "dtype" >f4'),
        ([{"id": "zlib"}, {"id": "delta", "dtype": "<f4"}], "unsupported codec delta behind one that makes bytes"),
        ([{"id": "categorize"}], "unsupported codec categorize"),
        ([{"id": "lzma"}], "unsupported codec lzma"),
        ([{"id": "pcodec"}], "unsupported codec pcodec"),
        ([{"id": "zfpy"}], "unsupported codec zfpy"),
        ([{"id": "pickle"}], "unsupported codec pickle"),
        ([{"id": "packbits"}], "codec packbits: unsupported on float32"),
        ([{"id": "bitround", "keepbits": 24}], '"keepbits" is 24, more than the 23'),
        ([{"id": "bitround"}], 'its "keepbits" is missing'),
        ([{"id": "fixedscaleoffset", "offset": 1, "dtype": "<f4"}], 'its "scale" is no number'),
    ]:
        with pytest.raises(Failed, match=part.replace("(", r"\(")):
            codec_try(request | {"filters": filters}, 0, bytes(16), 16)


# ---- v3: zarr-python -----------------------------------------------------------------------------------------------------------------


def pipeline(codecs, dtype, shape, fill):
    spec = ArraySpec(
        shape=tuple(shape),
        dtype=parse_dtype(np.dtype(dtype), zarr_format=3),
        fill_value=np.asarray(fill, dtype)[()],
        config=ArrayConfig(order="C", write_empty_chunks=False),
        prototype=default_buffer_prototype(),
    )
    bound = []
    for codec in codecs:
        name = codec if isinstance(codec, str) else codec["name"]
        made = zarr.registry.get_codec_class(name).from_dict({"name": codec} if isinstance(codec, str) else codec)
        bound.append(made)
    evolved, at = [], spec
    for codec in bound:
        codec = codec.evolve_from_array_spec(at)
        evolved.append(codec)
        at = codec.resolve_metadata(at)
    return BatchedCodecPipeline.from_codecs(evolved), spec


def by_zarr(array, codecs, fill):
    pipe, spec = pipeline(codecs, array.dtype, array.shape, fill)
    buffer = spec.prototype.nd_buffer.from_ndarray_like(array)
    return list(asyncio.run(_all(pipe.encode([(buffer, spec)]))))[0]


def undo_zarr(stored, codecs, dtype, shape, fill):
    pipe, spec = pipeline(codecs, dtype, shape, fill)
    buffer = spec.prototype.buffer.from_bytes(stored)
    return list(asyncio.run(_all(pipe.decode([(buffer, spec)]))))[0].as_numpy_array().astype(dtype)


async def _all(awaitable):
    return await awaitable


def check_v3(codec_try, array, codecs, fill=0):
    request = describe(array.dtype, array.shape, fill, codecs=codecs, threads=3)
    stored = by_zarr(array, codecs, fill)
    if stored is not None:
        stored = stored.to_bytes()
        expected = np.ascontiguousarray(undo_zarr(stored, codecs, array.dtype, array.shape, fill)).tobytes()
        assert codec_try(request, 0, stored, array.nbytes) == expected, f"decode {codecs}"
    else:
        expected = array.tobytes()
    mine = codec_try(request, 1, array.tobytes(), 4 * array.nbytes + 65536)
    again = undo_zarr(mine, codecs, array.dtype, array.shape, fill)
    assert np.ascontiguousarray(again).tobytes() == expected, f"encode {codecs}"
    return stored, mine


def endian(order="little"):
    return {"name": "bytes", "configuration": {"endian": order}}


def configured(name, **configuration):
    return {"name": name, "configuration": configuration}


INDEX = [endian(), {"name": "crc32c"}]
BYTES_TO_BYTES = [
    {"name": "crc32c"},
    configured("gzip", level=1),
    configured("zstd", level=0, checksum=True),
    configured("blosc", cname="lz4", clevel=5, shuffle="bitshuffle", typesize=4, blocksize=0),
    configured("blosc", cname="zstd", clevel=3, shuffle="shuffle", typesize=8, blocksize=0),
    configured("numcodecs.bz2", level=2),
    configured("numcodecs.lz4", acceleration=1),
    configured("numcodecs.zlib", level=2),
    configured("numcodecs.zstd", level=2),
    configured("numcodecs.gzip", level=2),
    configured("numcodecs.blosc", cname="lz4", clevel=5, shuffle=1, blocksize=0),
    configured("numcodecs.shuffle", elementsize=4),
    configured("numcodecs.crc32"),
    configured("numcodecs.crc32", location="end"),
    configured("numcodecs.crc32c"),
    configured("numcodecs.adler32"),
    configured("numcodecs.fletcher32"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("codec", BYTES_TO_BYTES, ids=lambda x: json.dumps(x))
def test_bytes_to_bytes_codecs_of_v3_are_zarrs(codec_try, codec):
    for dtype, order in [("f4", "little"), ("i8", "big"), ("c8", "big"), ("u1", "little")]:
        array = numbers(dtype, (6, 10, 8))
        check_v3(codec_try, array, [endian(order), codec])
        check_v3(codec_try, array, [configured("transpose", order=[2, 0, 1]), endian(order), codec, {"name": "crc32c"}])


@pytest.mark.filterwarnings("ignore")
def test_filters_of_v3_are_zarrs(codec_try):
    array = numbers("f4", (12, 20), small=True)
    whole = numbers("i4", (12, 20), small=True)
    for values, filters in [
        (whole, [configured("numcodecs.delta", dtype="<i4")]),
        (whole, [configured("numcodecs.delta", dtype="int32", astype="int16")]),
        (array, [configured("numcodecs.bitround", keepbits=9)]),
        (array, [configured("numcodecs.fixedscaleoffset", offset=1, scale=50, dtype="<f4", astype="<i2")]),
        (array, [configured("numcodecs.fixedscaleoffset", offset=1, scale=50, astype="int16")]),
        (array, [configured("numcodecs.quantize", digits=2, dtype="<f4")]),
        (array, [configured("numcodecs.astype", encode_dtype="float64", decode_dtype="float32")]),
        (array > 0, [configured("numcodecs.packbits")]),
        (array, [configured("transpose", order=[1, 0]), configured("numcodecs.quantize", digits=1, dtype="<f4")]),
    ]:
        check_v3(codec_try, values, [*filters, endian(), configured("zstd", level=1)])


@pytest.mark.filterwarnings("ignore")
def test_shards_are_zarrs(codec_try):
    rng = random.Random(3)
    for case in range(60):
        rank = rng.randint(1, 4)
        inner = [rng.randint(1, 4) for _ in range(rank)]
        shape = [n * rng.randint(1, 3) for n in inner]
        codecs = rng.choice(
            [[endian()], [endian("big"), configured("zstd", level=1)], [endian(), configured("gzip", level=1), {"name": "crc32c"}]]
        )
        if rng.random() < 0.3:
            codecs = [configured("transpose", order=rng.sample(range(rank), rank)), *codecs]
        if rng.random() < 0.3:
            nested = [rng.choice([d for d in range(1, n + 1) if n % d == 0]) for n in inner]
            codecs = [configured("sharding_indexed", chunk_shape=nested, codecs=codecs, index_codecs=INDEX, index_location="start")]
        index = rng.choice([INDEX, [endian("big")]])
        where = rng.choice(["start", "end"])
        sharding = configured("sharding_indexed", chunk_shape=inner, codecs=codecs, index_codecs=index, index_location=where)
        dtype = rng.choice(["i2", "f4", "f8", "c16", "u1"])
        fill = rng.choice([0, 7])
        array = numbers(dtype, shape, case, small=True)
        for _ in range(3):  # a few inner chunks of nothing but the fill value
            array[tuple(slice(k * i, (k + 1) * i) for i, n in zip(inner, shape, strict=True) for k in [rng.randrange(n // i)])] = fill
        chain = [sharding] if rng.random() < 0.8 else [sharding, configured("zstd", level=3)]
        check_v3(codec_try, array, chain, fill)


# ---- zarr-extensions ---------------------------------------------------------------------------------------------------------------


def test_cast_value_is_cast_value_rs(codec_try):
    """The library that zarr-python casts with; it refuses infinities under "clamp", which the specification clamps."""
    cast_array = pytest.importorskip("cast_value_rs").cast_array
    types = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
    rng = np.random.default_rng(5)
    for source in types:
        for target in types:
            for rounding in ["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"]:
                for mode in ["error", "clamp", *(["wrap"] if target[0] in "iu" else [])]:
                    values = (rng.normal(size=40) * rng.choice([1, 300, 1e6])).astype("f8")
                    if source[0] in "iu":
                        values = np.frombuffer(rng.bytes(40 * 8), source)[:40]
                    with np.errstate(over="ignore"):
                        values = values.astype(source)
                    values = values[np.isfinite(values)]
                    for single in values if mode == "error" else [values]:
                        array = np.atleast_1d(single).astype(source)
                        settings = {"data_type": np.dtype(target).name, "rounding": rounding, "out_of_range": mode}
                        request = describe(source, array.shape, codecs=[configured("cast_value", **settings), endian()])
                        modes = {"out_of_range_mode": None if mode == "error" else mode, "scalar_map_entries": None}
                        try:
                            expected = cast_array(array, target_dtype=np.dtype(target), rounding_mode=rounding, **modes).tobytes()
                        except ValueError:
                            expected = None
                        try:
                            mine = codec_try(request, 1, array.tobytes(), 1000)
                        except Failed:
                            mine = None
                        assert mine == expected, f"{source} {array} to {target} {rounding} {mode}"
