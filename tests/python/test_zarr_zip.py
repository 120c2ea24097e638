"""Stores in zip files: what zarr-python's ZipStore wrote reads equal; what nobody should put into an archive is refused by name."""

import concurrent.futures
import json
import pathlib
import pickle
import shutil
import struct
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
import squall
import zarr
from conftest import BUILD
from zarr.codecs import BloscCodec, GzipCodec
from zarr.storage import ZipStore

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::zarr.errors.ZarrUserWarning")

SHAPE = (13, 9, 10)
METHODS = {"stored": zipfile.ZIP_STORED, "deflated": zipfile.ZIP_DEFLATED}


def numbers(dtype="f4", seed=0):
    return np.random.default_rng(seed).integers(-100, 100, SHAPE).astype(dtype)


def fill_group(store, version):
    """Arrays of several kinds; one of them in part, so that chunks are missing."""
    group = zarr.create_group(store, zarr_format=version, attributes={"title": "zipped", "levels": [1, 2]})
    kinds = {
        "plain": {"compressors": None},
        "below/blosc": {"compressors": BloscCodec(cname="lz4") if version == 3 else "auto"},
        "below/deeper/big": {"dtype": ">i2", "compressors": None},
        "part": {"fill_value": 7},
    }
    if version == 3:
        kinds |= {
            "sharded": {"shards": (8, 9, 10)},
            "sharded_plain": {"shards": (8, 9, 10), "compressors": None},
            "gzip": {"compressors": GzipCodec()},
        }
    for i, (name, options) in enumerate(kinds.items()):
        array = group.create_array(name, shape=SHAPE, chunks=(4, 3, 5), **{"dtype": "f4", **options})
        array[slice(0, 5) if name == "part" else ...] = numbers(array.dtype, i)[slice(0, 5) if name == "part" else ...]
    group.create_array("scalar", shape=(), dtype="f8")[...] = 3.5
    return group


def make(path, version=3, method="stored", consolidated=False):
    store = ZipStore(path, mode="w", compression=METHODS[method])
    fill_group(store, version)
    if consolidated:
        zarr.consolidate_metadata(store, zarr_format=version)
    store.close()
    return path


@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("version", [2, 3])
def test_what_a_zip_store_holds_reads_equal(tmp_path, version, method, consolidated):
    path = make(tmp_path / "store.zip", version, method, consolidated)
    theirs = zarr.open_group(ZipStore(path, mode="r"), mode="r")
    ours = squall.open(path)
    names = [name for name, node in theirs.members(max_depth=None) if isinstance(node, zarr.Array)]
    assert len(names) == (8 if version == 3 else 5)
    assert dict(ours.attrs) == {"title": "zipped", "levels": [1, 2]}
    for name in names:
        np.testing.assert_array_equal(ours[name][...], theirs[name][...])
    for key in [np.s_[3], np.s_[2:11:3, 8, ::-2], np.s_[12, 8, 9], np.s_[4:8, 3:6, 5:10]]:
        for name in names:
            if name != "scalar":
                np.testing.assert_array_equal(ours[name][key], theirs[name][...][key])


def rewrite(path, change, compression=zipfile.ZIP_STORED):
    """The archive again, member by member: change(info, bytes) → (info, bytes), or None to leave it out."""
    with zipfile.ZipFile(path) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(path, "w", compression) as archive:
        for info, data in members:
            fresh = zipfile.ZipInfo(info.filename)
            fresh.compress_type = compression
            new = change(fresh, data)
            if new:
                archive.writestr(*new)
    return path


def one_array(path, compressors=None, method="stored", **options):
    """A store that is a group with one array, "a", of two chunks along the first of two dimensions."""
    store = ZipStore(path, mode="w", compression=METHODS[method])
    array = zarr.create_group(store).create_array("a", shape=(8, 6), chunks=(4, 6), dtype="f4", compressors=compressors, **options)
    array[...] = np.arange(48).reshape(8, 6)
    store.close()
    return path


def refused(path, *words, status=None, key=...):
    with pytest.raises(squall.Error) as error:
        squall.open(path)["a"][key]
    for word in words:
        assert word in str(error.value)
    assert status is None or error.value.status is status
    return str(error.value)


