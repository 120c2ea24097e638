"""What is in HDF5 files: names, shapes, types and attributes, as h5py has them."""

import ctypes
import json
import subprocess
import sys

import h5py
import netCDF4
import numpy as np
import pytest
import squall
from conftest import SHARED
from hdf5_random import region_text
from squall._attributes import typed
from squall._types import dtype_of

FILES = sorted(path.name for path in (SHARED / "data" / "hdf5").glob("*"))


@pytest.fixture(scope="module")
def tree(support):
    """tree(path): what the reader tells of a file."""

    def call(path):
        done = subprocess.run([support / "hdf5_tree", path], capture_output=True, check=True)
        return json.loads(done.stdout)

    return call


# ---- h5py's view, in the same words ------------------------------------------------------------------------------------------------------


def numpy_type(dtype):
    """As sq_hdf5_type_numpy spells it."""
    if h5py.check_ref_dtype(dtype) or h5py.check_vlen_dtype(dtype) or h5py.check_string_dtype(dtype) and dtype.kind == "O":
        return "O"
    if dtype.subdtype:
        return f"({quoted(dtype.base)}, {dtype.shape})"
    if dtype.names:
        return f"[{', '.join(member(name, dtype[name]) for name in dtype.names)}]"
    return dtype.newbyteorder("<").str


def quoted(dtype):
    return numpy_type(dtype) if dtype.names or dtype.subdtype else repr(numpy_type(dtype))


def member(name, dtype):
    if dtype.subdtype and not dtype.base.subdtype:
        return f"({name!r}, {quoted(dtype.base)}, {dtype.shape})"
    return f"({name!r}, {quoted(dtype)})"


