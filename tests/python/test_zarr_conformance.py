"""Zarr arrays of random metadata, types, codecs and grids, and those that other libraries wrote: squall reads, whole and in parts, bit for
bit what zarr-python reads; and what tensorstore reads, where it knows what they are made of."""

import json
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
import squall as sq
import tensorstore
import zarr
from zarr_random import NEWEST, REFUSED, Case, codec_names

warnings.filterwarnings("ignore", module="zarr")
EACH = 250
if NEWEST:
    zarr.config.set({"array.rectilinear_chunks": True})


def bits(values):
    return values.ravel().tolist() if values.dtype.hasobject else np.ascontiguousarray(values).tobytes()


def assert_same(found, wanted, what):
    """Shape, type and every bit: a NaN's payload is data too. The machine's byte order, but for structs, whose fields keep their own."""
    assert found.shape == wanted.shape, what
    if not wanted.dtype.names:
        wanted = wanted.astype(wanted.dtype.newbyteorder("="), copy=False)
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
                field = found[name].astype(found[name].dtype.newbyteorder("="))
                assert_same(field, open_in_tensorstore(case, folder, field=name), case)
        else:
            assert_same(found, open_in_tensorstore(case, folder), case)
    except ValueError as error:
        if "Error parsing object member" in str(error) or "not compatible with subsequent bytes -> bytes codecs" in str(error):
            return False
        raise
    return True


def names_below(group):
    return [a.name for a in group.arrays.values()] + [name for g in group.groups.values() for name in names_below(g)]


def opened(case, folder):
    """The only array of the store."""
    root = sq.open(folder)
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


def check(number, folder, counts):
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


def check_batch(batch, folder):
    counts = {"read": 0, "refused": 0, "tensorstore": 0}
    for number in range(batch * EACH, (batch + 1) * EACH):
        check(number, folder / str(number), counts)
    assert counts["read"] + counts["refused"] == EACH
    assert counts["read"] > 0.85 * EACH and counts["tensorstore"] > 0.1 * EACH, counts


@pytest.mark.parametrize("batch", range(8))
def test_random_arrays_read_as_zarr_python_reads_them(tmp_path, batch):
    check_batch(batch, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("batch", range(8, 120))
def test_many_random_arrays_read_as_zarr_python_reads_them(tmp_path, batch):
    check_batch(batch, tmp_path)
    shutil.rmtree(tmp_path)


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
