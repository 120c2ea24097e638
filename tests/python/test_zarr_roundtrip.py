"""Zarr stores both ways: what zarr-python wrote reads equal here, and what the library's writer wrote opens there without a word.
zarr-python, its codecs and numpy are the oracle; nothing here was computed by the code under test."""

import json
import pathlib
import random
import subprocess
import sys
import warnings

import numcodecs
import numpy as np
import pytest
import squall as sq
import zarr

ROOT = pathlib.Path(__file__).resolve().parents[2]
warnings.filterwarnings("ignore", module="zarr")
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
FILLS = {"bool": [False, True], "float": [0.0, 1.5, float("nan"), float("inf"), -float("inf")], "int": [0, -7, 100], "uint": [0, 7, 200]}
V2_COMPRESSORS = [
    None,
    numcodecs.Zstd(level=1),
    numcodecs.GZip(level=1),
    numcodecs.Zlib(level=1),
    numcodecs.LZ4(),
    numcodecs.Blosc("zstd", 3, numcodecs.Blosc.SHUFFLE),
    numcodecs.Blosc("lz4", 5, numcodecs.Blosc.BITSHUFFLE),
    numcodecs.Blosc("zlib", 1, numcodecs.Blosc.NOSHUFFLE),
]


def v3_compressors():
    from zarr import codecs

    return [
        [],
        [codecs.ZstdCodec(level=3)],
        [codecs.ZstdCodec(level=1, checksum=True)],
        [codecs.GzipCodec(level=1)],
        [codecs.BloscCodec(cname="zstd", clevel=3, shuffle="shuffle")],
        [codecs.BloscCodec(cname="lz4", clevel=5, shuffle="bitshuffle")],
        [codecs.BloscCodec(cname="blosclz", clevel=9, shuffle="noshuffle")],
        [codecs.Crc32cCodec()],
        [codecs.ZstdCodec(level=1), codecs.Crc32cCodec()],
    ]


def fills_of(dtype):
    kind = np.dtype(dtype).kind
    return FILLS[{"b": "bool", "f": "float", "i": "int", "u": "uint"}[kind]]


def random_values(rng, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    bits = rng.integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8)
    values = bits.view(dtype.newbyteorder("<"))[..., 0] if bits.size else np.empty(shape, dtype)
    return values.astype(dtype).reshape(shape)


def random_texts(rng, shape):
    letters = ["", "a", "Zürich", "🎉", "x" * 40, 'a,b\n"c"']
    return np.array([rng.choice(letters) for _ in range(int(np.prod(shape)))], dtype=object).reshape(shape)


def random_shape(rng):
    rank = rng.choice([0, 1, 1, 2, 2, 3, 4])
    shape = tuple(rng.choice([0, 1, 2, 3, 5, 8, 13]) if rng.random() < 0.9 else 1 for _ in range(rank))
    return shape, tuple(rng.randint(1, max(1, n + 2)) for n in shape)


def random_slices(rng, shape):
    def one(n):
        start = rng.randint(0, n)
        return slice(start, rng.randint(start, n), rng.choice([1, 1, 1, 2, 3, 7]))

    return [one(n) for n in shape]


def assert_same(got, wanted, what):
    assert got.shape == wanted.shape, what
    if got.dtype == object:
        assert got.ravel().tolist() == [t if isinstance(t, bytes) else str(t) for t in wanted.ravel().tolist()], what
        return
    if got.dtype.kind in "US" and not wanted.shape:
        wanted = wanted.astype(got.dtype)  # a lone text is as long as it is
    assert got.dtype == wanted.dtype.newbyteorder("="), what
    # bit for bit: a NaN's payload is data too
    assert np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(wanted.astype(got.dtype)).tobytes(), what


def write_some(rng, array, values):
    """Some boxes of the array, so that some chunks are missing and some are partly fill."""
    if rng.random() < 0.5 or not values.size:
        array[...] = values
        return
    for _ in range(2):
        box = tuple(slice(s.start, s.stop) for s in random_slices(rng, values.shape))
        array[box] = values[box]


