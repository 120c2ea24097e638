"""Zarr arrays of random metadata, types, codecs and grids, and those that other libraries wrote: squall reads, whole and in parts, bit for
bit what zarr-python reads, and tensorstore, where it knows what they are made of; and what squall writes and makes, they read."""

import itertools
import json
import pickle
import random
import re
import shutil
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import squall as sq
import tensorstore
import zarr
from conftest import BUILD, ROOT
from zarr_random import NEWEST, REFUSED, Case, codec_names

warnings.filterwarnings("ignore", module="zarr")
EACH = 250
REQUIREMENTS = ROOT / "tests" / "requirements-elsewhere.txt"
try:
    import zarrs  # where the newest Python is
except ImportError:
    zarrs = None
if NEWEST:
    zarr.config.set({"array.rectilinear_chunks": True})


def bits(values):
    return values.ravel().tolist() if values.dtype.hasobject else np.ascontiguousarray(values).tobytes()


def native(values):
    return values if values.dtype.names else values.astype(values.dtype.newbyteorder("="), copy=False)


def assert_same(found, wanted, what):
    """Shape, type and every bit: a NaN's payload is data too. The machine's byte order, but for structs, whose fields keep their own."""
    wanted = native(wanted)
    assert found.shape == wanted.shape, what
    assert found.dtype == wanted.dtype, what
    if bits(found) != bits(wanted):
        raise AssertionError(f"values differ: {what}\nfound {found}\nwanted {wanted}")


def open_in_tensorstore(case, folder, **more):
    kvstore = {"driver": "file", "path": str(folder / case.path)}
    return tensorstore.open({"driver": "zarr3" if case.version == 3 else "zarr", "kvstore": kvstore, **more}).result().read().result()


def same_in_tensorstore(case, folder, found):
    """False where tensorstore does not know a type, codec or grid. It reads structs field by field."""
    if found.dtype.kind in "SV" and not found.dtype.names:
        return False  # what it gives of them has elements of no bytes under today's numpy
    try:
        if found.dtype.names:
            for name in found.dtype.names:
                assert_same(native(found[name]), open_in_tensorstore(case, folder, field=name), case)
        else:
            assert_same(found, open_in_tensorstore(case, folder), case)
    except ValueError as error:
        if "Error parsing object member" in str(error) or "not compatible with subsequent bytes -> bytes codecs" in str(error):
            return False
        raise
    return True


def same_in_zarrs(case, folder, wanted):
    """False where zarrs does not know a type or codec, or gets it wrong, also of what zarr-python wrote; None where there is no zarrs."""
    if not zarrs:
        return None
    text = json.dumps(case.document)
    sizes = {int(n) for n in re.findall('"typesize": ([0-9]+)', text)}
    # big-endian complex numbers, fill values that are bits of a NaN, and Blosc of anything but elements
    if wanted.dtype.kind == "c" and '"big"' in text or '"0x' in text or not sizes <= {wanted.dtype.itemsize}:
        return False
    if any(now.endswith("blosc") and before != "bytes" for before, now in itertools.pairwise(case.codecs)):
        return False
    try:
        with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "codec_pipeline.strict": True}):
            theirs = zarr.open_array(folder, path=case.path, mode="r", zarr_format=case.version)
            values = np.asarray(theirs[...], dtype=object if wanted.dtype == object else theirs.dtype)
    except Exception as error:  # it has a class of its own for each
        if re.search("^Unsupported|not support|C contiguous", f"{type(error).__name__} {error}"):
            return False
        raise
    assert_same(native(values), wanted, case)
    return True


def names_below(group):
    return [a.name for a in group.arrays.values()] + [name for g in group.groups.values() for name in names_below(g)]


def opened(case, folder, **how):
    """The only array of the store."""
    root = sq.open(folder, **how)
    if not case.path:
        return root
    assert not root.problems and names_below(root) == [case.path], case
    return root[case.path]


def check_description(case, array, fill):
    assert array._dataset.format == f"zarr v{case.version}", case
    assert array.shape == tuple(case.shape) and array.dims == case.dims, case
    assert dict(array.attrs) == case.attributes, case
    if case.document["fill_value"] is None:
        assert array.fill_value is None, case
    elif array.dtype == object:
        assert array.fill_value == fill, case
    else:
        assert_same(np.asarray(array.fill_value, dtype=array.dtype), np.asarray(fill, dtype=array.dtype), case)


