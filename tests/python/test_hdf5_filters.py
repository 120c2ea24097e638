"""HDF5's filters against the libraries that wrote the chunks: the stored bytes of each chunk give the values that h5py reads."""

import json
import zlib

import h5py
import hdf5plugin  # noqa: F401 (registers the filters that h5py does not bring itself)
import numpy as np
import pytest
from codec_request import Failed, describe
from h5py import h5d, h5p, h5s, h5t, h5z

DEFLATE, SHUFFLE, FLETCHER32, SZIP, NBIT, SCALEOFFSET = 1, 2, 3, 4, 5, 6
BZIP2, LZF, BLOSC, LZ4, BITSHUFFLE, ZSTD = 307, 32000, 32001, 32004, 32008, 32015


class Chunks:
    """A dataset of chunks made by the library: its filters as the file has them, and each chunk's mask and stored bytes."""

    def __init__(self, values, chunk, filters, file_type=None, fill=None, as_stored=False):
        file_type = file_type or h5t.py_create(values.dtype, logical=True)
        with h5py.File("chunks.h5", "w", driver="core", backing_store=False) as f:
            plist = h5p.create(h5p.DATASET_CREATE)
            plist.set_chunk(chunk)
            if fill is not None:
                plist.set_fill_value(np.asarray(fill, values.dtype))
            for number, options in filters:
                plist.set_filter(number, h5z.FLAG_OPTIONAL, tuple(options))
            dataset = h5d.create(f.id, b"d", file_type, h5s.create_simple(values.shape), plist)
            dataset.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(values), mtype=file_type if as_stored else None)
            del dataset  # and with it its cache of chunks that have not been through the filters
            dataset = h5d.open(f.id, b"d")
            plist = dataset.get_create_plist()
            self.filters = [plist.get_filter(i) for i in range(plist.get_nfilters())]
            self.chunks, self.expected = [], []
            itemsize = file_type.get_size()
            raw = np.zeros((*values.shape, itemsize), "u1")
            dataset.read(h5s.ALL, h5s.ALL, raw, mtype=file_type)  # as the file has them
            for n in range(dataset.get_num_chunks()):
                info = dataset.get_chunk_info(n)
                stored = dataset.read_direct_chunk(info.chunk_offset)
                part = raw[tuple(slice(o, o + c) for o, c in zip(info.chunk_offset, chunk, strict=True))]
                if part.shape[:-1] == tuple(chunk):  # what is beyond the edges nobody reads
                    self.chunks.append(stored)
                    self.expected.append(part.tobytes())
        self.itemsize, self.chunk = itemsize, chunk

    def request(self, mask=0):
        """The chain, of bytes as the file has them: in its order."""
        filters = [{"id": f[0], "values": list(f[2])} for f in self.filters]
        return describe(f"V{self.itemsize}", self.chunk, hdf5=filters, mask=mask, threads=2)

    def check(self, codec_try, all_filters=True):
        assert self.chunks
        for (mask, stored), expected in zip(self.chunks, self.expected, strict=True):
            assert not (all_filters and mask), f"the library left out filters: mask {mask}"
            assert codec_try(self.request(mask), 0, stored, len(expected)) == expected, f"{self.filters}, mask {mask}"


def numbers(dtype, shape, seed=0):
    """Smooth with a little noise, so that every codec finds something."""
    rng, count = np.random.default_rng(seed), int(np.prod(shape))
    values = 200 * np.sin(np.arange(count) / 40) + rng.integers(0, 4, count)
    if np.dtype(dtype).kind == "u":
        values += 210
    if np.dtype(dtype).itemsize == 1:
        values /= 4
    return values.astype(dtype).reshape(shape)


INTEGERS = ["<i1", "<u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", "<u4", "<i8", ">i8", "<u8", ">u8"]
FLOATS = ["<f4", ">f4", "<f8", ">f8"]
ANY = ["|S3", "|V7", "<f2", *INTEGERS, *FLOATS]


def any_values(dtype, shape, seed=0):
    dtype = np.dtype(dtype)
    if dtype.kind in "SV":
        count = int(np.prod(shape))
        return (np.random.default_rng(seed).integers(97, 101, (count, dtype.itemsize)).astype("u1")).view(dtype).reshape(shape)
    return numbers(dtype, shape, seed)


