"""HDF5 elements of which some has no fixed size: texts, sequences and references, in compounds, arrays and sequences. squall reads what
h5py reads (texts as str, references as paths), and regions and references of HDF5 1.12 as texts that h5py's answers spell, too."""

import ctypes
import json
import struct

import h5py
import numpy as np
import pytest
import squall as sq
from hdf5_random import library, region_text
from test_hdf5_hostile import limited

TEXT, INTEGERS = h5py.string_dtype(), h5py.vlen_dtype("<i4")
TEXTS = ["", "a", "Zürich", "x" * 300]

STRUCTURES = {
    "texts": [("a", ">i4"), ("s", TEXT), ("z", "S3")],
    "everything": [("n", "<i2"), ("t", TEXT, (2,)), ("r", h5py.ref_dtype), ("in", [("v", INTEGERS), ("x", "<f8"), ("u", TEXT)])],
    "only sequences": [("v", INTEGERS), ("w", h5py.vlen_dtype("S2"))],
    "arrays of structures": [("k", "u1"), ("l", [("s", TEXT), ("b", "?")], (2, 2))],
}


def plain(value, f):
    """What h5py reads, in Python's own types."""
    if isinstance(value, h5py.RegionReference):
        return region_text(f, value) if value else ""
    if isinstance(value, h5py.Reference):
        return f[value].name if value else ""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray):
        return [plain(v, f) for v in value] if value.ndim else plain(value[()], f)
    if isinstance(value, np.void) and value.dtype.names:
        return tuple(plain(value[name], f) for name in value.dtype.names)
    return value.item() if isinstance(value, np.generic) else value


def some_value(rng, dtype, f):
    if h5py.check_string_dtype(dtype) and dtype.kind == "O":
        return TEXTS[rng.integers(len(TEXTS))]
    if h5py.check_vlen_dtype(dtype) is not None:
        base = h5py.check_vlen_dtype(dtype)
        return rng.integers(0, 90, rng.integers(0, 4)).astype(base)
    if h5py.check_ref_dtype(dtype):
        return [f.ref, f["group"].ref, h5py.Reference()][rng.integers(3)]
    if dtype.subdtype:
        base, shape = dtype.subdtype
        out = np.empty(shape, base)
        for index in np.ndindex(shape):
            out[index] = some_value(rng, base, f)
        return out
    if dtype.names:
        return tuple(some_value(rng, dtype[name], f) for name in dtype.names)
    return np.asarray(rng.integers(0, 2 if dtype.kind == "b" else 90)).astype(dtype)


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("how", [{}, {"chunks": (2, 3)}, {"chunks": (2, 3), "compression": "gzip", "maxshape": (None, 5)}])
def test_structures_that_hold_objects(tmp_path, name, how):
    rng, dtype = np.random.default_rng(1), np.dtype(STRUCTURES[name])
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as f:
        f.create_group("group")
        dset = f.create_dataset("x", (4, 5), dtype, **how)
        values = np.zeros((3, 5), dtype)
        for index in np.ndindex(3, 5):
            values[index] = some_value(rng, dtype, f)
        dset[:3] = values
    with h5py.File(tmp_path / "x.h5") as f:
        array, wanted = sq.open(tmp_path / "x.h5")["x"], f["x"][:3]
        found = array[...]
        assert found.dtype == array.dtype and found.dtype.names == dtype.names and found.dtype.hasobject
        assert plain(found[:3], f) == plain(wanted, f)
        none = plain(found[3], f)  # never written: zeros, and nothing
        assert none == [none[0]] * 5 and "None" not in str(none)
        for key in [np.s_[1], np.s_[2, 3], np.s_[:3:2, ::-2], np.s_[0:0], np.s_[[0, 2], 1]]:
            assert plain(np.asarray(array[key]), f) == plain(np.asarray(wanted[key]), f), key
        out = np.empty((2, 5), array.dtype)
        assert array.read(np.s_[1:3], out=out) is out and plain(out, f) == plain(wanted[1:3], f)