def check_reading(number, folder, counts):
    case = Case(number)
    wanted, fill = case.write(folder)
    array = opened(case, folder)
    if case.refused:
        counts["refused"] += 1
        assert array.unsupported and case.refused[0] in array.unsupported, f"{array.unsupported}; {case}"
        if wanted.size:
            with pytest.raises(sq.Error, match="unsupported") as failure:
                array[...]
            assert failure.value.status == sq.Status.EUNSUPPORTED, case
        return
    assert array.unsupported is None, f"{array.unsupported}; {case}"
    counts["read"] += 1
    check_description(case, array, fill)
    whole = array[...]
    assert_same(whole, wanted, case)
    for _ in range(4):
        key = case.selection()
        assert_same(array[key], wanted[key], f"{case} {key}")
    counts["tensorstore"] += same_in_tensorstore(case, folder, whole)


@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("codecs", [[], [{"name": "gzip", "configuration": {"level": 1}}]], ids=["stored", "gzip"])
@pytest.mark.parametrize("kind", ["bfloat16", "int4", "int2"])
def test_types_that_only_tensorstore_writes(tmp_path, kind, codecs, sharded):
    """Of small integers it leaves the upper bits of a byte zero, also below a sign."""
    chain = [{"name": "bytes", "configuration": {"endian": "little"}} if kind == "bfloat16" else {"name": "bytes"}, *codecs]
    index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    if sharded:
        chain = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3], "codecs": chain, "index_codecs": index}}]
    grid = {"name": "regular", "configuration": {"chunk_shape": [4, 6]}}
    metadata = {"shape": [7, 10], "data_type": kind, "chunk_grid": grid, "codecs": chain, "fill_value": -1}
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path)}}
    store = tensorstore.open({**spec, "metadata": metadata}, create=True).result()
    least = {"bfloat16": -100, "int4": -8, "int2": -2}[kind]
    values = np.random.default_rng(1).integers(least, -least, (7, 10)).astype(store.dtype.numpy_dtype)
    store[:5].write(values[:5]).result()
    array = sq.open_array(tmp_path, mode="r+")
    np.testing.assert_array_equal(array[...].astype(float), store.read().result().astype(float))
    np.testing.assert_array_equal(array[1:7:3, 4].astype(float), store.read().result()[1:7:3, 4].astype(float))
    array[2:] = values[2:]
    np.testing.assert_array_equal(tensorstore.open(spec).result().read().result().astype(float), values.astype(float))