def plain(value, file):
    """An attribute's value as lists, texts and numbers."""
    if isinstance(value, h5py.Empty):
        return "" if value.dtype.kind in "SO" else []
    if isinstance(value, np.ndarray) and value.size == 0 and (value.dtype.kind == "S" or h5py.check_string_dtype(value.dtype)):
        return ""
    if isinstance(value, np.ndarray):
        below = inner if value.dtype.kind == "O" else plain  # sequences of one element stay sequences
        return below(value[0], file) if value.shape == (1,) else [below(v, file) for v in value]
    if isinstance(value, (h5py.Reference, h5py.RegionReference)) and not value:
        return None
    if isinstance(value, h5py.RegionReference):
        return region_text(file, value)
    if isinstance(value, h5py.Reference):
        return file[value].name
    if isinstance(value, np.void) and value.dtype.names:
        return [inner(value[name], file) for name in value.dtype.names]
    if isinstance(value, (bytes, np.bytes_)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return bytes(value).decode("latin-1")
    if isinstance(value, np.void):
        return value.tobytes()
    return value.item() if isinstance(value, np.generic) else value


def inner(value, file):
    """Within a structure: arrays of one element stay arrays."""
    return [inner(v, file) for v in value] if isinstance(value, np.ndarray) else plain(value, file)


def told(value, type_name):
    """The same of what the reader tells."""
    if type_name is None:
        return value
    value = typed(value, dtype_of(type_name))

    def down(v):
        if isinstance(v, np.ndarray):
            return [down(x) for x in v]
        if isinstance(v, np.void) and v.dtype.names:
            return [down(v[name]) for name in v.dtype.names]
        if isinstance(v, np.void):
            return v.tobytes()
        if isinstance(v, bytes):
            return v.decode()
        return v.item() if isinstance(v, np.generic) else v

    return down(value)


def same(a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (isinstance(a, float) and isinstance(b, float) and a != a and b != b) or repr(a) == repr(b)


def check_attributes(found, objects, file, name, known=None):
    assert sorted(found["attributes"]) == sorted(objects.keys()), name
    for key in objects.keys():
        expected = known[key] if known and key in known else plain(objects[key], file)
        assert same(told(found["attributes"][key], found["types"].get(key)), expected), (name, key, found["attributes"][key], expected)
        dtype = objects.get_id(key).dtype.base
        assert found["types"].get(key) == (None if dtype.kind in "SO" else numpy_type(dtype)), (name, key)


def members(group, path="", above=()):
    """(path, object) of all below, through hard and soft links; what leads nowhere, out of the file or back up is left out."""
    for name in group:
        link = group.get(name, getlink=True)
        try:
            found = None if isinstance(link, h5py.ExternalLink) else group[name]
        except (KeyError, RuntimeError):  # nothing is there; too many links
            continue
        if not isinstance(found, h5py.Group | h5py.Dataset) or found == group or found in above:
            continue
        yield path + name, found
        if isinstance(found, h5py.Group):
            yield from members(found, f"{path}{name}/", (*above, group))


def check_file(found, path, known=None):
    """known: attributes of the root where h5py is wrong."""
    with h5py.File(path) as file:
        expected = {"": file, **dict(members(file))}
        groups = {k: v for k, v in expected.items() if isinstance(v, h5py.Group)}
        datasets = {k: v for k, v in expected.items() if isinstance(v, h5py.Dataset)}
        assert sorted(found["groups"]) == sorted(groups)
        assert sorted(found["datasets"]) == sorted(datasets)
        for name, group in groups.items():
            check_attributes(found["groups"][name], group.attrs, file, name, known)
        for name, dataset in datasets.items():
            one = found["datasets"][name]
            assert one["shape"] == (None if dataset.shape is None else list(dataset.shape)), name
            assert one["maximum"] == (None if dataset.shape is None else list(dataset.maxshape)), name
            assert one["type"] == numpy_type(dataset.dtype), name
            check_attributes(one, dataset.attrs, file, name)


# ---- files of others ---------------------------------------------------------------------------------------------------------------------

OPEN_FOR_WRITING = "jhdf_test_byteshuffle_compressed_datasets_latest.hdf5"  # by its flag; h5py refuses it
# h5py finds the global heap too small, of which the last text, which is empty, lies in none; and does not turn big-endian sequences.
KNOWN = {
    "jhdf_globalheaps_test.hdf5": {"attribute": [f"value{i}" for i in range(7)] + [""]},
    "pyfive_attr_datatypes.hdf5": {"vlen_uint64": [[1, 2], [3, 4, 5], [42]]},
}


@pytest.mark.parametrize("name", [name for name in FILES if name != OPEN_FOR_WRITING])
def test_files_of_others_have_what_h5py_finds_in_them(tree, shared, name):
    path = shared / "data" / "hdf5" / name
    check_file(tree(path), path, KNOWN.get(name))


def test_a_file_that_its_writer_had_not_closed_is_read_with_a_warning(tree, shared):
    found = tree(shared / "data" / "hdf5" / OPEN_FOR_WRITING)
    sibling = tree(shared / "data" / "hdf5" / OPEN_FOR_WRITING.replace("latest", "earliest"))  # which h5py reads, above
    assert len(found["problems"]) == 1 and "open for writing" in found["problems"][0]
    assert found["datasets"] == sibling["datasets"] and found["groups"] == sibling["groups"]


# ---- files of h5py, made here ------------------------------------------------------------------------------------------------------------

VERSIONS = ["earliest", "v108", "v110", "v112", "v114", "latest"]
PART = np.dtype([("x", "<i2"), ("name", "S3"), ("grid", ">f4", (2, 2))])
INTEGERS = [f"{order}{kind}{size}" for order in "<>" for kind in "iu" for size in (1, 2, 4, 8)]
FLOATS = [f"{order}f{size}" for order in "<>" for size in (2, 4, 8)]
VALUES = {
    **{t: np.array([0, 1, 2 ** (8 * int(t[2]) - 2)], t) for t in INTEGERS},
    **{t: np.array([0.1, -np.inf, 1e-7], t) for t in FLOATS},
    "negative": np.int16(-5),
    "nan": np.float32(np.nan),
    "bool": np.array([True, False]),
    "complex": np.array([1 + 2j, -1j], "c8"),
    "text": "Grüße",
    "empty_text": "",
    "bytes": np.bytes_(b"ab\xe9"),
    "texts": np.array(["a", "", "ccc"], h5py.string_dtype()),
    "fixed_texts": np.array([b"a", b"", b"ccc"]),
    "one": np.array([7], "i4"),
    "plane": np.arange(6, dtype="u2").reshape(2, 3),
    "no_elements": np.zeros((0,), "f4"),
    "none": h5py.Empty("f8"),
    "no_text": h5py.Empty("S1"),
    "structure": np.array((1, b"ab", [[1, 2], [3, 4]]), PART),
    "structures": np.array([(1, b"ab", [[1, 2], [3, 4]]), (2, b"", np.zeros((2, 2)))], PART),
    "opaque": np.void(b"\0\1\xff"),
}


def put_attributes(target, count):
    for name, value in VALUES.items():
        target.attrs[name] = value
    target.attrs.create("enum", 2, dtype=h5py.enum_dtype({"a": 1, "b": 2}, "i1"))
    target.attrs.create("array_type", np.arange(6).reshape(2, 3), dtype=np.dtype(("i4", (3,))))
    target.attrs["reference"] = target.file.ref
    for i in range(count):
        target.attrs[f"attribute {count - i}"] = i


def library():
    """The libhdf5 that h5py calls, for what h5py has no call of."""
    loaded = [line.split()[-1] for line in open("/proc/self/maps") if "libhdf5-" in line and "h5py" in line]
    return ctypes.CDLL(loaded[0])


@pytest.mark.parametrize("track_order", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_attributes_of_every_type_in_headers_and_heaps(tree, tmp_path, version, track_order):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=(version, version if version != "earliest" else "v108"), track_order=track_order) as file:
        put_attributes(file, 0)
        put_attributes(file.create_group("g", track_order=track_order), 300)
        put_attributes(file.create_dataset("d", data=1.5, track_order=track_order), 5)
        if version != "earliest":
            file["d"].attrs["large"] = np.arange(20000, dtype="f8")  # a huge object of the heap
    found = tree(path)
    assert found["problems"] == []
    check_file(found, path)
    if track_order:
        names = [*VALUES, "enum", "array_type", "reference"]
        assert list(found["groups"]["g"]["attributes"]) == names + [f"attribute {300 - i}" for i in range(300)]


def test_attributes_reach_python_in_their_types(tmp_path):
    path = tmp_path / "p.h5"
    with h5py.File(path, "w", track_order=True) as file:
        put_attributes(file, 0)
        put_attributes(file.create_group("g"), 0)
        put_attributes(file.create_dataset("d", data=[1.5]), 0)
    opened = squall.open(path)
    for attributes in (opened.attrs, opened["g"].attrs, opened["d"].attrs):
        for name in [*INTEGERS, *FLOATS, "negative", "nan", "bool", "complex", "plane", "no_elements"]:
            expected = VALUES[name]
            assert attributes[name].dtype == expected.dtype.newbyteorder("=")
            np.testing.assert_array_equal(attributes[name], expected)
        assert attributes["text"] == "Grüße" and attributes["texts"] == ["a", "", "ccc"] and attributes["fixed_texts"] == ["a", "", "ccc"]
        assert type(attributes["one"]) is np.int32 and attributes["one"] == 7
        assert attributes["bytes"] == "abé"  # Latin-1
        assert attributes["structure"]["name"] == b"ab" and attributes["structure"]["grid"].tolist() == [[1, 2], [3, 4]]
        assert attributes["opaque"].tobytes() == b"\0\1\xff" and attributes["reference"] == "/"
    assert list(opened.attrs) == [*VALUES, "enum", "array_type", "reference"]


@pytest.mark.parametrize("track_order", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [0, 1, 9, 1000])
def test_groups_of_every_kind_and_size(tree, tmp_path, version, track_order, count):
    path = tmp_path / "g.h5"
    names = [f"member {(7 * i) % 1009}" for i in range(count)]
    with h5py.File(path, "w", libver=(version, version if version != "earliest" else "v108"), track_order=track_order) as file:
        group = file.create_group("a/b", track_order=track_order)
        for i, name in enumerate(names):
            if i % 2:
                group[name] = np.int32(i)
            else:
                group.create_group(name)
        file["a/ä" * 60] = np.zeros((2, 3))
    found = tree(path)
    assert found["problems"] == []
    check_file(found, path)
    expected = names if track_order else sorted(names)
    assert [n.removeprefix("a/b/") for n in found["datasets"] if n.startswith("a/b/")] == [n for n in expected if names.index(n) % 2]


def test_links_hard_soft_external_and_in_circles(tree, tmp_path):
    path = tmp_path / "l.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["data/t"] = [1, 2]
        file["data/deep/er/u"] = 3.0
        file["hard"] = file["data/t"]
        file["alias"] = file["data"]
        file["data/deep/up"] = file["data"]
        file["soft"] = h5py.SoftLink("/data/./deep//er/u")
        file["data/relative"] = h5py.SoftLink("deep/er")
        file["through"] = h5py.SoftLink("/data/relative/u")
        file["round"] = h5py.SoftLink("/round")
        file["nowhere"] = h5py.SoftLink("/data/x")
        file["out"] = h5py.ExternalLink("other.h5", "/x")
    found = tree(path)
    check_file(found, path)
    assert {"hard", "alias/t", "alias/deep/er/u", "soft", "data/relative/u", "through"} <= set(found["datasets"])
    ends = [line.removeprefix(f"{path}: ") for line in found["problems"]]
    assert sorted(ends) == [
        "a link back to a group that it is in; alias/deep/up is left out",
        "a link back to a group that it is in; data/deep/up is left out",
        "a soft link to /data/x, where nothing is; nowhere is left out",
        "a soft link to /round, where nothing is; round is left out",
        "an external link to other.h5:/x is not followed; out is left out",
    ]


@pytest.mark.parametrize("sizes", [(4, 4), (8, 8), (4, 8), (8, 4), (2, 2)])
@pytest.mark.parametrize("user_block", [0, 512, 4096])
@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_superblocks_of_every_size_behind_user_blocks(tree, tmp_path, version, sizes, user_block):
    path = tmp_path / "s.h5"
    create = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    create.set_sizes(*sizes)
    create.set_userblock(user_block)
    if version == "latest":
        access.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, fcpl=create, fapl=access)) as file:
        if sizes == (2, 2):  # the heap of many attributes has blocks whose size two bytes do not hold
            file.create_group("g").attrs["text"] = "ab"
        else:
            put_attributes(file.create_group("g"), 20)
        file["g/d"] = np.arange(5)
    found = tree(path)
    assert found["problems"] == []
    check_file(found, path)