LOSSLESS = [
    [(DEFLATE, [6])],
    [(SHUFFLE, [])],
    [(SHUFFLE, []), (DEFLATE, [1])],
    [(FLETCHER32, [])],
    [(SHUFFLE, []), (DEFLATE, [4]), (FLETCHER32, [])],
    [(FLETCHER32, []), (SHUFFLE, []), (DEFLATE, [4])],
    [(BZIP2, [9])],
    [(SHUFFLE, []), (BZIP2, [1])],
    [(LZF, [])],
    [(SHUFFLE, []), (LZF, [])],
    [(LZ4, [])],
    [(LZ4, [1000])],
    [(SHUFFLE, []), (LZ4, [64])],
    [(ZSTD, [3])],
    [(SHUFFLE, []), (ZSTD, [19]), (FLETCHER32, [])],
    *([(BLOSC, [0, 0, 0, 0, level, shuffle, cname])] for level, shuffle, cname in [(5, 1, 0), (9, 2, 1), (3, 0, 2), (4, 1, 4), (5, 2, 5)]),
    [(BITSHUFFLE, [])],
    [(BITSHUFFLE, [64])],
    [(BITSHUFFLE, [0, 2])],
    [(BITSHUFFLE, [16, 2])],
    [(BITSHUFFLE, [0, 3, 5])],
    [(BITSHUFFLE, [40, 3, 1])],
    [(BITSHUFFLE, []), (DEFLATE, [5])],
    [(LZF, []), (DEFLATE, [5])],
    [(LZ4, [50]), (ZSTD, [1]), (BZIP2, [1])],
    [(BITSHUFFLE, [8, 2]), (DEFLATE, [1]), (FLETCHER32, [])],
]


@pytest.mark.parametrize("filters", LOSSLESS, ids=json.dumps)
def test_lossless_filters(codec_try, filters):
    for seed, (shape, chunk) in enumerate([((40, 60), (20, 30)), ((4099,), (4099,)), ((7, 3, 5), (7, 3, 5)), ((1,), (1,))]):
        for dtype in ANY if seed == 0 else ANY[seed::4]:
            Chunks(any_values(dtype, shape, seed), chunk, filters).check(codec_try, all_filters=False)


@pytest.mark.parametrize("filters", LOSSLESS, ids=json.dumps)
def test_what_does_not_compress(codec_try, filters):
    """Random bytes: blocks that are stored, filters that the library leaves out and marks in the mask."""
    for shape in [(3000,), (100_003,)]:
        noise = np.frombuffer(np.random.default_rng(1).bytes(8 * shape[0]), "<u8")
        Chunks(noise, shape, filters).check(codec_try, all_filters=False)


def test_a_large_chunk(codec_try):
    values = numbers("<f4", (1000, 1000), 2)
    for filters in LOSSLESS:
        Chunks(values, (1000, 1000), filters).check(codec_try, all_filters=False)


# ---- szip --------------------------------------------------------------------------------------------------------------------------

ENTROPY_CODING, NEAREST_NEIGHBOUR = 4, 32


@pytest.mark.parametrize("option", [ENTROPY_CODING, NEAREST_NEIGHBOUR])
@pytest.mark.parametrize("block", [2, 8, 10, 16, 32])
def test_szip(codec_try, option, block):
    for dtype in [*INTEGERS, *FLOATS]:
        masks = []
        for shape, chunk in [((40, 64), (20, 64)), ((33, 47), (33, 47)), ((3, 5000), (3, 5000)), ((9000,), (4500,))]:
            values = numbers("<i4", shape) % 3 if option == ENTROPY_CODING else numbers(dtype, shape)
            made = Chunks(values.astype(dtype), chunk, [(SZIP, [option, block])])
            made.check(codec_try, all_filters=False)
            masks += [mask for mask, _ in made.chunks]
        assert masks.count(0) >= len(masks) - 1  # what would grow is stored as it is


def test_szip_of_few_bits(codec_try):
    """Numbers of 3 to 24 bits in 1, 2 and 4 bytes."""
    for bits, dtype in [(3, "<u1"), (7, "<u1"), (11, "<u2"), (12, ">u2"), (17, "<u4"), (24, "<u4"), (24, ">u4")]:
        file_type = h5t.py_create(np.dtype(dtype)).copy()
        file_type.set_precision(bits)
        values = (numbers("<u4", (50, 100)) % (1 << bits)).astype(dtype)
        for option in [ENTROPY_CODING, NEAREST_NEIGHBOUR]:
            Chunks(values, (25, 100), [(SZIP, [option, 8])], file_type).check(codec_try)


def test_szip_behind_and_before_others(codec_try):
    values = numbers("<i4", (60, 70))
    for filters in [[(SHUFFLE, []), (SZIP, [NEAREST_NEIGHBOUR, 16])], [(SZIP, [ENTROPY_CODING, 16]), (DEFLATE, [1]), (FLETCHER32, [])]]:
        Chunks(values, (60, 70), filters).check(codec_try)


