"""Shards written by zarr-python read equal to it: any inner chunks, codecs and boxes, with chunks and shards that are not there."""

import os

import numpy as np
import pytest
import squall
import zarr
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

CODECS = {"none": None, "zstd": ZstdCodec(), "blosc": BloscCodec(cname="zstd", typesize=2), "gzip": GzipCodec()}


def random_array(folder, rng, codec, index_location):
    rank = int(rng.integers(1, 4))
    inner = rng.integers(1, 5, rank)
    shards = inner * rng.integers(1, 4, rank)
    shape = tuple(rng.integers(1, {1: 25, 2: 16, 3: 9}[rank], rank).tolist())  # a few shards; zarr-python takes 1 ms an inner chunk
    array = zarr.create_array(
        folder,
        shape=shape,
        dtype="i2",
        fill_value=-3,
        chunks=tuple(inner.tolist()),
        shards={"shape": tuple(shards.tolist()), "index_location": index_location},
        compressors=CODECS[codec],
    )
    return array, tuple(inner.tolist()), tuple(shards.tolist())


def random_key(rng, shape):
    return tuple(slice(int(rng.integers(0, n)), int(rng.integers(1, n + 1)), int(rng.integers(1, 4))) for n in shape)


@pytest.mark.parametrize("index_location", ["start", "end"])
@pytest.mark.parametrize("codec", CODECS)
def test_any_box_of_a_sharded_array_reads_as_zarr_reads_it(tmp_path, codec, index_location):
    rng = np.random.default_rng(len(codec))
    for n in range(8):
        theirs, inner, shards = random_array(tmp_path / f"{n}.zarr", rng, codec, index_location)
        data = rng.integers(-100, 100, theirs.shape).astype("i2")
        written = random_key(rng, theirs.shape) if n % 2 else ...
        theirs[written] = data[written]
        ours = squall.open_array(tmp_path / f"{n}.zarr")
        assert (ours.chunks, ours.shards) == (inner, shards)
        wanted = theirs[...]
        np.testing.assert_array_equal(ours[...], wanted)
        for _ in range(20):
            key = random_key(rng, theirs.shape)
            np.testing.assert_array_equal(ours[key], wanted[key])


def one_shard(tmp_path, **kwargs):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(64, 64), dtype="f4", chunks=(16, 16), shards=(64, 64), **kwargs)
    array[...] = np.arange(64 * 64, dtype="f4").reshape(64, 64)
    return array, tmp_path / "a.zarr" / "c" / "0" / "0"


def test_what_is_cut_off_a_shard_is_an_error_that_names_the_file(tmp_path):
    _, file = one_shard(tmp_path)
    whole = file.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(squall.Error, match=r"c/0/0"):
            squall.open_array(tmp_path / "a.zarr")[...]


def test_a_damaged_inner_chunk_costs_only_itself(tmp_path):
    theirs, file = one_shard(tmp_path, compressors=ZstdCodec(checksum=True))
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 3] ^= 0x55
    file.write_bytes(whole)
    ours = squall.open_array(tmp_path / "a.zarr")
    good = bad = 0
    for y in range(0, 64, 16):
        for x in range(0, 64, 16):
            try:
                np.testing.assert_array_equal(ours[y : y + 16, x : x + 16], np.arange(64 * 64).reshape(64, 64)[y : y + 16, x : x + 16])
                good += 1
            except squall.Error as e:
                assert f"inner chunk {y // 16}/{x // 16}" in str(e)
                bad += 1
    assert (good, bad) == (15, 1)


def test_a_shard_that_is_written_again_is_read_anew(tmp_path):
    theirs, file = one_shard(tmp_path, compressors=ZstdCodec())
    ours = squall.open_array(tmp_path / "a.zarr")
    for value in range(1, 20):
        theirs[...] = value
        os.utime(file, ns=(value, value))
        assert ours[3, 5] == value and ours[3, 6] == value