def make_case(rng, folder, number):
    """One array of random kind: its group's path, its name, what was asked for."""
    values_rng = np.random.default_rng(number)
    shape, chunks = random_shape(rng)
    version = rng.choice([2, 3])
    name = rng.choice(["t", "group/t", "a/b/c"])
    kind = rng.choice([*TYPES, *TYPES, "string", "text"])
    compressors = rng.choice(V2_COMPRESSORS if version == 2 else v3_compressors())
    options = {"shape": shape, "chunks": chunks, "compressors": compressors}
    separator = rng.choice("./")
    options["chunk_key_encoding"] = {"name": "v2" if version == 2 else rng.choice(["default", "v2"]), "separator": separator}
    if kind == "string":
        values, options["dtype"], options["fill_value"] = random_texts(rng, shape), str, rng.choice(["", "fill"])
    elif kind == "text":
        values = random_texts(rng, shape).astype("U7")
        options["dtype"], options["fill_value"] = rng.choice(["<U7", ">U7"] if version == 2 else ["<U7"]), rng.choice(["", "é🎉"])
    else:
        order = rng.choice("<>") if np.dtype(kind).itemsize > 1 else "|"
        values, options["dtype"] = random_values(values_rng, kind, shape), np.dtype(kind).newbyteorder(order)
        options["fill_value"] = rng.choice(fills_of(kind))
        if version == 3 and order == ">":
            from zarr.codecs import BytesCodec

            options["serializer"] = BytesCodec(endian="big")
    if version == 3 and shape and rng.random() < 0.7:
        options["dimension_names"] = [rng.choice([f"d{i}", None]) for i in range(len(shape))]
    if kind in ("string", "text"):
        options["compressors"] = rng.choice([None, numcodecs.Zstd(level=1)] if version == 2 else v3_compressors()[:4])
    group = zarr.open_group(folder, mode="w", zarr_format=version)
    array = group.create_array(name, **options)
    write_some(rng, array, values)
    if rng.random() < 0.4:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(folder)
    return name, options, version


def names_below(group):
    return [a.name for a in group.arrays.values()] + [name for g in group.groups.values() for name in names_below(g)]


@pytest.mark.parametrize("batch", range(8))
def test_random_stores_of_zarr_python_read_equal(tmp_path, batch):
    rng = random.Random(batch)
    for number in range(50):
        store = tmp_path / f"{number}.zarr"
        name, options, version = make_case(rng, store, batch * 1000 + number)
        wanted = zarr.open_array(store, path=name, mode="r")
        root = sq.open(store)
        what = f"{store} v{version} {name}: {options}"
        assert root.format == f"zarr v{version}", what
        assert not root.problems and names_below(root) == [name], what
        array = root[name]
        assert array.unsupported is None, f"{what}: {array.unsupported}"
        assert array.shape == options["shape"] and array.chunks == options["chunks"], what
        if "dimension_names" in options:
            assert array.dims == tuple(options["dimension_names"]), what
        assert_same(array[...], np.asarray(wanted[...]), what)
        for _ in range(3):
            box = (*random_slices(rng, array.shape), ...)  # "...": an array, also where there is no dimension
            assert_same(array[box], np.asarray(wanted[box]), f"{what} {box}")


@pytest.fixture(scope="module")
def own_store(support, tmp_path_factory):
    store = tmp_path_factory.mktemp("own") / "store.zarr"
    subprocess.run([support / "write_store", store], check=True)
    return store


def newest_python():
    python = ROOT / ".venv-newest" / "bin" / "python"
    return [python] if python.exists() else []