def member_offset(path, name):
    """Where the bytes of a stored member begin."""
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(name)
    header = path.read_bytes()[info.header_offset : info.header_offset + 30]
    return info.header_offset + 30 + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")


@pytest.mark.parametrize("compressors", [None, GzipCodec()])
@pytest.mark.parametrize("method", METHODS)
def test_a_chunk_that_is_not_there_is_fill_and_a_damaged_one_an_error(tmp_path, compressors, method):
    path = one_array(tmp_path / "x.zip", compressors, method, fill_value=-1)
    rewrite(path, lambda info, data: None if info.filename == "a/c/1/0" else (info, data), METHODS[method])
    assert (squall.open(path)["a"][4:] == -1).all() and (squall.open(path)["a"][:4] >= 0).all()
    content = bytearray(path.read_bytes())
    content[member_offset(path, "a/c/0/0") + 12] ^= 4
    path.write_bytes(content)
    refused(path, "array a, chunk 0/0: ", f"{path}: a/c/0/0: ", status=squall.Status.ECORRUPT)
    assert (squall.open(path)["a"][4:] == -1).all()


@pytest.mark.parametrize("cut", [1, 22, 100, 200, 400])
def test_a_truncated_archive_is_an_error(tmp_path, cut):
    path = one_array(tmp_path / "x.zip")
    path.write_bytes(path.read_bytes()[:-cut])
    refused(path, str(path), "truncated", status=squall.Status.ECORRUPT)


