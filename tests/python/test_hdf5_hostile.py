"""HDF5 files whose chunks, filters and indexes were made to do harm: each is an error that names the file and the byte, within seconds and
within memory. Files of the oldest version have no checksums over these parts, so a change is a change."""

import os
import re
import resource
import struct
import time
import zlib

import h5py
import numpy as np
import pytest
import squall as sq

MEMORY_BYTES, SECONDS = 1 << 30, 20


def limited(work, memory_bytes=MEMORY_BYTES):
    """What work() returns, or the error's text, in a child that may take so much more memory and time."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with open("/proc/self/statm") as f:
            taken = int(f.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + memory_bytes,) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        try:
            told = repr(work())
        except (sq.Error, MemoryError) as error:
            told = f"{type(error).__name__}: {error}"
        os.write(writer, told.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as f:
        told = f.read().decode()
    assert os.waitpid(child, 0)[1] == 0, f"the child ended after {told!r}"
    return told


def refusal(path, key=np.s_[...]):
    return limited(lambda: sq.open(path)["x"][key])


def assert_named(message, path, what):
    """The file, a byte of it, and what is wrong."""
    assert re.search(rf"{re.escape(str(path))}: byte \d+: .*{what}", message), message


def make(path, values, chunks, **how):
    """→ the file's bytes, to be changed."""
    with h5py.File(path, "w", libver=("earliest", "v108")) as f:
        f.create_dataset("x", data=values, chunks=chunks, **how)
    return bytearray(path.read_bytes())


def replaced(data, old, new):
    assert data.count(old) == 1 and len(old) == len(new), data.count(old)
    return data.replace(old, new)


# ---- chunks ------------------------------------------------------------------------------------------------------------------------------


def with_stored_chunk(path, stored, shape=(8,), dtype="u1", **filters):
    with h5py.File(path, "w", libver=("earliest", "v108")) as f:
        dset = f.create_dataset("x", shape, dtype, chunks=shape, **filters)
        dset.id.write_direct_chunk((0,) * len(shape), stored)
    return path


def test_chunk_that_inflates_to_far_more_than_it_has(tmp_path):
    path = with_stored_chunk(tmp_path / "x.h5", zlib.compress(bytes(1 << 26), 6), compression="gzip")
    assert_named(refusal(path), path, "decodes to more than its 8 bytes")


def test_chunk_whose_filters_inflate_each_other(tmp_path):
    """What lies between two filters is bounded by what the chunk can be."""
    path = tmp_path / "x.h5"
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((8,))
    for _ in range(3):
        plist.set_filter(h5py.h5z.FILTER_DEFLATE, 0, (9,))
    bomb = bytes(1 << 26)
    for _ in range(3):
        bomb = zlib.compress(bomb, 6)
    with h5py.File(path, "w") as f:
        dset = h5py.h5d.create(f.id, b"x", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((8,)), plist)
        dset.write_direct_chunk((0,), bomb)
    assert_named(refusal(path), path, "decode.* to more than")


def test_chunk_larger_than_the_memory(tmp_path):
    path = with_stored_chunk(tmp_path / "x.h5", zlib.compress(bytes(100)), ((1 << 32) - 1,), compression="gzip")
    before = sq.set_options(memory="256M")
    try:
        message = refusal(path, 5)
    finally:
        sq.set_options(**before)
    assert "array x, chunk 0: " in message and "memory" in message, message


def test_chunk_cut_off_by_the_files_end(tmp_path):
    path = tmp_path / "x.h5"
    data = make(path, np.arange(64, dtype="i4"), (64,), compression="gzip")
    with h5py.File(path) as f:
        chunk = f["x"].id.get_chunk_info(0)
    key = struct.pack("<II", chunk.size, 0)
    for size in (1 << 31, (1 << 32) - 1):
        path.write_bytes(replaced(data, key + bytes(16), struct.pack("<II", size, 0) + bytes(16)))
        assert_named(refusal(path), path, f"{size} bytes of data reach beyond the end")
    for address in ((1 << 64) - 2, (1 << 63) + 1, len(data)):
        path.write_bytes(replaced(data, struct.pack("<QQQ", 0, 0, chunk.byte_offset), struct.pack("<QQQ", 0, 0, address)))
        assert "bytes of data reach beyond the end of the file" in refusal(path)