# ---- nbit --------------------------------------------------------------------------------------------------------------------------


def with_bits(dtype, precision, offset):
    file_type = h5t.py_create(np.dtype(dtype)).copy()
    file_type.set_precision(precision)
    file_type.set_offset(offset)
    return file_type


BITS = [
    ("<i1", 3, 2),
    ("<u1", 8, 0),
    ("<i2", 1, 15),
    ("<i2", 9, 0),
    ("<i2", 9, 4),
    (">i2", 9, 4),
    (">u2", 8, 8),
    ("<u2", 8, 8),
    ("<i4", 17, 5),
    (">i4", 17, 5),
    (">u4", 24, 8),
    ("<u4", 31, 1),
    ("<i8", 33, 30),
    (">i8", 63, 1),
    ("<u8", 40, 0),
]


@pytest.mark.parametrize("dtype, precision, offset", BITS)
def test_nbit_of_numbers(codec_try, dtype, precision, offset):
    values = numbers("<i8", (35, 47)) % (1 << (precision - 1) if precision > 1 else 2)
    for filters in [[(NBIT, [])], [(NBIT, []), (DEFLATE, [3])], [(FLETCHER32, []), (NBIT, [])][::-1]]:
        Chunks(values.astype(dtype), (35, 47), filters, with_bits(dtype, precision, offset)).check(codec_try)


def test_nbit_of_floats(codec_try):
    """16 bits of a 4-byte float, in either order, as the library's users' guide shows it."""
    for dtype in FLOATS[:2]:
        file_type = h5t.py_create(np.dtype(dtype)).copy()
        file_type.set_fields(26, 20, 6, 7, 13)
        file_type.set_offset(7)
        file_type.set_precision(20)
        file_type.set_ebias(31)
        Chunks(numbers(dtype, (30, 40)), (30, 40), [(NBIT, [])], file_type).check(codec_try)


def test_nbit_where_all_bits_count(codec_try):
    for dtype in [bool, "V5", "S3", "<f8", [("a", "S2"), ("b", "V3")]]:
        values = np.frombuffer(np.random.default_rng(0).bytes(20 * np.dtype(dtype).itemsize), dtype)
        Chunks(values if dtype is not bool else np.arange(20) % 3 == 0, (20,), [(NBIT, [])]).check(codec_try)


def test_nbit_of_compounds_and_arrays(codec_try):
    memory = np.dtype(
        {"names": ["a", "text", "b", "list"], "formats": ["<i4", "S3", ">i2", ("<u2", (2, 3))], "offsets": [1, 6, 10, 13], "itemsize": 30}
    )
    values = np.zeros((9, 21), memory)
    values["a"], values["b"], values["text"] = numbers("<i4", (9, 21)), numbers("<i2", (9, 21)) // 8, b"xyz"
    values["list"] = numbers("<u2", (9, 21, 2, 3))
    file_type = h5t.create(h5t.COMPOUND, 30)
    file_type.insert(b"a", 1, with_bits("<i4", 12, 3))
    file_type.insert(b"text", 6, h5t.py_create(np.dtype("S3")))
    file_type.insert(b"b", 10, with_bits(">i2", 9, 0))
    file_type.insert(b"list", 13, h5t.array_create(with_bits("<u2", 11, 0), (2, 3)))
    Chunks(values, (9, 21), [(NBIT, [])], file_type).check(codec_try)


def test_nbit_of_arrays_of_compounds(codec_try):
    inner = h5t.create(h5t.COMPOUND, 8)
    inner.insert(b"x", 2, with_bits("<u2", 5, 1))
    inner.insert(b"y", 5, with_bits(">u2", 10, 0))
    values = np.zeros((11, 3), np.dtype({"names": ["x", "y"], "formats": ["<u2", ">u2"], "offsets": [2, 5], "itemsize": 8}))
    values["x"], values["y"] = 2 * (numbers("<u2", (11, 3)) % 31), numbers("<u2", (11, 3))
    made = Chunks(values.view("V24").reshape(11), (11,), [(NBIT, [])], h5t.array_create(inner, (3,)), as_stored=True)
    assert made.expected[0].count(0) < 11 * 24
    made.check(codec_try)


# ---- scaleoffset -------------------------------------------------------------------------------------------------------------------

DECIMAL, INTEGER = 0, 2