def test_a_link_in_a_chunks_place_is_refused_by_name(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(np.ones(24, "f4").tobytes())

    def link(info, data):
        if info.filename != "a/c/0/0":
            return info, data
        info.create_system, info.external_attr = 3, 0o120777 << 16
        return info, b"../../../secret"

    path = rewrite(one_array(tmp_path / "x.zip"), link)
    refused(path, "chunk 0/0", "a/c/0/0: a symbolic link", status=squall.Status.EUNSUPPORTED)
    assert squall.open(path)["a"][4:].shape == (4, 6)


def test_methods_that_are_not_read_are_refused_by_name(tmp_path, squall):
    path = rewrite(one_array(tmp_path / "x.zip"), lambda info, data: (info, data, zipfile.ZIP_BZIP2 if info.filename == "a/c/1/0" else 0))
    told = squall("info", path, check=False)
    assert "a/c/1/0 cannot be read: neither stored nor deflated" in told.out + told.err
    got = squall("get", path, "a", check=False)
    assert got.code == 1 and "a/c/1/0: neither stored nor deflated" in got.err


def test_encrypted_members_are_refused_by_name(tmp_path):
    path = one_array(tmp_path / "x.zip")
    content = path.read_bytes()
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        head = content.index(signature)
        while head >= 0:
            content = content[: head + at] + bytes([content[head + at] | 1]) + content[head + at + 1 :]
            head = content.find(signature, head + 4)
    path.write_bytes(content)
    refused(path, "zarr.json: it is encrypted", status=squall.Status.EUNSUPPORTED)


def test_keys_that_lead_out_of_the_archive_are_told_and_not_followed(tmp_path, squall):
    path = one_array(tmp_path / "x.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("../b/zarr.json", "{}")
        archive.writestr("/c/zarr.json", "{}")
    told = squall("ls", "--json", path, check=False)
    assert '"a"' in told.out and '"b"' not in told.out
    told = squall("info", path, check=False)
    assert "../b/zarr.json cannot be read: its name leads out" in told.out + told.err


def test_an_array_whose_document_inflates_without_end_is_left_out(tmp_path):
    path = one_array(tmp_path / "x.zip")
    huge = rewrite(path, lambda info, data: (info, b" " * (257 << 20) if info.filename == "a/zarr.json" else data), zipfile.ZIP_DEFLATED)
    assert huge.stat().st_size < 1 << 20
    group = squall.open(huge)
    assert "a" not in group and "a/zarr.json: 269484032 bytes, more than" in group.problems[0]


def test_the_last_of_two_members_of_one_name_counts(tmp_path):
    path = one_array(tmp_path / "x.zip")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("a/c/1/0", np.full(24, 9, "f4").tobytes())
    assert (squall.open(path)["a"][4:] == 9).all()
    np.testing.assert_array_equal(squall.open(path)["a"][...], zarr.open_group(ZipStore(path, mode="r"), mode="r")["a"][...])


@pytest.mark.parametrize(
    "members, words",
    [
        ({}, "neither zarr.json nor"),
        ({"readme.txt": "no store"}, "neither zarr.json nor"),
        ({"a/b": "", "x.zarr/zarr.json": "{}"}, "in x.zarr;"),
    ],
)
def test_an_archive_without_a_store_is_no_store(tmp_path, members, words):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    with pytest.raises(squall.Error, match=words) as error:
        squall.open(path)
    assert error.value.status is squall.Status.ENOTFOUND


def test_archives_are_not_written_to(tmp_path):
    path = one_array(tmp_path / "x.zip")
    before = path.read_bytes()
    with pytest.raises(squall.Error, match="neither a Zarr store in a folder"):
        squall.open(path, mode="r+")
    with pytest.raises((squall.Error, ValueError)):
        squall.open(path)["a"][0] = 1
    with pytest.raises(squall.Error):
        squall.create_array(path, data=np.zeros(3))
    assert path.read_bytes() == before and sorted(tmp_path.iterdir()) == [path]


def test_a_member_that_inflates_beyond_any_chunk_is_an_error(tmp_path):
    path = one_array(tmp_path / "x.zip", GzipCodec())
    rewrite(path, lambda info, data: (info, b"\0" * (64 << 20) if info.filename == "a/c/1/0" else data), zipfile.ZIP_DEFLATED)
    refused(path, "chunk 1/0: ", "a/c/1/0: 67108864 bytes are more than any chunk of 96", status=squall.Status.ECORRUPT)
    assert squall.open(path)["a"][0, 1] == 1


def test_a_member_that_inflates_beyond_the_memory_is_an_error(tmp_path):
    path = tmp_path / "x.zip"
    store = ZipStore(path, mode="w", compression=zipfile.ZIP_DEFLATED)
    zarr.create_group(store).create_array("a", data=np.zeros(16 << 20, "f4"), chunks=(16 << 20,), compressors=None, fill_value=1)
    store.close()
    before = squall.set_options(memory="16M")
    try:
        with pytest.raises(MemoryError, match="chunk 0: .*a/c/0: a chunk needs 67"):
            squall.open(path)["a"][...]
    finally:
        squall.set_options(**before)


def test_an_archive_that_changed_since_it_was_opened_is_an_error(tmp_path):
    path = one_array(tmp_path / "x.zip")
    array = squall.open(path)["a"]
    copy = pickle.dumps(array)
    assert array[0, 1] == 1
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("a/c/1/0.new", b"")
    with pytest.raises(squall.Error, match="changed since it was opened"):
        array[0, 1]
    with pytest.raises(squall.Error, match="changed since"):
        pickle.loads(copy)[0, 1]
    assert squall.open(path)["a"][0, 1] == 1


def test_arrays_in_archives_are_pickled_by_path(tmp_path):
    path = make(tmp_path / "store.zip")
    array = squall.open(path)["below/blosc"]
    data = pickle.dumps(array)
    assert len(data) < 1024
    script = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read())[...].sum())"
    out = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, check=True).stdout
    assert float(out) == array[...].sum()


@pytest.mark.parametrize("codecs", ["none", "zstd"])
def test_a_deflated_member_is_inflated_once_for_many_points(tmp_path, codecs):
    values = np.random.default_rng(5).integers(0, 50, (500, 600)).astype("i4")
    squall.create_array(tmp_path / "a.zarr", "a", data=values, chunks=(500, 600), codecs=codecs)
    path = shutil.make_archive(tmp_path / "a", "zip", tmp_path / "a.zarr")
    time.sleep(0.1)  # what was written a moment ago is not kept

    def bytes_read():
        return int(pathlib.Path("/proc/self/io").read_text().split()[1])

    a = squall.open(path)["a"]
    before = bytes_read()
    assert a[3, 4] == values[3, 4]
    first = bytes_read() - before
    assert [a[n, 2 * n] for n in range(50)] == [values[n, 2 * n] for n in range(50)]
    assert first > 100_000 and bytes_read() - before - first < 50_000
    np.testing.assert_array_equal(a[...], values)


