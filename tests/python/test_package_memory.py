"""Peak memory: what a read or write takes beyond what the process held before is its destination, two chunks a thread and 32 MB.

Each is measured in a process of its own, where the system's mark of the most memory held (VmHWM) is set back before it.
"""

import json
import math
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import squall
import zarr

SHAPE, CHUNKS = (16, 1024, 1024), (1, 1024, 1024)  # 4 MiB a chunk
ARRAY_BYTES, CHUNK_BYTES = 64 << 20, 4 << 20
THREADS = 3
ALWAYS_BYTES = 32 << 20

LAYOUTS = {
    "plain": {"compressors": None},
    "zstd": {"compressors": zarr.codecs.ZstdCodec(level=1)},
    "zstd, checked": {"compressors": [zarr.codecs.ZstdCodec(level=1), zarr.codecs.Crc32cCodec()]},
    "gzip": {"compressors": zarr.codecs.GzipCodec(level=1)},
    "blosc": {"compressors": zarr.codecs.BloscCodec(cname="lz4", shuffle="shuffle")},
    "blosc, bits": {"compressors": zarr.codecs.BloscCodec(cname="zstd", clevel=1, shuffle="bitshuffle")},
    "big endian": {"compressors": None, "serializer": zarr.codecs.BytesCodec(endian="big")},
    "transposed": {"filters": [zarr.codecs.TransposeCodec(order=(2, 1, 0))], "compressors": zarr.codecs.ZstdCodec(level=1)},
    "shards": {"shards": (4, 1024, 1024), "compressors": zarr.codecs.ZstdCodec(level=1)},
    "plain shards": {"shards": (4, 1024, 1024), "compressors": None},
    "one shard": {"shards": SHAPE, "compressors": zarr.codecs.ZstdCodec(level=1)},
    "v2": {"zarr_format": 2},
    "v2, F": {"zarr_format": 2, "order": "F"},
}

# what is imported once is forked for each
SCRIPT = """
import json, os, sys
import numpy as np, squall, squall.zarr, zarr

def held(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(key))

def measured(name, work):
    if name.startswith("zarr"):
        a = zarr.open_array(path, mode="r+")
    else:
        a = squall.open_array(path, mode="r" if path.endswith(".zip") else "r+")
    values = np.full(a.shape, 1, a.dtype) if "values" in work else None
    code = compile(work, name, "exec")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = held("VmRSS:")
    exec(code)
    print(json.dumps([name, held("VmHWM:") - before]), flush=True)

path, threads, works = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
zarr.config.set({"codec_pipeline.path": "squall.zarr.CodecPipeline"})
squall.set_options(threads=threads)
for name, work in works.items():
    child = os.fork()
    if child == 0:
        measured(name, work)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""
READS = {
    "read": "found = a[...]",
    "zarr read": "found = a[...]",
    "chunk by chunk": "for i in range(len(a)): found = a[i]",
    "series": "found = a[:, 500, 500]",
}
WRITES = {
    "write": "a[...] = values",
    "zarr write": "a[...] = values",
    "write cut": "a[:, 1:-1] = values[:, 1:-1]",
}


def peak_bytes(path, works):
    done = subprocess.run([sys.executable, "-c", SCRIPT, path, str(THREADS), json.dumps(works)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


def check(found, stored_bytes):
    """stored_bytes: of a chunk in memory; where there are shards, those are what is written."""
    destination = {"read": ARRAY_BYTES, "zarr read": ARRAY_BYTES, "chunk by chunk": CHUNK_BYTES}
    for work, peak in found.items():
        chunk_bytes = CHUNK_BYTES if work in READS else stored_bytes
        assert peak <= destination.get(work, 0) + 2 * THREADS * chunk_bytes + ALWAYS_BYTES, (work, found)


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(5).integers(0, 1000, SHAPE, dtype="i4").astype("f4")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_is_the_destination_two_chunks_a_thread_and_a_little(layout, values, tmp_path):
    path = tmp_path / "a.zarr"
    array = zarr.create_array(path, shape=SHAPE, chunks=CHUNKS, dtype="f4", **LAYOUTS[layout])
    squall.open_array(path, mode="r+")[...] = values
    check(peak_bytes(path, READS | WRITES), 4 * math.prod(array.shards or array.chunks))
    shutil.rmtree(path)


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_memory_of_zip_stores(how, values, tmp_path):
    folder, path = tmp_path / "a.zarr", tmp_path / "a.zip"
    zarr.create_array(folder, data=values, chunks=CHUNKS, compressors=zarr.codecs.ZstdCodec(level=1))
    with zipfile.ZipFile(path, "w", how, compresslevel=1) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    check(peak_bytes(path, {work: code for work, code in READS.items() if not work.startswith("zarr")}), CHUNK_BYTES)
    shutil.rmtree(folder)