@pytest.mark.parametrize("python", [pathlib.Path(sys.executable), *newest_python()], ids=str)
def test_stores_of_ours_open_without_argument_or_warning(own_store, python):
    done = subprocess.run([python, ROOT / "tests" / "support" / "check_store.py", own_store], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "156"


def test_stores_of_ours_are_written_the_same_twice(own_store, support, tmp_path):
    subprocess.run([support / "write_store", tmp_path / "again.zarr"], check=True)
    files = {p.relative_to(own_store): p.read_bytes() for p in own_store.rglob("*") if p.is_file()}
    again = {p.relative_to(tmp_path / "again.zarr"): p.read_bytes() for p in (tmp_path / "again.zarr").rglob("*") if p.is_file()}
    assert files == again


def test_the_command_tells_and_gives_the_same(own_store, squall, tmp_path):
    group = zarr.open_group(own_store, mode="r")
    arrays = {a["name"]: a for a in json.loads(squall("info", "--json", own_store).out)["arrays"]}
    assert len(arrays) == 156
    for name in sorted(arrays)[::11]:
        wanted = np.asarray(group[name][...])
        assert arrays[name]["shape"] == list(wanted.shape) and arrays[name]["type"] == name.split("_")[0]
        squall("get", own_store, name, "-o", tmp_path / "x.npy")
        got = np.load(tmp_path / "x.npy")
        assert_same(got.astype(object) if got.dtype.kind == "U" else got, wanted, name)
        if wanted.ndim == 2 and wanted.size:
            squall("get", own_store, name, "-s", f"{group[name].metadata.dimension_names[0]}=-1", "-o", tmp_path / "x.npy")
            row = np.load(tmp_path / "x.npy")
            assert_same(row.astype(object) if row.dtype.kind == "U" else row, wanted[-1], name)


def test_the_command_names_types_that_it_does_not_read(squall, tmp_path):
    zarr.create_array(tmp_path / "t.zarr", shape=(3,), dtype="int8", fill_value=0)
    document = tmp_path / "t.zarr" / "zarr.json"
    document.write_text(document.read_text().replace('"int8"', '"float8_e4m3"'))
    (array,) = json.loads(squall("info", "--json", tmp_path / "t.zarr").out)["arrays"]
    assert array["type"] == "float8_e4m3" and "unsupported data type" in array["unsupported"]
    assert "float8_e4m3" in squall("ls", tmp_path / "t.zarr").out
    done = squall("get", tmp_path / "t.zarr", "t.zarr", check=False)
    assert done.code == 1 and "unsupported data type float8_e4m3" in done.err


def test_consolidated_metadata_is_each_arrays_own(own_store):
    root = json.loads((own_store / "zarr.json").read_text())
    for name, document in root["consolidated_metadata"]["metadata"].items():
        assert json.loads((own_store / name / "zarr.json").read_text()) == document


# What no release reads, and what this one does not: a name that comes to be read has to leave this list, or the tests fail.
REFUSED_FOR_GOOD = "pcodec numcodecs.pcodec zfpy numcodecs.zfpy lzma numcodecs.lzma optional".split()
REFUSED_SO_FAR = [
    *"bitround bz2 numcodecs.bz2 adler32 numcodecs.adler32 fletcher32 numcodecs.fletcher32".split(),
]


def name_of(extension):
    return extension if isinstance(extension, str) else extension["name"]


def names_used(folder):
    """The names of an array's type and codecs, in the order in which they are looked at."""
    if (folder / "zarr.json").exists():
        document = json.loads((folder / "zarr.json").read_text())
        return [name_of(document["data_type"]), *map(name_of, document["codecs"])]
    document = json.loads((folder / ".zarray").read_text())
    codecs = [*(document["filters"] or []), *([document["compressor"]] if document["compressor"] else [])]
    return [str(document["dtype"]), *(codec["id"] for codec in codecs)]


def refusal_of(folder):
    """The word that must be in the refusal of an array with what this release does not read; None where it reads all of it."""
    return next((name for name in names_used(folder) if name in [*REFUSED_FOR_GOOD, *REFUSED_SO_FAR]), None)


def arrays_in(folder):
    """Folders below that hold an array's metadata, whatever the version."""
    for path in sorted(folder.rglob("*")):
        if path.name == ".zarray" or (path.name == "zarr.json" and json.loads(path.read_text())["node_type"] == "array"):
            yield path.parent


def test_every_shared_store_reads_equal_or_is_refused_by_name(shared):
    read = refused = 0
    for folder in arrays_in(shared / "data" / "zarr"):
        word = refusal_of(folder)
        array = sq.open_array(folder)
        assert not array._dataset.problems, folder
        if word is None:
            assert array.unsupported is None, f"{folder}: {array.unsupported}"
            corner = (*[slice(0, 1000)] * array.ndim, ...)
            assert_same(array[corner], np.asarray(zarr.open_array(folder, mode="r")[corner]), folder)
            read += 1
            continue
        assert array.unsupported and word in array.unsupported, f"{folder}: {word} is read: {array.unsupported}"
        with pytest.raises(sq.Error, match="unsupported") as failure:
            array[(*[slice(0, 1)] * array.ndim, ...)]
        assert failure.value.status == sq.Status.EUNSUPPORTED
        assert array.name in str(failure.value) and word in str(failure.value)
        refused += 1
    assert read >= 38 and refused >= 6, f"{read} read, {refused} refused"


def test_what_is_no_dataset_is_refused_with_its_beginning(tmp_path):
    page = tmp_path / "page.grib"
    page.write_bytes(b"<!DOCTYPE html>\n")
    hdf5 = tmp_path / "x.nc"
    hdf5.write_bytes(b"\x89HDF\r\n\x1a\n....")
    for path, words in {page: '"<!DOCTYP"', hdf5: r"\\x89HDF", tmp_path / "nowhere": "no such file"}.items():
        with pytest.raises(sq.Error, match=words) as failure:
            sq.open(path)
        assert failure.value.path == str(path) and str(path) in str(failure.value)