@pytest.mark.parametrize("as_list", [True, False])
@pytest.mark.parametrize("version", ["v108", "latest"])
def test_shared_messages_and_committed_types(tree, tmp_path, version, as_list):
    path = tmp_path / "m.h5"
    create = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    low = h5py.h5f.LIBVER_LATEST if version == "latest" else h5py.h5f.LIBVER_V18
    access.set_libver_bounds(low, low)
    library_calls = library()
    spaces_and_types, attributes = 0x0A, 0x1000  # H5O_SHMESG_SDSPACE_FLAG | _DTYPE_FLAG, _ATTR_FLAG
    identifier = ctypes.c_int64(create.id)
    assert library_calls.H5Pset_shared_mesg_nindexes(identifier, 2) >= 0
    assert library_calls.H5Pset_shared_mesg_index(identifier, 0, spaces_and_types, 8) >= 0
    assert library_calls.H5Pset_shared_mesg_index(identifier, 1, attributes, 8) >= 0
    assert library_calls.H5Pset_shared_mesg_phase_change(identifier, *((5000, 4000) if as_list else (0, 0))) >= 0
    with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, fcpl=create, fapl=access)) as file:
        file["type"] = np.dtype([("a", "<i4"), ("b", ">f8")])
        for i in range(20):
            dataset = file.create_dataset(f"d{i}", (3, 4), dtype=file["type"] if i % 2 else "f4")
            put_attributes(dataset, 10 * (i % 3))
            dataset.attrs.create("committed", (1, 2.0), dtype=file["type"])
    content = path.read_bytes()
    assert b"SMTB" in content and (b"SMLI" in content) == as_list
    found = tree(path)
    assert found["problems"] == []
    check_file(found, path)


