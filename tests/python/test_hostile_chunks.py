"""Chunks that are damaged or made to harm, read in every way that the package has: each is an error that names the chunk, no fill value,
and costs little memory and time. So is metadata that is too large or too deep."""

import bz2
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
import time
import zipfile
import zlib

import numcodecs
import numpy as np
import pytest
import squall as sq
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

pytestmark = pytest.mark.filterwarnings("ignore:.*Numcodecs codecs.*", "ignore:.*Zarr V3 specification.*")

SHAPE, CHUNKS, SHARDS = (12, 64), (2, 32), (6, 32)
VALUES = np.arange(1, 1 + SHAPE[0] * SHAPE[1], dtype="f4").reshape(SHAPE)
BOMB_BYTES = 10 << 30
ENOUGH_BYTES, ENOUGH_S = 64 << 20, 10  # for any refusal

LAYOUTS = {
    "plain": {"compressors": None},
    "zstd": {"compressors": ZstdCodec()},
    "zstd, checked": {"compressors": [ZstdCodec(), Crc32cCodec()]},
    "blosc": {"compressors": BloscCodec(cname="lz4")},
    "gzip": {"compressors": GzipCodec()},
    "shards": {"shards": SHARDS, "compressors": ZstdCodec()},
    "plain shards": {"shards": SHARDS, "compressors": None},
    "v2": {"zarr_format": 2},
    "v2, lz4": {"zarr_format": 2, "compressors": numcodecs.LZ4()},
    "v2, bz2": {"zarr_format": 2, "compressors": numcodecs.BZ2()},
    "v2, zlib": {"zarr_format": 2, "compressors": numcodecs.Zlib()},
    "v2, filters": {"zarr_format": 2, "filters": [numcodecs.Delta("f4"), numcodecs.Shuffle(4)], "compressors": numcodecs.Blosc()},
}


def make(path, **layout):
    array = zarr.create_array(path, shape=SHAPE, chunks=CHUNKS, dtype="f4", fill_value=-1, **layout)
    array[...] = VALUES
    return path / ("0.0" if layout.get("zarr_format") == 2 else "c/0/0")


def held_bytes(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(key))