def test_threads_read_one_archive_together(tmp_path):
    path = make(tmp_path / "store.zip", method="deflated")
    group = squall.open(path)
    names = ["plain", "below/blosc", "sharded", "sharded_plain", "gzip", "part"] * 8
    expected = {name: squall.open(path)[name][...] for name in names}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for name, values in zip(names, pool.map(lambda name: group[name][...], names), strict=True):
            np.testing.assert_array_equal(values, expected[name])


def test_the_command_reads_archives(tmp_path, squall):
    path = one_array(tmp_path / "x.zip")
    assert "zarr v3, 1 array" in squall("info", path).out
    assert [row["name"] for row in json.loads(squall("ls", "--json", path).out)] == ["a"]
    assert squall("get", path, "a").out.splitlines()[-1] == "7,5,47"


def test_verify_decodes_what_is_in_an_archive(tmp_path, squall):
    def spoil(info, data):
        if info.filename == "a/c/0/0":
            info.compress_type = zipfile.ZIP_LZMA
        return info, data

    path = one_array(tmp_path / "x.zip", GzipCodec())
    assert "2 chunks decoded: 0 bad, 0 absent" in squall("verify", path).out
    told = squall("verify", rewrite(path, spoil), check=False)
    assert told.code == 5 and "chunk 0/0" in told.out and "neither stored nor deflated" in told.out
    rewrite(path, lambda info, data: None if info.filename == "a/c/0/0" else (info, data))
    assert "2 chunks decoded: 0 bad, 1 absent" in squall("verify", path, check=False).out


@pytest.mark.parametrize("version", [2, 3])
def test_an_archive_may_be_one_array(tmp_path, version):
    path = tmp_path / "cube.zip"
    store = ZipStore(path, mode="w")
    zarr.create_array(store, shape=SHAPE, chunks=(4, 3, 5), dtype="f4", zarr_format=version)[...] = numbers()
    store.close()
    np.testing.assert_array_equal(squall.open_array(path)[...], numbers())


def test_a_part_of_a_shard_costs_only_that_part(tmp_path):
    path = tmp_path / "cube.zip"
    store = ZipStore(path, mode="w")
    values = np.random.default_rng(0).random((64, 64, 256)).astype("f4")
    zarr.create_array(store, shape=values.shape, chunks=(8, 8, 64), shards=values.shape, dtype="f4", compressors=None)[...] = values
    store.close()
    array = squall.open_array(path)
    read = """if True:
        import sys, squall
        array = squall.open_array(sys.argv[1])
        before = int(open("/proc/self/io").read().split()[1])
        assert array[9, 9, 70] != 0
        print(int(open("/proc/self/io").read().split()[1]) - before)
    """
    out = subprocess.run([sys.executable, "-c", read, str(path)], capture_output=True, text=True, check=True).stdout
    assert int(out) < 64 << 10 < path.stat().st_size / 50
    np.testing.assert_array_equal(array[9, 9, 60:70], values[9, 9, 60:70])


def test_a_lie_about_the_directory_costs_no_memory(tmp_path):
    path, total = tmp_path / "x.zip", 3 << 30
    with open(path, "wb") as file:  # sparse: nothing but a beginning and an end
        file.write(b"PK\x03\x04")
        file.seek(total - 22)
        file.write(struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 65535, 65535, total - 22 - 4, 4, 0))
    limited = f"ulimit -v {1 << 20}; exec {BUILD / 'squall'} info {path}"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert done.returncode == 1 and "no member's row where one should be" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "zip -q -0 -r ../x.zip .",
        "zip -q -9 -r ../x.zip .",
        "zip -q -r - . | cat > ../x.zip",
        "zip -q -fz -0 -r ../x.zip .",
        "jar cf ../x.zip *",
    ],
)
def test_archives_of_other_programs_read_equal(tmp_path, command):
    if not shutil.which(command.split()[0]):
        pytest.skip(f"{command.split()[0]} is not there")
    with zipfile.ZipFile(make(tmp_path / "by_python.zip")) as archive:
        archive.extractall(tmp_path / "store")
    subprocess.run(command, shell=True, cwd=tmp_path / "store", check=True)
    ours, expected = squall.open(tmp_path / "x.zip"), squall.open(tmp_path / "store")
    assert not ours.problems
    for name in ["plain", "below/blosc", "below/deeper/big", "part", "sharded", "sharded_plain", "gzip", "scalar"]:
        np.testing.assert_array_equal(ours[name][...], expected[name][...])