@pytest.mark.parametrize("count", [10, 300, 3000])
def test_links_in_heaps_that_went_through_filters(tree, tmp_path, count):
    path = tmp_path / "f.h5"
    names = [f"member {i}" for i in range(count)] + ["long " * 2000]  # the last a huge object of the heap
    with h5py.File(path, "w", libver="latest") as file:
        create = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
        assert library().H5Pset_deflate(ctypes.c_int64(create.id), 6) >= 0
        group = h5py.Group(h5py.h5g.create(file.id, b"g", gcpl=create))
        for name in names:
            group[name] = h5py.SoftLink("/d")
        file["d"] = 1
    assert b"member 1" not in path.read_bytes()
    found = tree(path)
    assert found["problems"] == []
    assert sorted(found["datasets"]) == sorted(["d", *(f"g/{name}" for name in names)])


@pytest.mark.parametrize("kind", ["NETCDF4", "NETCDF4_CLASSIC"])
def test_files_of_netcdf4_keep_the_order_of_variables_and_attributes(tree, tmp_path, kind):
    path = tmp_path / "n.nc"
    names = [f"v{(7 * i) % 31}" for i in range(30)]
    with netCDF4.Dataset(path, "w", format=kind) as file:
        file.createDimension("x", 4)
        for name in names:
            variable = file.createVariable(name, "f4", ("x",), fill_value=-1.0)
            for attribute in reversed(names):
                variable.setncattr(attribute, name)
    found = tree(path)
    assert found["problems"] == []
    check_file(found, path)
    assert [name for name in found["datasets"] if name in names] == names
    assert [a for a in found["datasets"]["v7"]["attributes"] if a in names] == names[::-1]