def fails(read, *words):
    """Within little memory and time."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # sets the mark of the most memory held back
    before, start = held_bytes("VmRSS:"), time.monotonic()
    with pytest.raises(sq.Error) as caught:
        read()
    assert held_bytes("VmHWM:") - before < ENOUGH_BYTES
    assert time.monotonic() - start < ENOUGH_S
    for word in words:
        assert word in str(caught.value)
    return caught.value.status


def refused(path, *words, status=(sq.Status.ECORRUPT,)):
    """Every read of the first chunk (or shard) is; the others are read."""
    out = np.zeros(SHAPE, "f4")
    array = sq.open_array(path)
    for read in (
        lambda: array[...],
        lambda: array[0],
        lambda: array[1, 30:],
        lambda: array[:, 5],
        lambda: array[0, 0],
        lambda: array[0, 0],  # nothing of it was kept
        lambda: array.read(out=out),
        lambda: array.vindex[[0, 5, 1], [1, 60, 2]],
    ):
        assert fails(read, "0/0", *words) in status
    with zarr.config.set({"codec_pipeline.path": "squall.zarr.CodecPipeline"}):
        theirs = zarr.open_array(path)
        for read in (lambda: theirs[...], lambda: theirs[0, 0], lambda: theirs.oindex[[0, 7]]):
            assert fails(read, "0/0", *words) in status
    np.testing.assert_array_equal(array[6:], VALUES[6:])
    np.testing.assert_array_equal(array[:, 32:], VALUES[:, 32:])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_truncated_chunks(layout, tmp_path):
    chunk = make(tmp_path / "a.zarr", **LAYOUTS[layout])
    whole = chunk.read_bytes()
    for length in (0, 1, 7, len(whole) // 2, len(whole) - 5, len(whole) - 1):
        chunk.write_bytes(whole[:length])
        refused(tmp_path / "a.zarr")


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if "shards" not in name])
@pytest.mark.parametrize("rows", [1, 4])
def test_chunks_that_decode_to_another_size(layout, rows, tmp_path):
    chunk = make(tmp_path / "a.zarr", **LAYOUTS[layout])
    other = zarr.create_array(tmp_path / "b.zarr", shape=(rows, 32), chunks=(rows, 32), dtype="f4", **LAYOUTS[layout])
    other[...] = 1
    shutil.copy(tmp_path / "b.zarr" / chunk.relative_to(tmp_path / "a.zarr"), chunk)
    refused(tmp_path / "a.zarr")


def crc32c(data):
    return bytes(numcodecs.CRC32C().encode(data))[-4:]


def change_index(shard, location, change, checksum=True):
    """change(entries, bytes of the shard): offset and size of three inner chunks."""
    data = shard.read_bytes()
    size = 16 * 3 + 4
    stored = data[:size] if location == "start" else data[-size:]
    entries = np.frombuffer(stored[:-4], "<u8").reshape(3, 2).copy()
    change(entries, len(data))
    raw = entries.tobytes()
    made = raw + (crc32c(raw) if checksum else stored[-4:])
    shard.write_bytes(made + data[size:] if location == "start" else data[:-size] + made)


def outside(entries, size):
    entries[1, 0] = size - 1


def far_outside(entries, size):
    entries[1] = 2**64 - 2, 100


def endless(entries, size):
    entries[1, 1] = 2**63


def overlapping(entries, size):
    entries[1, 0] = entries[0, 0] + 1


def in_the_index(entries, size):
    entries[1, 0] = 3 if entries[0, 0] else size - entries[1, 1]


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("inner", [None, ZstdCodec()], ids=["plain", "zstd"])
@pytest.mark.parametrize(
    "change, word",
    [(outside, "ends at"), (far_outside, "ends at"), (endless, "ends at"), (overlapping, "within"), (in_the_index, "index itself lies")],
)
def test_indexes_of_shards(change, word, inner, location, tmp_path):
    shard = make(tmp_path / "a.zarr", shards={"shape": SHARDS, "index_location": location}, compressors=inner)
    whole = shard.read_bytes()
    change_index(shard, location, change)
    refused(tmp_path / "a.zarr", word)
    shard.write_bytes(whole)
    change_index(shard, location, change, checksum=False)
    refused(tmp_path / "a.zarr", "crc32c")


@pytest.mark.parametrize("cut", [1, 4, 30, 51, 52, 53])
def test_truncated_indexes_of_shards(cut, tmp_path):
    shard = make(tmp_path / "a.zarr", shards={"shape": SHARDS, "index_location": "start"}, compressors=None)
    shard.write_bytes(shard.read_bytes()[:cut])
    refused(tmp_path / "a.zarr")
    shutil.rmtree(tmp_path / "a.zarr")
    shard = make(tmp_path / "a.zarr", shards=SHARDS, compressors=None)
    shard.write_bytes(shard.read_bytes()[:-cut])
    refused(tmp_path / "a.zarr")


# ---- zstd, blosc ------------------------------------------------------------------------------------------------------------------------


def zstd_frame(claimed, *blocks):
    """RFC 8878; claimed None: the frame says no size. Blocks: bytes, or (a byte, how often)."""
    head = b"\x28\xb5\x2f\xfd" + (b"\x00\x38" if claimed is None else b"\xe0" + struct.pack("<Q", claimed))
    out = [head]
    for i, block in enumerate(blocks):
        raw = isinstance(block, bytes)
        size = len(block) if raw else block[1]
        out.append(struct.pack("<I", (i == len(blocks) - 1) | (not raw) << 1 | size << 3)[:3] + (block if raw else block[0]))
    return b"".join(out)


CHUNK = VALUES[:2, :32].tobytes()
ZEROS = (b"\0", 1 << 17)
ZSTD_BOMB = zstd_frame(None, *[ZEROS] * (BOMB_BYTES >> 17))
LIES = {
    "much": zstd_frame(BOMB_BYTES, CHUNK),
    "most": zstd_frame(2**64 - 2, CHUNK),
    "less": zstd_frame(len(CHUNK) // 2, CHUNK),
    "more": zstd_frame(len(CHUNK), CHUNK[:-4]),
    "nothing": zstd_frame(0, CHUNK),
    "a little, and is a bomb": zstd_frame(len(CHUNK), *[ZEROS] * (BOMB_BYTES >> 17)),
}


def test_frames_by_hand_are_read(tmp_path):
    """As an oracle of what is made above."""
    chunk = make(tmp_path / "a.zarr", compressors=ZstdCodec())
    for claimed in (None, len(CHUNK)):
        chunk.write_bytes(zstd_frame(claimed, CHUNK[:40], CHUNK[40:]))
        np.testing.assert_array_equal(sq.open_array(tmp_path / "a.zarr")[...], VALUES)
        assert numcodecs.Zstd().decode(chunk.read_bytes()) == CHUNK


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("layout", ["zstd", "shards"])
def test_zstd_frames_that_lie(layout, lie, tmp_path):
    chunk = make(tmp_path / "a.zarr", **LAYOUTS[layout])
    frame = LIES[lie]
    if layout == "shards":
        index = np.array([[0, len(frame)], [2**64 - 1] * 2, [2**64 - 1] * 2], "<u8").tobytes()
        frame += index + crc32c(index)
    chunk.write_bytes(frame)
    array = sq.open_array(tmp_path / "a.zarr")
    assert fails(lambda: array[...], "0/0") == sq.Status.ECORRUPT
    assert fails(lambda: array[1, 3:5], "0/0") == sq.Status.ECORRUPT
    np.testing.assert_array_equal(array[6:], VALUES[6:])


BLOSC = {
    "version": (0, "B", 9),
    "format of the codec": (1, "B", 9),
    "codec": (2, "B", 0xE1),
    "element size": (3, "B", 0),
    "size": (4, "<I", 10_000),
    "greatest size": (4, "<I", 2**31 - 1),
    "negative size": (4, "<I", 2**32 - 1),
    "block size": (8, "<I", 0),
    "greatest block size": (8, "<I", 2**31 - 1),
    "stored size": (12, "<I", 17),
    "greatest stored size": (12, "<I", 2**32 - 1),
    "first block": (16, "<I", 2**31 - 1),
}


@pytest.mark.parametrize("what", BLOSC)
def test_headers_of_blosc(what, tmp_path):
    chunk = make(tmp_path / "a.zarr", **LAYOUTS["blosc"])
    at, kind, value = BLOSC[what]
    data = bytearray(chunk.read_bytes())
    struct.pack_into(kind, data, at, value)
    chunk.write_bytes(data)
    refused(tmp_path / "a.zarr", status=(sq.Status.ECORRUPT, sq.Status.EUNSUPPORTED))


# ---- bombs ------------------------------------------------------------------------------------------------------------------------------


def gzip_bomb():
    return gzip.compress(bytes(1 << 20)) * (BOMB_BYTES >> 20)


BOMBS = {
    "zstd": (ZSTD_BOMB, {"compressors": ZstdCodec()}),
    "zstd in zstd": (numcodecs.Zstd().encode(ZSTD_BOMB), {"compressors": [ZstdCodec()] * 2}),
    "gzip in gzip in gzip": (lambda: gzip.compress(gzip.compress(gzip_bomb())), {"compressors": [GzipCodec()] * 3}),
    "bz2": (lambda: bz2.compress(bytes(16 << 20)) * (BOMB_BYTES >> 24), {"zarr_format": 2, "compressors": numcodecs.BZ2()}),
    "zlib": (lambda: zlib.compress(bytes(256 << 20), 1), {"zarr_format": 2, "compressors": numcodecs.Zlib()}),
    "lz4": (struct.pack("<I", 2**31 - 1) + b"\x1f\0\x01\0" + b"\xff" * 1000, {"zarr_format": 2, "compressors": numcodecs.LZ4()}),
    "lz4 that claims little": (
        struct.pack("<I", 256) + b"\x1f\0\x01\0" + b"\xff" * 1000,
        {"zarr_format": 2, "compressors": numcodecs.LZ4()},
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs(bomb, tmp_path):
    data, layout = BOMBS[bomb]
    data = data() if callable(data) else data
    if " in " in bomb:
        assert len(data) < 20_000
    chunk = make(tmp_path / "a.zarr", **layout)
    chunk.write_bytes(data)
    refused(tmp_path / "a.zarr")


def test_bombs_in_zip_files(tmp_path):
    make(tmp_path / "a.zarr", compressors=None)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted((tmp_path / "a.zarr").rglob("*")):
            if file.is_file():
                name = file.relative_to(tmp_path / "a.zarr").as_posix()
                archive.writestr(name, bytes(256 << 20) if name == "c/0/0" else file.read_bytes())
    array = sq.open_array(tmp_path / "a.zip")
    assert fails(lambda: array[...], "0/0") == sq.Status.ECORRUPT
    np.testing.assert_array_equal(array[6:], VALUES[6:])


@pytest.mark.parametrize(
    "data",
    [b"\xff\xff\xff\xff", b"\x04\0\0\0" + b"\xff\xff\xff\x7f" + b"a" * 50, b"\x04\0\0\0" + b"\0\0\0\0" * 3, b"\x05" + bytes(40)],
    ids=["very many", "a very long one", "one less", "one more"],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_texts_that_lie(data, compressed, tmp_path):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(8,), chunks=(4,), dtype="str", compressors=ZstdCodec() if compressed else None)
    array[...] = list("abcdefgh")
    (tmp_path / "a.zarr/c/0").write_bytes(numcodecs.Zstd().encode(data) if compressed else data)
    ours = sq.open_array(tmp_path / "a.zarr")
    assert fails(lambda: ours[...], "chunk 0") == sq.Status.ECORRUPT
    assert list(ours[4:]) == list("efgh")


# ---- files that cannot be read ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_folder_in_a_chunks_place(layout, tmp_path):
    chunk = make(tmp_path / "a.zarr", **LAYOUTS[layout])
    chunk.unlink()
    chunk.mkdir()
    refused(tmp_path / "a.zarr", "folder", status=(sq.Status.EUNSUPPORTED,))


@pytest.mark.parametrize("layout", ["plain", "zstd", "shards", "v2"])
def test_a_chunk_that_may_not_be_read(layout, tmp_path):
    chunk = make(tmp_path / "a.zarr", **LAYOUTS[layout])
    chunk.chmod(0)
    array = sq.open_array(tmp_path / "a.zarr")
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.seteuid(65534)  # root may read everything
            for read in (lambda: array[...], lambda: array[1, 3], lambda: array.vindex[[0, 1], [2, 3]]):
                with pytest.raises(sq.Error, match="0/0.*Permission denied") as caught:
                    read()
                assert caught.value.status == sq.Status.EIO
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("layout", ["plain", "zstd", "blosc", "shards", "plain shards", "v2"])
def test_a_disk_that_fails(layout, support, tmp_path):
    chunk = make(tmp_path / "a.zarr", **LAYOUTS[layout])
    code = """if True:
        import sys, squall
        array = squall.open_array(sys.argv[1])
        for key in (..., 0, (1, 3), ([0, 5], [1, 2])):
            try:
                array[key]
                print("read")
            except squall.Error as err:
                print(err.status.name, err)
        print(array[6:].sum(), array[:, 32:].sum())"""
    faulty = {"LD_PRELOAD": str(support / "fail_io.so"), "SQUALL_FAULT_READ": "/".join(chunk.parts[-3:])}
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a.zarr"], capture_output=True, text=True, env=os.environ | faulty)
    *told, sums = done.stdout.splitlines()
    assert len(told) == 4, done.stderr
    for line in told:
        assert line.startswith("EIO") and "0/0" in line and "Input/output error" in line
    assert sums == f"{VALUES[6:].sum()} {VALUES[:, 32:].sum()}"


# ---- metadata ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["zarr.json", ".zarray", ".zattrs"])
@pytest.mark.parametrize("kind", ["200 MB", "200 MB of text", "10,000 deep", "10,000 deep objects"])
def test_documents_too_large_or_too_deep(name, kind, tmp_path, squall):
    make(tmp_path / "g.zarr/a", **LAYOUTS["v2" if name[0] == "." else "plain"])
    path = tmp_path / "g.zarr/a" / name
    path.touch()
    if kind == "200 MB":
        os.truncate(path, 200_000_000)
    elif kind == "200 MB of text":
        path.write_text(json.dumps({"text": "x" * 200_000_000}))
    elif kind == "10,000 deep":
        path.write_text('{"attributes": ' + "[" * 10_000 + "]" * 10_000 + "}")
    else:
        path.write_text('{"a":' * 10_000 + "1" + "}" * 10_000)
    fails(lambda: sq.open_array(tmp_path / "g.zarr/a"), "g.zarr/a")
    zarr.create_group(tmp_path / "g.zarr", overwrite=False) if name == "zarr.json" else (tmp_path / "g.zarr/.zgroup").write_text(
        '{"zarr_format": 2}'
    )
    group = sq.open(tmp_path / "g.zarr")
    assert list(group) == [] and name in group.problems[0]
    done = squall("info", tmp_path / "g.zarr", check=False)
    assert done.code == 3 and name in done.out + done.err