def test_sequences_of_texts_and_of_structures(tmp_path):
    pairs = np.dtype([("i", "<i2"), ("f", "<f4")])
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f.create_dataset("texts", (3,), h5py.vlen_dtype(TEXT))[0] = np.array(["a", "", "bcä"], object)
        f.create_dataset("pairs", (2,), h5py.vlen_dtype(pairs))[1] = np.array([(1, 2.5), (3, 4)], pairs)
        f.create_dataset("vectors", (2,), h5py.vlen_dtype(np.dtype(("<i2", (2,)))))
    group = sq.open(tmp_path / "x.h5")
    assert [list(v) for v in group["texts"][...]] == [["a", "", "bcä"], [], []]
    assert group["pairs"][1].dtype == pairs and group["pairs"][1].tolist() == [(1, 2.5), (3, 4)]
    assert group["pairs"][0].shape == (0,) and group["vectors"][0].shape == (0, 2)


class Sequence(ctypes.Structure):
    _fields_ = [("length", ctypes.c_size_t), ("elements", ctypes.c_void_p)]


def sequences(lists):
    """hvl_t's of hvl_t's … of int32's; what they point at must be kept."""
    kept, out = [], (Sequence * len(lists))()
    for i, one in enumerate(lists):
        if one and isinstance(one[0], list):
            inner, below = sequences(one)
            kept.append(below)
        else:
            inner = (ctypes.c_int32 * len(one))(*one)
        kept.append(inner)
        out[i] = Sequence(len(one), ctypes.cast(inner, ctypes.c_void_p))
    return out, kept


def call(name, *args):
    """Of libhdf5, numbers as those of 64 bits."""
    status = getattr(library(), name)(*[ctypes.c_int64(a) if isinstance(a, int) else a for a in args])
    assert status >= 0, name


def nested_type(depth):
    low = h5py.h5t.STD_I32LE
    for _ in range(depth):
        low = h5py.h5t.vlen_create(low)
    return low


def test_sequences_of_sequences(tmp_path):
    lists = [[[[1], [2, 3]], [[4]]], [[[]]], [[[5, 6, 7], [8]]], []]
    memory, kept = sequences(lists)
    with h5py.File(tmp_path / "x.h5", "w") as f:
        low = nested_type(3)
        dset = h5py.h5d.create(f.id, b"x", low, h5py.h5s.create_simple((4,)))
        call("H5Dwrite", dset.id, low.id, 0, 0, 0, ctypes.byref(memory))
    assert kept
    found = sq.open(tmp_path / "x.h5")["x"][...]
    assert [[[v.tolist() for v in row] for row in element] for element in found] == [[[[1], [2, 3]], [[4]]], [[[]]], [[[5, 6, 7], [8]]], []]


# ---- references --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["earliest", "v110", "latest"])
def test_references_to_regions(tmp_path, version):
    with h5py.File(tmp_path / "x.h5", "w", libver=(version, "latest")) as f:
        big = f.create_dataset("group/big", (30, 40), "f4")
        mask = np.zeros((30, 40), bool)
        mask[3, 4], mask[20, 39] = True, True
        wanted = [big.regionref[2:5, 7:40], big.regionref[...], big.regionref[mask]]
        space = big.id.get_space()
        space.select_hyperslab((0, 0), (2, 3))
        space.select_hyperslab((10, 20), (5, 6), op=h5py.h5s.SELECT_OR)
        wanted.append(h5py.h5r.create(big.id, b".", h5py.h5r.DATASET_REGION, space))
        dset = f.create_dataset("x", (5,), h5py.regionref_dtype)
        for i, reference in enumerate(wanted):
            dset[i] = reference
        f.attrs["region"] = wanted[0]
        wanted = [region_text(f, reference) for reference in wanted]
    group = sq.open(tmp_path / "x.h5")
    assert group["x"][...].tolist() == [*wanted, ""]
    assert group.attrs["region"] == wanted[0] == "/group/big[2:5, 7:40]"


def test_references_to_regular_regions(tmp_path):
    """Newer files tell them as slices, not as blocks."""
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as f:
        big = f.create_dataset("big", (30, 40), "f4")
        dset = f.create_dataset("x", (2,), h5py.regionref_dtype)
        dset[0] = big.regionref[1:20:3, 5:6]
        space = big.id.get_space()
        space.select_hyperslab((0, 1), (3, 1), stride=(10, 1), block=(2, 4))
        dset[1] = h5py.h5r.create(big.id, b".", h5py.h5r.DATASET_REGION, space)
    assert sq.open(tmp_path / "x.h5")["x"][...].tolist() == ["/big[1:20:3, 5:6]", "/big[0:22:10*2, 1:5]"]