@pytest.mark.parametrize("fill", [None, 3])
@pytest.mark.parametrize("bits", [0, 7, 13])
def test_scaleoffset_of_integers(codec_try, fill, bits):
    for dtype in INTEGERS:
        for spread in [1, 3, 100]:
            values = (numbers(dtype, (31, 17)).astype("i8") % spread).astype(dtype)
            if bits < 8 * values.itemsize:
                Chunks(values, (31, 17), [(SCALEOFFSET, [INTEGER, bits])], fill=fill).check(codec_try)


def test_scaleoffset_of_integers_without_gain(codec_try):
    """The full range: the numbers are stored as they are."""
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        values = np.random.default_rng(0).integers(info.min, info.max, 500, np.dtype(dtype).newbyteorder("="), endpoint=True).astype(dtype)
        values[:2] = info.min, info.max
        Chunks(values, (500,), [(SCALEOFFSET, [INTEGER, 0])]).check(codec_try)


def test_scaleoffset_of_integers_of_all_bits(codec_try):
    """Asked to keep all bits, the library stores the chunk as it is."""
    for dtype in INTEGERS:
        values = numbers(dtype, (500,))
        Chunks(values, (500,), [(SCALEOFFSET, [INTEGER, 8 * values.itemsize])]).check(codec_try)


@pytest.mark.parametrize("fill", [None, -999.0])
@pytest.mark.parametrize("digits", [-1, 0, 2, 5])
def test_scaleoffset_of_floats(codec_try, fill, digits):
    for dtype in FLOATS:
        for scale in [0, 1, 0.001]:
            values = (numbers("<f8", (31, 17)) * scale + 0.125).astype(dtype)
            if fill is not None:
                values[::3, ::2] = fill
            Chunks(values, (31, 17), [(SCALEOFFSET, [DECIMAL, digits % (1 << 32)])], fill=fill).check(codec_try)


# ---- masks, byte order, what is refused ----------------------------------------------------------------------------------------------


def test_filters_that_a_chunk_is_without(codec_try):
    """Every mask: the chunk is stored as those filters that remain make it."""
    values = numbers("<i4", (30, 30))
    filters = [(SHUFFLE, []), (LZF, []), (DEFLATE, [3]), (FLETCHER32, [])]
    whole = Chunks(values, (30, 30), filters)
    for mask in range(16):
        remaining = [f for i, f in enumerate(filters) if not mask >> i & 1]
        (_, stored), *_ = Chunks(values, (30, 30), remaining).chunks
        assert codec_try(whole.request(mask), 0, stored, values.nbytes) == values.tobytes()


def test_the_machines_byte_order(codec_try):
    for dtype in [">i2", ">f4", ">f8", ">u8"]:
        values = numbers(dtype, (25, 31))
        for filters in [[], [(SHUFFLE, []), (DEFLATE, [1])], [(SCALEOFFSET, [DECIMAL if ">f" in dtype else INTEGER, 0])], [(NBIT, [])]]:
            made = Chunks(values, (25, 31), filters)
            native = np.frombuffer(made.expected[0], dtype).astype(values.dtype.newbyteorder("="))
            request = describe(native.dtype, (25, 31), hdf5=made.request()["hdf5"], big_endian=1)
            assert codec_try(request, 0, made.chunks[0][1], values.nbytes) == native.tobytes()


def test_filters_that_are_not_known(codec_try):
    request = describe("f4", (4,), hdf5=[{"id": 32013, "values": [1]}, {"id": 1, "values": [5]}])
    with pytest.raises(Failed, match=r"unsupported HDF5 filter 32013 \(zfp\)"):
        codec_try(request, 0, zlib.compress(bytes(16)), 16)
    assert codec_try(request | {"mask": 3}, 0, bytes(range(16)), 16) == bytes(range(16))


@pytest.mark.parametrize("filters", [f for f in LOSSLESS if f != [(FLETCHER32, [])]], ids=json.dumps)
def test_every_truncation_is_refused(codec_try, filters):
    made = Chunks(numbers("<f4", (400,)), (400,), filters)
    (mask, stored), *_ = made.chunks
    for size in range(len(stored)):
        with pytest.raises(Failed):
            codec_try(made.request(mask), 0, stored[:size], 1600)


@pytest.mark.parametrize("filters", [f for f in LOSSLESS if f[-1][0] not in (DEFLATE, BZIP2)], ids=json.dumps)
def test_another_size_is_refused(codec_try, filters):
    made = Chunks(numbers("<f4", (400,)), (400,), filters)
    (mask, stored), *_ = made.chunks
    for room in [0, 1, 1599, 1601, 4000]:
        with pytest.raises(Failed):
            codec_try(made.request(mask), 0, stored, room)