def files_of(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def check_writing(number, folder, counts):
    """The same regions written by zarr-python and by squall, each into a store of its own with the same metadata."""
    case = Case(number)
    wanted, _ = case.write(folder / "theirs")
    case.put_documents(folder / "ours")
    array = opened(case, folder / "ours", mode="r+", write_empty_chunks=case.empty_chunks)
    try:
        for region in case.regions:
            array[region] = case.values[region]
    except NotImplementedError as error:
        words = [*case.refused, *(["writing to a rectilinear grid"] if case.rectilinear else [])]
        assert any(word in str(error) for word in words), f"{error}; {case}"
        assert files_of(folder / "ours") == set(case.documents), case
        counts["refused"] += 1
        return
    if case.refused:  # and nothing was to be written
        counts["refused"] += 1
        return
    check_written(case, array, array[...] if case.scrambled else wanted, folder / "ours", counts)
    differ = files_of(folder / "ours") ^ files_of(folder / "theirs")
    assert not differ, f"only one wrote {sorted(differ)}; {case.regions} {case}"


def check_written(case, array, wanted, folder, counts):
    """What all read of a store of ours."""
    counts["read"] += 1
    whole = array[...]
    assert_same(whole, wanted, case)
    theirs = zarr.open_array(folder, path=case.path, mode="r", zarr_format=case.version)
    assert_same(native(np.asarray(theirs[...], dtype=object if whole.dtype == object else theirs.dtype)), wanted, case)
    counts["tensorstore"] += same_in_tensorstore(case, folder, whole)
    if (same := same_in_zarrs(case, folder, whole)) is not None:
        counts["zarrs"] += same


def how_to_create(case):
    """The arguments of create_array for an array of a case; None where it has none."""
    document, v3 = case.document, case.version == 3
    how = {"shape": case.shape, "zarr_format": case.version, "fill_value": document["fill_value"], "attributes": case.attributes}
    if how["fill_value"] is None or case.refused:
        return None
    if not v3:
        dtype = document["dtype"]
        dtype = np.dtype([tuple(field) for field in dtype]) if isinstance(dtype, list) else dtype
        how |= {"dtype": {"string": str, "variable_length_bytes": bytes}.get(case.kind.feature, dtype), "chunks": document["chunks"]}
        how |= {"codecs": document["compressor"] or "none", "filters": document["filters"], "order": document["order"]}
        return {**how, "separator": document.get("dimension_separator", "."), "dims": case.dims if any(case.dims) else None}
    encoding = document["chunk_key_encoding"]
    if document["chunk_grid"]["name"] != "regular" or encoding["name"] != "default":
        return None
    how |= {"dtype": document["data_type"], "separator": encoding.get("configuration", {}).get("separator", "/")}
    how |= {"dims": document.get("dimension_names")}
    chunks, codecs = document["chunk_grid"]["configuration"]["chunk_shape"], document["codecs"]
    if codecs[0]["name"] != "sharding_indexed" or len(codecs) > 1:
        return {**how, "chunks": chunks, "codecs": codecs}
    options = codecs[0]["configuration"]
    how |= {"shards": chunks, "chunks": options["chunk_shape"], "codecs": options["codecs"], "index_codecs": options["index_codecs"]}
    return {**how, "index_location": options.get("index_location", "end")}


def metadata_of(array):
    """As zarr-python would write them again, but for what may be ignored and no array is made with."""
    files = array.metadata.to_buffer_dict(zarr.core.buffer.default_buffer_prototype())
    documents = {name: json.loads(content.to_bytes()) for name, content in files.items()}
    for document in documents.values():
        document.pop("squall_test", None)
        if document.get("_ARRAY_DIMENSIONS") == []:
            del document["_ARRAY_DIMENSIONS"]
    return documents


def check_creating(number, folder, counts):
    """Of an array that squall made, zarr-python takes the metadata for the same as those that it was made by."""
    case = Case(number)
    how = how_to_create(case)
    if how is None:
        counts["refused"] += 1
        return
    case.put_documents(folder / "theirs")
    wanted = zarr.open_array(folder / "theirs", path=case.path, mode="r", zarr_format=case.version)
    array = sq.create_array(folder / "ours", case.path, **how)
    array[...] = case.values
    check_written(case, array, array[...] if case.lossy else case.values.astype(array.dtype), folder / "ours", counts)
    made = zarr.open_array(folder / "ours", path=case.path, mode="r", zarr_format=case.version)
    assert metadata_of(made) == metadata_of(wanted), case


def check_batch(check, batch, folder):
    counts = {"read": 0, "refused": 0, "tensorstore": 0, "zarrs": 0}
    for number in range(batch * EACH, (batch + 1) * EACH):
        check(number, folder / str(number), counts)
    shutil.rmtree(folder)
    assert counts["read"] + counts["refused"] == EACH
    assert counts["read"] > 0.4 * EACH and counts["tensorstore"] > 0.05 * EACH, counts
    assert counts["zarrs"] > 0.05 * EACH or not zarrs or check is check_reading, counts


@pytest.mark.parametrize("batch", range(4))
def test_random_arrays_read_as_zarr_python_reads_them(tmp_path, batch):
    check_batch(check_reading, batch, tmp_path)


@pytest.mark.parametrize("batch", range(2))
def test_random_arrays_that_squall_fills_are_what_zarr_python_would_have_made(tmp_path, batch):
    check_batch(check_writing, batch, tmp_path)


@pytest.mark.parametrize("batch", range(2))
def test_random_arrays_that_squall_makes_open_elsewhere(tmp_path, batch):
    check_batch(check_creating, batch, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("batch", range(2, 48))
@pytest.mark.parametrize("check", [check_reading, check_writing, check_creating])
def test_many_random_arrays(tmp_path, check, batch):
    check_batch(check, batch, tmp_path)


@pytest.fixture(scope="module")
def elsewhere():
    """The Python of an environment with the readers of tests/support/check_elsewhere.py, made once; they do not go with zarr-python 3."""
    folder, newest = BUILD / "elsewhere", ROOT / ".venv-newest" / "bin" / "python"
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        subprocess.run([newest if newest.exists() else sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", REQUIREMENTS]
        done = subprocess.run(pip, capture_output=True, text=True)
        if "No matching distribution" in done.stderr or "Could not find a version" in done.stderr:
            pytest.skip("zarr-python 2, rasterio and netCDF4 cannot be had")
        assert done.returncode == 0, done.stderr
        (folder / "done").touch()
    return python


@pytest.mark.long
def test_arrays_that_squall_makes_open_in_zarr_python_2_gdal_and_netcdf(elsewhere, tmp_path):
    for number in range(2000):
        case = Case(number)
        if (how := how_to_create(case)) is None:
            continue
        array = sq.create_array(tmp_path / str(number) / "ours", case.path, **how)
        array[...] = case.values
        (tmp_path / str(number) / "case.json").write_text(json.dumps({"version": case.version, "path": case.path}))
        (tmp_path / str(number) / "wanted.pickle").write_bytes(pickle.dumps(array[...]))
    script = ROOT / "tests" / "support" / "check_elsewhere.py"
    done = subprocess.run([elsewhere, script, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not found["differ"], found
    assert found["read"]["zarr 2"] > 400 and not found["refused"]["zarr 2"], found
    assert found["read"]["GDAL"] > 30 and found["read"]["netcdf-c"] > 15, found


# ---- stores of others ------------------------------------------------------------------------------------------------------------------


def names_used(folder):
    """The names of an array's type and codecs."""
    if (folder / "zarr.json").exists():
        document = json.loads((folder / "zarr.json").read_text())
        return [*codec_names([document["data_type"]]), *codec_names(document["codecs"])]
    document = json.loads((folder / ".zarray").read_text())
    return list(codec_names([*(document["filters"] or []), *filter(None, [document["compressor"]])]))


def arrays_in(folder):
    """Folders below that hold an array's metadata, whatever the version."""
    documents = [*folder.rglob(".zarray"), *folder.rglob("zarr.json")]
    return sorted({p.parent for p in documents if p.name == ".zarray" or json.loads(p.read_text())["node_type"] == "array"})


def without_bitround(folder, copy):
    """zarr-python knows no codec bitround, and needs none: it changes nothing when data is read."""
    shutil.copytree(folder, copy)
    document = json.loads((copy / "zarr.json").read_text())
    document["codecs"] = [codec for codec in document["codecs"] if codec["name"] != "bitround"]
    (copy / "zarr.json").write_text(json.dumps(document))
    return copy


def test_every_shared_store_reads_equal_or_is_refused_by_name(shared, tmp_path):
    read = refused = 0
    for folder in arrays_in(shared / "data" / "zarr"):
        array = sq.open_array(folder)
        assert not array._dataset.problems, folder
        corner = (*[slice(0, 1000)] * array.ndim, ...)
        if unread := [name for name in names_used(folder) if name.removeprefix("numcodecs.") in REFUSED]:
            assert array.unsupported and unread[0] in array.unsupported, f"{folder}: {array.unsupported}"
            with pytest.raises(sq.Error, match="unsupported") as failure:
                array[(*[slice(0, 1)] * array.ndim, ...)]
            assert failure.value.status == sq.Status.EUNSUPPORTED
            assert array.name in str(failure.value) and unread[0] in str(failure.value)
            refused += 1
            continue
        assert array.unsupported is None, f"{folder}: {array.unsupported}"
        theirs = without_bitround(folder, tmp_path / folder.name) if "bitround" in names_used(folder) else folder
        wanted = zarr.open_array(theirs, mode="r")
        assert_same(array[corner], np.asarray(wanted[corner], dtype=object if array.dtype == object else None), folder)
        read += 1
    assert (read, refused) == (62, 8)


def test_a_chunk_that_was_lost_is_told(shared, squall, tmp_path):
    """Zarr takes a chunk that is not there for fill; a check of the store says so."""
    subprocess.run([sys.executable, shared / "cases" / "missing_chunk.py", tmp_path], check=True, capture_output=True)
    done = squall("verify", tmp_path / "lost.zarr")
    assert "t: chunk 3/0: absent" in done.out + done.err
    assert "1 absent" in done.out + done.err and "7 chunks" in done.out + done.err


def test_shards_written_in_pieces_by_many_threads_lose_nothing(shared, tmp_path):
    """Pieces of a chunk each, of which eight share a shard."""
    subprocess.run([sys.executable, shared / "cases" / "partial_shards.py", tmp_path], check=True, capture_output=True)
    values, array = np.load(tmp_path / "values.npy"), sq.open_array(tmp_path / "shards.zarr", mode="r+")
    starts = list(itertools.product(range(0, 100, 25), repeat=3))
    random.Random(1).shuffle(starts)

    def write(start):
        box = tuple(slice(s, s + 25) for s in start)
        array[box] = values[box]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, starts))
    np.testing.assert_array_equal(array[...], values)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "shards.zarr", mode="r")[...], values)