@pytest.mark.parametrize("address", [(1 << 64) - 2, (1 << 64) - 256, 1 << 63])
def test_contiguous_data_near_the_end_of_all_addresses(tmp_path, address):
    path = tmp_path / "x.h5"
    data = make(path, np.arange(64, dtype="i4"), None)
    with h5py.File(path) as f:
        offset = f["x"].id.get_offset()
    path.write_bytes(replaced(data, struct.pack("<QQ", offset, 256), struct.pack("<QQ", address, 256)))
    assert "reach beyond the end of the file" in refusal(path)


# ---- filters -----------------------------------------------------------------------------------------------------------------------------


def filters_of(path):
    with h5py.File(path) as f:
        plist = f["x"].id.get_create_plist()
        return [plist.get_filter(i)[2] for i in range(plist.get_nfilters())]


def with_values(path, data, old, new):
    path.write_bytes(replaced(data, struct.pack(f"<{len(old)}I", *old), struct.pack(f"<{len(new)}I", *new)))


@pytest.mark.parametrize("index, value", [(2, 0), (2, 1), (2, 65), (2, (1 << 32) - 1), (4, 3), (4, 1 << 30), (1, 1 << 31), (3, 9), (6, 7)])
def test_scaleoffset_with_false_values(tmp_path, index, value):
    """Numbers in a chunk, their class, size and order, and how many bits are kept."""
    path = tmp_path / "x.h5"
    data = make(path, np.arange(64, dtype="i4"), (64,), scaleoffset=0)
    values = list(filters_of(path)[0])
    with_values(path, data, values, [*values[:index], value, *values[index + 1 :]])
    assert "scaleoffset" in refusal(path)


def test_scaleoffset_of_no_bits_for_more_numbers_than_there_are(tmp_path):
    """Each takes none of the chunk's bytes."""
    path = tmp_path / "x.h5"
    data = make(path, np.full(64, 5, "i4"), (64,), scaleoffset=0, fletcher32=False)
    values = list(filters_of(path)[0])
    with_values(path, data, values, [*values[:2], (1 << 32) - 1, *values[3:]])
    assert_named(refusal(path), path, "scaleoffset")


@pytest.mark.parametrize("width", [0, 3, 255, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1])
def test_shuffle_with_false_sizes(tmp_path, width):
    """No more than the order of the bytes is another."""
    path = tmp_path / "x.h5"
    data = make(path, np.arange(64, dtype="i4"), (64,), shuffle=True)
    message = b"shuffle\0" + struct.pack("<I", 4)
    path.write_bytes(replaced(data, message, b"shuffle\0" + struct.pack("<I", width)))
    told = refusal(path)
    assert told.startswith("array([") if 0 < width < 1 << 31 else "shuffle: elements of" in told


def test_checksum_that_is_false_or_is_not_there(tmp_path):
    path = tmp_path / "x.h5"
    data = make(path, np.arange(64, dtype="i4"), (64,), fletcher32=True)
    with h5py.File(path) as f:
        chunk = f["x"].id.get_chunk_info(0)
    data[chunk.byte_offset] ^= 1
    path.write_bytes(data)
    assert_named(refusal(path), path, "fletcher32")
    for size in range(4):
        path.write_bytes(replaced(data, struct.pack("<II", chunk.size, 0), struct.pack("<II", size, 0)))
        assert_named(refusal(path), path, "fletcher32")


# ---- indexes -----------------------------------------------------------------------------------------------------------------------------


def node(level, children):
    """Of a B-tree of chunks of a dataset of one dimension: (chunk's size, first element, address) each, and a last key."""
    keys = [struct.pack("<IIQQQ", size, 0, at, 0, address) for size, at, address in children]
    nowhere = (1 << 64) - 1
    return (
        b"TREE" + struct.pack("<BBHQQ", 1, level, len(children), nowhere, nowhere) + b"".join(keys) + struct.pack("<IIQQ", 0, 0, 1 << 40, 0)
    )