def test_references_of_hdf5_1_12(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as f:
        f["group/e"] = 1.0
        f["d"] = np.zeros((3, 4))
        f["d"].attrs["units"] = "K"
        space = h5py.h5s.create_simple((3, 4))
        space.select_hyperslab((1, 1), (2, 2))
        references = ((ctypes.c_ubyte * 64) * 4)()
        call("H5Rcreate_object", f.id.id, b"/group/e", 0, ctypes.byref(references[0]))
        call("H5Rcreate_region", f.id.id, b"/d", space.id, 0, ctypes.byref(references[1]))
        call("H5Rcreate_attr", f.id.id, b"/d", b"units", 0, ctypes.byref(references[2]))
        std = ctypes.c_int64.in_dll(library(), "H5T_STD_REF_g").value
        create = library().H5Dcreate2
        create.restype = ctypes.c_int64
        dims = h5py.h5s.create_simple((4,))
        dset = create(ctypes.c_int64(f.id.id), b"x", ctypes.c_int64(std), ctypes.c_int64(dims.id), *[ctypes.c_int64(0)] * 3)
        call("H5Dwrite", dset, std, 0, 0, 0, ctypes.byref(references))
        call("H5Dclose", dset)
    assert sq.open(tmp_path / "x.h5")["x"][...].tolist() == ["/group/e", "/d[1:3, 1:3]", "/d:units", ""]


# ---- the command, and what is hostile ----------------------------------------------------------------------------------------------------


def test_the_command_prints_objects_in_structures(tmp_path, squall):
    dtype = np.dtype([("a", "i4"), ("s", TEXT), ("in", [("t", TEXT)]), ("v", INTEGERS)])
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f.create_dataset("x", (1,), dtype)[0] = np.array((7, 'q"', ("in",), np.array([1, 2], "i4")), dtype)
    value = {"a": 7, "s": 'q"', "in": {"t": "in"}, "v": [1, 2]}
    assert json.loads(squall("get", tmp_path / "x.h5", "x", "--json").out) == [{"phony_dim_0": 0, "value": value}]
    assert squall("get", tmp_path / "x.h5", "x").out.splitlines() == ["phony_dim_0,x.a,x.s,x.in.t,x.v", '0,7,"q""",in,"[1, 2]"']
    refused = squall("get", tmp_path / "x.h5", "x", "-o", tmp_path / "x.npy", check=False)
    assert refused.code != 0 and "have parts of no fixed size" in refused.err


def test_sequences_that_hold_each_other_many_times_are_refused(tmp_path):
    """Each level's 64 elements are all the same one of the level below: 64^10 in the end."""
    path, depth = tmp_path / "x.h5", 10
    with h5py.File(path, "w") as f:
        low = nested_type(depth)
        kept = [(ctypes.c_int32 * 2)(1, 2)]
        memory = Sequence(2, ctypes.cast(kept[0], ctypes.c_void_p))
        for _ in range(depth - 1):
            kept.append((Sequence * 64)(memory))  # the others are empty
            memory = Sequence(64, ctypes.cast(kept[-1], ctypes.c_void_p))
        dset = h5py.h5d.create(f.id, b"x", low, h5py.h5s.create_simple((1,)))
        call("H5Dwrite", dset.id, low.id, 0, 0, 0, ctypes.byref(memory))
    data, changed = path.read_bytes(), 0
    for heap in (at for at in range(len(data)) if data[at : at + 4] == b"GCOL"):
        for number in range(1, 2 * depth):
            for length in (2, 64):
                one = struct.pack("<IQI", length, heap, number)
                changed += data.count(one + bytes(63 * 16))
                data = data.replace(one + bytes(63 * 16), 64 * one)
    assert changed == depth - 1
    path.write_bytes(data)
    told = limited(lambda: sq.open(path)["x"][0])
    assert "elements of variable length: a chunk's take more than" in told or "refer to each other" in told or "MemoryError" in told, told