# ---- damaged and hostile files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["earliest", "v108", "latest"])
def test_every_change_and_every_truncation_is_told_or_harmless(support, tmp_path, version):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver=(version, "latest" if version == "latest" else "v108")) as file:
        file["g/d"] = np.arange(3, dtype="i2")
        file["g/d"].attrs["units"] = "K"
        file["soft"] = h5py.SoftLink("/g/d")
        file["g/up"] = file["g"]
        file["x"] = np.arange(3, dtype="i1")
        file["x"].make_scale()
        file["g/d"].dims[0].attach_scale(file["x"])
        file.attrs["texts"] = np.array(["a", "bc"], h5py.string_dtype())
        file.attrs["structure"] = np.array((1, b"ab"), [("a", "<i4"), ("b", "S2")])
        file.attrs["reference"] = file["g"].ref
        for i in range(9 if version == "latest" else 0):
            file["g"].attrs[f"a{i}"] = np.int8(i)
            file.create_group(f"dense/g{i}")
    done = subprocess.run([support / "hdf5_sweep", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# A process's peak of memory is at least that of the one that started it: this one is small, the tests' may not be.
STARTER = """
import os, sys
os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(-1, 0)
print(status, usage.ru_utime, usage.ru_maxrss, file=sys.stderr)
"""


def read_with_limits(support, path):
    """As tree(path); within seconds of the processor, and 1 GiB of memory."""
    with open(path.with_suffix(".json"), "w+b") as out:
        command = [sys.executable, "-S", "-c", STARTER, support / "hdf5_tree", path]
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True)
        status, seconds, peak_kib = map(float, done.stderr.split())
        assert status == 0 and seconds < 20 and peak_kib < 1 << 20
        out.seek(0)
        return json.load(out)


def test_groups_that_more_paths_lead_to_than_can_be_walked_are_refused(support, tmp_path):
    path = tmp_path / "paths.h5"
    with h5py.File(path, "w", libver="latest") as file:
        below = file.create_group("last")
        for i in range(40):  # 2^40 paths
            group = file.create_group(f"g{i}")
            group["a"] = group["b"] = below
            below = group
    message = read_with_limits(support, path)
    assert message == f"{path}: its metadata refer to each other more often than those of a sound file of its size"


def test_soft_links_that_lead_through_each_other_end(support, tmp_path):
    path = tmp_path / "soft.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["end"] = 1
        file["here"] = h5py.SoftLink("/")
        file["s0"] = h5py.SoftLink("/")
        for i in range(15):
            file[f"s{i + 1}"] = h5py.SoftLink("/".join([f"s{i}"] * 20))  # 20^15 steps
    assert "refer to each other" in read_with_limits(support, path)


def test_more_links_and_attributes_than_anybody_has(support, tmp_path):
    path = tmp_path / "many.h5"
    with h5py.File(path, "w", libver="latest") as file:
        for i in range(20000):
            file[f"s{i}"] = h5py.SoftLink(f"/s{i + 1}") if i % 1000 else h5py.SoftLink("/d")
            file.attrs.create(f"a{i}", i, dtype="i4")
        file["d"] = 1
    found = read_with_limits(support, path)
    assert [found["groups"][""]["attributes"][f"a{i}"] for i in range(20000)] == list(range(20000))
    # links that lead through up to 16 others, as in libhdf5
    assert len(found["datasets"]) + len(found["problems"]) == 20001 and "s0" in found["datasets"]