def with_index(path, nodes):
    """A dataset whose index are these nodes; node(i) gives its bytes, made from the address of the first one. The last is the root."""
    data = make(path, np.arange(64, dtype="i4"), (64,), maxshape=(None,))
    root = data.index(b"TREE\x01")
    begin = len(data)
    for make_node in nodes:
        last = len(data)
        data += make_node(begin, last)
    data = replaced(data, struct.pack("<Q", root) + struct.pack("<II", 64, 4), struct.pack("<Q", last) + struct.pack("<II", 64, 4))
    path.write_bytes(data[:40] + struct.pack("<Q", len(data)) + data[48:])


def test_index_whose_nodes_lead_to_themselves(tmp_path):
    path = tmp_path / "x.h5"
    with_index(path, [lambda begin, here: node(1, [(256, 0, here)])])
    assert_named(refusal(path), path, "no node of a chunk index")


def test_index_that_more_paths_lead_through_than_can_be_walked(tmp_path):
    """Fifty levels of nodes, each with two ways to the one below."""
    path = tmp_path / "x.h5"
    size = len(node(0, [(0, 0, 0)] * 2))
    levels = [lambda begin, here: node(0, [(256, 1 << 30, 0)] * 2)]
    levels += [lambda begin, here, level=level: node(level, [(256, 0, here - size)] * 2) for level in range(1, 50)]
    with_index(path, levels)
    begin = time.process_time()
    assert "its metadata refer to each other more often than those of a sound file of its size" in refusal(path)
    assert time.process_time() - begin < SECONDS


def test_index_of_a_vast_dataset_takes_what_its_chunks_take(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("x", (1 << 60,), "i1", chunks=(1 << 20,), fillvalue=7)
        f["x"][1 << 59] = 1
    assert refusal(path, np.s_[(1 << 59) - 1 : (1 << 59) + 2]) == "array([7, 1, 7], dtype=int8)"
    assert "Error" in refusal(path)


# ---- elements of variable length ---------------------------------------------------------------------------------------------------------


def test_texts_longer_than_their_heap(tmp_path):
    path = tmp_path / "x.h5"
    data = make(path, np.array(["abcdef"] * 3, h5py.string_dtype()), None)
    heap = data.index(b"GCOL")
    one = struct.pack("<IQI", 6, heap, 2)
    for length, address, number in [
        ((1 << 32) - 1, heap, 2),
        (6, heap, 99),
        (6, len(data) - 4, 2),
        (6, (1 << 64) - 9, 2),
        (6, heap + 1, 2),
    ]:
        path.write_bytes(replaced(data, one, struct.pack("<IQI", length, address, number)))
        message = refusal(path)
        assert_named(message, path, "")


# ---- attributes --------------------------------------------------------------------------------------------------------------------------


def with_attributes(path, count):
    value, space = np.array(7, "i4"), h5py.h5s.create(h5py.h5s.SCALAR)
    with h5py.File(path, "w", libver="latest") as f:
        for i in range(count):
            h5py.h5a.create(f.id, b"a%d" % i, h5py.h5t.STD_I32LE, space).write(value)


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_more_attributes_than_anybody_has(tmp_path, count):
    """A million take less than 1 kB each, Python's dict of them included."""
    with_attributes(tmp_path / "x.h5", count)
    assert limited(lambda: len(sq.open(tmp_path / "x.h5").attrs), max(MEMORY_BYTES, 2000 * count)) == str(count)


def test_a_large_array_whose_bytes_do_not_suffice_is_refused_as_a_small_one(tmp_path):
    path = tmp_path / "lies.h5"
    with h5py.File(path, "w") as f:
        f["a"] = np.zeros((300, 2000))
    length = (300 * 2000 * 8).to_bytes(8, "little")
    data = path.read_bytes()
    assert data.count(length) == 1
    path.write_bytes(data.replace(length, (4800).to_bytes(8, "little")))
    a = sq.open(path)["a"]
    for key in (..., 3, (slice(0, 2), slice(None)), ([1, 5],)):
        with pytest.raises(sq.Error, match="array a cannot be read: .*4800 bytes for elements that take 4800000"):
            a[key]
    assert a[:0].shape == (0, 2000)
