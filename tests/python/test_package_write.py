"""The Python package writes: what numpy's assignment puts into an array in memory, squall puts into a store, and zarr-python reads it."""

import concurrent.futures
import importlib.util
import json
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import squall
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_package_read import SHAPE, advanced_keys, basic_keys, index_arrays, integers, masks, slices

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
LAYOUTS = {
    "v3": {},
    "sharded": {"chunks": (3, 2, 3), "shards": (3, 4, 9)},
    "v2": {"zarr_format": 2},
    "v2 F": {"zarr_format": 2, "order": "F"},
    "blosc": {"codecs": "blosc:cname=lz4,clevel=3,shuffle=shuffle"},
    "plain": {"codecs": "none"},
    "rectilinear": {
        "chunks": [[2, 4, 1], 10, [5, 4]],
        "codecs": [
            {"name": "transpose", "configuration": {"order": [2, 0, 1]}},
            {"name": "bytes", "configuration": {"endian": "big"}},
            "crc32c",
        ],
    },
    "rectilinear shards": {"chunks": (1, 2, 3), "shards": [[2, 4, 1], 10, [3, 6]]},
}


@pytest.fixture(params=LAYOUTS)
def pair(request, tmp_path):
    """The same values in memory and in a store."""
    values = np.random.default_rng(1).integers(0, 1 << 30, SHAPE, dtype=np.int32)
    path = tmp_path / f"{request.param.split()[0]}.zarr"
    return values, squall.create_array(path, data=values, **({"chunks": (3, 4, 9)} | LAYOUTS[request.param]))


def check(values, array):
    np.testing.assert_array_equal(array[...], values)
    if not array.path.endswith("rectilinear.zarr"):  # zarr-python reads these from 3.4 on: test_package_newer_zarr.py
        np.testing.assert_array_equal(zarr.open_array(array.path, mode="r")[...], values)


def something(shape, seed):
    """Values of a shape, or of one that is broadcast to it."""
    rng = np.random.default_rng(seed)
    if seed % 4 == 0:
        return int(rng.integers(0, 99))
    if seed % 4 == 1 and shape:
        shape = tuple(1 if rng.random() < 0.5 else n for n in shape)
    if seed % 4 == 2 and shape:
        return rng.random(shape[1:]) * 99  # floats, which are cast
    return rng.integers(0, 1 << 30, shape)


@QUICK
@given(key=basic_keys(), seed=st.integers(0, 99))
def test_basic_assignments_are_numpys(pair, key, seed):
    values, array = pair
    new = something(values[key].shape, seed)
    values[key] = new
    array[key] = new
    check(values, array)


@QUICK
@given(key=advanced_keys(), seed=st.integers(0, 99))
def test_advanced_assignments_are_numpys(pair, key, seed):
    values, array = pair
    new = something(values[key].shape, seed)
    values[key] = new
    array[key] = new
    check(values, array)


@QUICK
@given(
    key=st.tuples(*(slices(n) | integers(n) | index_arrays(n, (3,)) | index_arrays(n, (0,)) | masks(n) for n in SHAPE)),
    seed=st.integers(0, 99),
)
def test_oindex_assigns_each_dimension_by_itself(pair, key, seed):
    values, array = pair
    lists = [np.arange(n)[k if not isinstance(k, int) else [k]] for n, k in zip(SHAPE, key, strict=True)]
    kept = tuple(len(x) for x, k in zip(lists, key, strict=True) if not isinstance(k, int))
    new = np.broadcast_to(something(kept, seed), kept)
    values[np.ix_(*lists)] = new.reshape([len(x) for x in lists])
    array.oindex[key] = new
    check(values, array)


def test_vindex_assigns_points(pair):
    values, array = pair
    y, x = [0, 6, 3, 0], [9, 0, -1, 9]
    values[y, x, 2] = [1, 2, 3, 4]
    array.vindex[y, x, 2] = [1, 2, 3, 4]
    values[y, x] = -1
    array.vindex[y, x] = -1
    array.vindex[:, 0] = 5
    values[:, 0] = 5
    check(values, array)


TYPES = ["bool", "i1", "u2", ">i4", "u8", "f2", "f4", "f8", "c8", "c16", "M8[s]", "m8[10ms]", "S5", "U4", [("a", "<i4"), ("b", "<f8")]]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:.*Zarr V3 specification.*")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_types(dtype, zarr_format, tmp_path):
    numbers = np.random.default_rng(1).integers(0, 2 if dtype == "bool" else 99, (6, 5))
    dtype = np.dtype(dtype)
    values = numbers.astype("i8").astype(dtype) if dtype.kind in "Mm" else numbers.astype(dtype)
    array = squall.create_array(tmp_path / "a.zarr", shape=(6, 5), dtype=dtype, chunks=(4, 2), zarr_format=zarr_format)
    array[:4] = values[:4]
    found = zarr.open_array(tmp_path / "a.zarr", mode="r")[...]
    np.testing.assert_array_equal(found[:4], values[:4])
    np.testing.assert_array_equal(array[...], found)
    assert array.dtype == values.dtype.newbyteorder("=")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_texts_and_bytes(zarr_format, tmp_path):
    texts = squall.create_array(tmp_path / "t.zarr", shape=(3, 2), dtype=str, chunks=(2, 2), zarr_format=zarr_format)
    texts[:2] = [["a", "ü"], ["", "long " * 100]]
    texts[2] = "same"
    texts[1, 0] = np.str_("set")
    assert texts[...].tolist() == [["a", "ü"], ["set", "long " * 100], ["same", "same"]]
    assert zarr.open_array(tmp_path / "t.zarr", mode="r")[...].tolist() == texts[...].tolist()
    texts[::-1, ::-1] = np.array([["1", "2"], ["3", "4"], ["5", "6"]], dtype=np.dtypes.StringDType())
    assert texts[...].tolist() == [["6", "5"], ["4", "3"], ["2", "1"]]
    texts[[0, 2], 1] = "x"
    assert texts[:, 1].tolist() == ["x", "3", "x"]
    for wrong, error in ((7, TypeError), (b"a", TypeError), (None, TypeError), ("\ud800", UnicodeEncodeError)):
        with pytest.raises(error):
            texts[0] = wrong
    texts[0] = ["\0", "a\0b\0"]
    assert texts[0].tolist() == zarr.open_array(tmp_path / "t.zarr", mode="r")[0].tolist() == ["\0", "a\0b\0"]
    for name, dtype in (("b.zarr", bytes), ("n.zarr", "variable_length_bytes")):
        raw = squall.create_array(tmp_path / name, shape=(4,), dtype=dtype, chunks=(3,), zarr_format=zarr_format)
        raw[:] = [b"a", b"\0\xff", b"", b"z" * 1000]
        assert raw[...].tolist() == [b"a", b"\0\xff", b"", b"z" * 1000]
        with pytest.raises(TypeError, match="elements are bytes"):
            raw[0] = "text"


def test_values_that_do_not_fit_are_refused(pair):
    values, array = pair
    for key, new, error, words in (
        (np.s_[0], np.zeros((3, 10, 9)), ValueError, r"could not broadcast input array from shape \(3, 10, 9\) into shape \(10, 9\)"),
        ([0, 1], np.zeros(5), ValueError, "could not broadcast"),
        (0, "text", ValueError, "invalid literal"),
        (0, 1 << 40, OverflowError, None),
        (7, 0, IndexError, "out of bounds"),
        (None, 0, IndexError, "newaxis"),
        ([7], 0, IndexError, "out of bounds"),
    ):
        with pytest.raises(error, match=words):
            array[key] = new
    with pytest.raises(TypeError, match="cannot be deleted"):
        del array[0]
    check(values, array)


def test_what_was_opened_for_reading_is_not_changed(pair):
    values, array = pair
    read = squall.open_array(array.path)
    assert (read.mode, array.mode) == ("r", "r+")
    for change in (
        lambda: read.__setitem__(0, 1),
        lambda: read.__setitem__([0, 2], 1),
        lambda: read.resize(1, 1, 1),
        lambda: read.attrs.update(a=1),
        lambda: read.oindex.__setitem__([0, 2], 1),
    ):
        with pytest.raises(squall.Error, match="r\\+") as caught:
            change()
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, PermissionError)
    check(values, array)


def test_resize(pair):
    values, array = pair
    other = squall.open_array(array.path)
    array.resize((5, 12, 9))
    assert array.shape == (5, 12, 9) and other.shape == SHAPE and squall.open_array(array.path).shape == (5, 12, 9)
    wanted = np.zeros((5, 12, 9), np.int32)
    wanted[:, :10] = values[:5]
    check(wanted, array)
    array[:, 11] = 3
    wanted[:, 11] = 3
    check(wanted, array)
    for wrong, error in (((5,), ValueError), ((5, -1, 9), ValueError), ((5, 2.5, 9), TypeError)):
        with pytest.raises(error):
            array.resize(wrong)


def test_arrays_are_made_as_asked_for(tmp_path):
    made = squall.create_array(
        tmp_path / "s.zarr",
        "deep/t2m",
        shape=(4, 6),
        dtype="f4",
        chunks=(2, 3),
        shards=(4, 6),
        dims=("y", None),
        fill_value=np.nan,
        attributes={"units": "K", "a": [1, {"b": None}]},
        codecs=[{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "gzip", "configuration": {"level": 1}}],
        index_location="start",
    )
    assert (made.name, made.shape, made.chunks, made.shards, made.dims) == ("deep/t2m", (4, 6), (2, 3), (4, 6), ("y", None))
    assert np.isnan(made.fill_value) and np.isnan(made[...]).all() and list(made.attrs.items()) == [("units", "K"), ("a", [1, {"b": None}])]
    document = json.loads((tmp_path / "s.zarr" / "deep" / "t2m" / "zarr.json").read_text())
    sharding = document["codecs"][0]["configuration"]
    assert sharding["index_location"] == "start" and [c["name"] for c in sharding["codecs"]] == ["bytes", "gzip"]
    assert zarr.open_group(tmp_path / "s.zarr", mode="r")["deep/t2m"].shards == (4, 6)
    with pytest.raises(squall.Error, match="t2m") as caught:
        squall.create_array(tmp_path / "s.zarr", "deep/t2m", shape=(1,), dtype="i4")
    assert caught.value.status is squall.Status.EREFUSED
    again = squall.create_array(tmp_path / "s.zarr", "deep/t2m", data=[1.5, 2.5], overwrite=True)
    assert again.dtype == "f8" and again[...].tolist() == [1.5, 2.5]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    "dtype, fill", [("i4", -7), ("f8", -np.inf), ("bool", True), ("c8", 1 - 2j), ("M8[s]", np.datetime64("NaT")), ("f4", np.float32(0.1))]
)
@pytest.mark.filterwarnings("ignore:.*Zarr V3 specification.*")
def test_fill_values(dtype, fill, zarr_format, tmp_path):
    made = squall.create_array(tmp_path / "a.zarr", shape=(3,), dtype=dtype, fill_value=fill, zarr_format=zarr_format)
    wanted = np.full(3, fill, dtype)
    np.testing.assert_array_equal(made[...], wanted)
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "a.zarr", mode="r")[...], wanted)


@pytest.mark.parametrize(
    "how, error",
    [
        ({}, ValueError),
        ({"shape": (3,)}, ValueError),
        ({"shape": (3,), "dtype": object}, TypeError),
        ({"shape": (-3,), "dtype": "i4"}, ValueError),
        ({"shape": (3.5,), "dtype": "i4"}, TypeError),
        ({"shape": (3, 3), "dtype": "i4", "chunks": (1, 1, 1)}, ValueError),
        ({"shape": (3,), "dtype": "i4", "chunks": (0,)}, ValueError),
        ({"shape": (3,), "dtype": "i4", "chunks": "some"}, ValueError),
        ({"shape": (3,), "dtype": "i4", "dims": ("a", "b")}, ValueError),
        ({"shape": (3,), "dtype": "i4", "codecs": "zip"}, ValueError),
        ({"shape": (3,), "dtype": "i4", "durability": "much"}, ValueError),
        ({"shape": (3,), "dtype": "i4", "order": "K"}, ValueError),
        ({"shape": (3,), "dtype": "nothing"}, (ValueError, NotImplementedError)),
        ({"shape": (2,) * 40, "dtype": "i4"}, ValueError),
    ],
)
def test_arrays_that_make_no_sense_are_refused(how, error, tmp_path):
    with pytest.raises(error):
        squall.create_array(tmp_path / "a.zarr", **how)
    assert not (tmp_path / "a.zarr").exists()


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_groups(zarr_format, consolidated, tmp_path):
    root = squall.create_group(tmp_path / "g.zarr", attributes={"title": "x"}, zarr_format=zarr_format, consolidated=consolidated)
    assert len(root) == 0 and root.attrs["title"] == "x"
    inner = root.create_group("a/b", attributes={"level": 2})
    array = inner.create_array("t", data=np.arange(6).reshape(2, 3), dims=("y", "x"))
    assert array[1, 2] == 5 and list(root) == ["a"] and list(root["a/b"]) == ["t"] and root["a/b"].attrs["level"] == 2
    root["a/b"].attrs["level"] = 3
    array.attrs.update(units="K", name="t")
    del array.attrs["name"]
    for found in (root, squall.open(tmp_path / "g.zarr")):
        assert dict(found["a/b/t"].attrs) == {"units": "K"} and dict(found["a/b"].attrs) == {"level": 3}
    theirs = zarr.open_group(tmp_path / "g.zarr", mode="r", use_consolidated=consolidated)
    assert dict(theirs["a/b"].attrs) == {"level": 3} and theirs["a/b/t"].attrs["units"] == "K" and theirs["a/b/t"][1, 2] == 5
    del root["a/b"]
    assert list(root["a"]) == [] and not (tmp_path / "g.zarr" / "a" / "b").exists()
    with pytest.raises(KeyError):
        del root["a/b"]
    with pytest.raises(squall.Error, match="opened for reading"):
        squall.open(tmp_path / "g.zarr").create_group("more")
    with pytest.raises(squall.Error):
        squall.create_group(tmp_path / "g.zarr")
    assert len(squall.create_group(tmp_path / "g.zarr", overwrite=True)) == 0


@pytest.mark.parametrize(
    ("options", "file"),
    [
        ({}, "c/1/0"),
        ({"separator": "."}, "c.1.0"),
        ({"chunk_key_encoding": "default"}, "c/1/0"),
        ({"chunk_key_encoding": "v2"}, "1.0"),
        ({"chunk_key_encoding": "v2", "separator": "/"}, "1/0"),
        ({"chunk_key_encoding": {"name": "v2", "separator": "/"}}, "1/0"),
        ({"zarr_format": 2}, "1.0"),
        ({"zarr_format": 2, "separator": "/"}, "1/0"),
    ],
    ids=str,
)
def test_keys_of_chunks(options, file, tmp_path):
    array = squall.create_array(tmp_path / "a.zarr", data=np.arange(8).reshape(4, 2), chunks=(2, 2), **options)
    assert (tmp_path / "a.zarr" / file).is_file()
    check(np.arange(8).reshape(4, 2), array)
    with pytest.raises(ValueError, match="chunk_key_encoding"):
        squall.create_array(tmp_path / "b.zarr", shape=(4,), dtype="i4", chunk_key_encoding="v3")


def test_grids_that_make_no_sense_are_refused(tmp_path):
    for shape, options, error, words in (
        ((35,), {"chunks": [[10, 20]]}, ValueError, "have 30 elements, the array 35"),
        ((35,), {"chunks": [[10, 20, 5, 1]]}, ValueError, "have 36 elements, the array 35"),
        ((35,), {"chunks": [[35, 0]]}, ValueError, "entry 2 is neither a length above 0"),
        ((35,), {"chunks": [[10, 25], 3]}, ValueError, "for each of 1 dimensions"),
        ((35,), {"chunks": [[10, 2.5]]}, TypeError, "lengths of its chunks"),
        ((35,), {"chunks": [[10, 25]], "zarr_format": 2}, ValueError, "v2 has no rectilinear grids"),
        ((35,), {"chunks": 5, "shards": [[10, 24, 1]]}, ValueError, "does not divide its shards"),
        ((35,), {"chunks": 5, "shards": [[25, 7, 3]]}, ValueError, "does not divide its shards"),
        ((35,), {"shards": [[10, 25]]}, ValueError, "chunks have to be said"),
    ):
        with pytest.raises(error, match=words):
            squall.create_array(tmp_path / "a.zarr", shape=shape, dtype="i4", **options)
        assert not (tmp_path / "a.zarr").exists()


def consolidated_entries(path, zarr_format):
    """What consolidated metadata say, and the documents that they say it of."""
    root = json.loads((path / (".zmetadata" if zarr_format == 2 else "zarr.json")).read_text())
    said = (root if zarr_format == 2 else root["consolidated_metadata"])["metadata"]
    if zarr_format == 2:
        documents = {str(f.relative_to(path)): f for f in path.rglob(".z*") if f != path / ".zmetadata"}
    else:
        documents = {str(f.parent.relative_to(path)): f for f in path.rglob("zarr.json") if f != path / "zarr.json"}
    for document in said.values():
        document.pop("consolidated_metadata", None)  # zarr-python puts an empty one into groups
    return said, {key: json.loads(f.read_text()) for key, f in documents.items()}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
def test_what_others_made_is_consolidated(zarr_format, tmp_path):
    path = tmp_path / "a.zarr"
    theirs = zarr.create_group(path, zarr_format=zarr_format, attributes={"title": "x"})
    theirs.create_array("a/b/t", shape=3, dtype="i4", attributes={"z": 1, "a": 2})[:] = 1
    theirs.create_array("u", shape=(), dtype="f8")
    (path / ".hidden").mkdir()
    root = squall.consolidate_metadata(path)
    assert list(root) == ["u", "a"]
    said, documents = consolidated_entries(path, zarr_format)
    assert said == documents and "a/b/t" in " ".join(said)
    zarr.consolidate_metadata(path)
    assert consolidated_entries(path, zarr_format)[0] == said
    squall.consolidate_metadata(path)
    found = zarr.open_consolidated(path, zarr_format=zarr_format)
    assert found["a/b/t"][:].tolist() == [1, 1, 1] and found["a/b/t"].attrs.asdict() == {"z": 1, "a": 2}
    theirs.create_array("a/late", shape=2, dtype="i4")  # by somebody who does not keep it true
    assert "late" not in squall.open(path)["a"]
    assert list(squall.consolidate_metadata(path, "a")) == ["late", "b"] and "late" in squall.consolidate_metadata(path)["a"]
    squall.open(path, mode="r+")["a/late"].attrs["n"] = 1  # kept true, also in the group's own
    for group in (path, path / "a"):
        said, documents = consolidated_entries(group, zarr_format)
        assert said == {
            k: {n: v for n, v in d.items() if n != "consolidated_metadata"} for k, d in documents.items() if ".zmetadata" not in k
        }
    with pytest.raises(ValueError):
        squall.consolidate_metadata(path, "u")
    with pytest.raises(FileNotFoundError):
        squall.consolidate_metadata(path, "v")
    zarr.create_group(path / "other", zarr_format=5 - zarr_format)
    with pytest.raises(squall.Error, match=f"Zarr v{5 - zarr_format} below a group of v{zarr_format}"):
        squall.consolidate_metadata(path)


def test_a_group_without_metadata_is_in_consolidated_metadata_where_something_is_below_it(tmp_path):
    squall.create_group(tmp_path / "a.zarr")
    squall.create_array(tmp_path / "a.zarr", "x/t", data=[1, 2])
    (tmp_path / "a.zarr/x/zarr.json").unlink()
    (tmp_path / "a.zarr/empty").mkdir()
    squall.consolidate_metadata(tmp_path / "a.zarr")
    assert zarr.open_group(tmp_path / "a.zarr", mode="r")["x/t"][:].tolist() == [1, 2]
    assert list(squall.open(tmp_path / "a.zarr")) == ["x"]


CHANGES_METADATA = """
import sys, squall
root, me = squall.open(sys.argv[1], mode="r+"), sys.argv[2]
for i in range(25):
    root["shared"].attrs[me] = i  # whose own attributes those of others may replace
    root[me].attrs["n"] = i
    squall.create_array(sys.argv[1], f"{me}/t{i}", shape=(2,), dtype="i4")
    if i % 3 == 0:
        squall.open(sys.argv[1] + "/" + me, mode="r+")[f"t{i}"].resize(3 + i)
    if i % 5 == 4:
        del squall.open(sys.argv[1], mode="r+")[f"{me}/t{i - 1}"]
"""


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_processes_keep_consolidated_metadata_true(zarr_format, tmp_path):
    path = tmp_path / "a.zarr"
    root = squall.create_group(path, zarr_format=zarr_format, consolidated=True)
    for name in ("shared", "a", "b", "c", "d"):
        root.create_group(name)
    processes = [subprocess.Popen([sys.executable, "-c", CHANGES_METADATA, path, name]) for name in "abcd"]
    assert [p.wait() for p in processes] == [0] * 4
    said, documents = consolidated_entries(path, zarr_format)
    assert said == documents
    found = squall.open(path)
    assert all(len(found[name]) == 20 and found[name].attrs["n"] == 24 for name in "abcd")


def test_what_is_changed_in_place_loses_no_write_through_another_opening(tmp_path):
    array = squall.create_array(tmp_path / "a.zarr", data=np.zeros(8, "i4"), chunks=8)
    other = threading.Thread(target=squall.open_array(tmp_path / "a.zarr", mode="r+").__setitem__, args=(0, 5))

    class Place:
        """An index that is asked for between the reading of the chunk and its writing."""

        def __index__(self):
            if other.ident is None:
                other.start()
                other.join(0.5)
            return 3

    array._update((slice(0, 8),), (Place(),), 7)
    other.join()
    assert array[...].tolist() == [5, 0, 0, 7, 0, 0, 0, 0]


def test_threads_write_the_same_chunks(tmp_path):
    array = squall.create_array(tmp_path / "a.zarr", shape=(64, 64), dtype="i4", chunks=(32, 32))
    wanted = np.random.default_rng(0).integers(1, 99, (64, 64), dtype="i4")

    def write(i):
        if i % 2:
            array[i] = wanted[i]
        else:
            array[[i, i], :] = np.stack([np.zeros(64), wanted[i]])  # an update of a chunk; the last one stays
        mask = np.zeros((64, 64), bool)
        mask[i, ::7] = True
        array[mask] = wanted[mask]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(write, np.random.default_rng(1).permutation(64)))
    check(wanted, array)


def rows_written(array, rows):
    for i in rows:
        array[i * 4 : i * 4 + 4] = i
    return True


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_write_chunks_of_their_own(tmp_path):
    array = squall.create_array(tmp_path / "a.zarr", shape=(64, 9), dtype="i4", chunks=(4, 9))
    aligned = squall.open_array(tmp_path / "a.zarr", mode="r+", aligned_only=True)
    with concurrent.futures.ProcessPoolExecutor(3) as pool:
        assert all(pool.map(rows_written, [aligned] * 4, [range(i, 16, 4) for i in range(4)]))
    check(np.repeat(np.arange(16, dtype="i4"), 4)[:, None] + np.zeros((1, 9), "i4"), array)
    with pytest.raises(squall.Error, match="chunk") as caught:
        aligned[3:9] = 0
    assert caught.value.status is squall.Status.EREFUSED
    back = pickle.loads(pickle.dumps(aligned))
    assert back.mode == "r+"
    with pytest.raises(squall.Error):
        back[1] = 0


def test_chunks_of_nothing_but_the_fill_value(tmp_path):
    squall.create_array(tmp_path / "a.zarr", shape=(6,), dtype="i4", chunks=(2,), fill_value=5)
    for write_empty, count in ((False, 1), (True, 3)):
        array = squall.open_array(tmp_path / "a.zarr", mode="r+", write_empty_chunks=write_empty)
        array[...] = [5, 5, 1, 5, 5, 5]
        assert len(list((tmp_path / "a.zarr" / "c").iterdir())) == count
        assert array[...].tolist() == [5, 5, 1, 5, 5, 5]


@pytest.mark.parametrize("durability", ["none", "data", "full"])
def test_durability(durability, tmp_path):
    array = squall.create_array(tmp_path / "a.zarr", data=np.arange(9), chunks=(2,), durability=durability)
    array[3:] = 1
    assert array[...].tolist() == [0, 1, 2] + [1] * 6
    assert squall.open_array(tmp_path / "a.zarr", "r+", durability=durability)[4] == 1


def test_a_chosen_chunk_is_some_mib(tmp_path):
    array = squall.create_array(tmp_path / "a.zarr", shape=(100, 721, 1440), dtype="f4")
    assert array.chunks == (1, 721, 1440)
    assert squall.create_array(tmp_path / "b.zarr", shape=(10, 3), dtype="f4").chunks == (10, 3)
    assert squall.create_array(tmp_path / "c.zarr", shape=(10, 3), dtype="f4", chunks=None).chunks == (10, 3)
    assert squall.create_array(tmp_path / "d.zarr", shape=(0, 3), dtype="f4").chunks == (1, 3)
    assert squall.create_array(tmp_path / "e.zarr", shape=(), dtype="f4", data=2).chunks == ()


def test_arrays_are_values(tmp_path):
    """An array in one store is assigned to one in another."""
    one = squall.create_array(tmp_path / "a.zarr", data=np.arange(6).reshape(2, 3))
    two = squall.create_array(tmp_path / "b.zarr", shape=(4, 3), dtype="f8")
    two[::2] = one
    assert two[...].tolist() == [[0, 1, 2], [0, 0, 0], [3, 4, 5], [0, 0, 0]]


def test_small_integers_are_a_byte_in_memory(tmp_path):
    array = squall.create_array(tmp_path / "a.zarr", shape=(5,), dtype="int4", fill_value=-3)
    assert array.dtype == "i1" and array.type_name == "int4" and array[...].tolist() == [-3] * 5
    array[:] = [1, 2, -8, 7, 0]
    assert array[::-1].tolist() == [0, 7, -8, 2, 1]


def test_bfloat16_needs_its_package(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes") if importlib.util.find_spec("ml_dtypes") else None
    array = squall.create_array(tmp_path / "a.zarr", shape=(2,), dtype="bfloat16")
    assert array.type_name == "bfloat16" and "bfloat16" in repr(array)
    if ml_dtypes:
        array[:] = [1.5, 2]
        assert array[...].dtype == ml_dtypes.bfloat16 and array[...].tolist() == [1.5, 2]
    else:
        with pytest.raises(TypeError, match="install ml_dtypes"):
            array[0]


def test_what_is_masked_becomes_the_fill_value(tmp_path):
    values = np.arange(12).reshape(3, 4)
    masked, wanted = np.ma.masked_equal(values, 5), np.where(values == 5, -7, values)
    made = squall.create_array(tmp_path / "made.zarr", data=masked, fill_value=-7)
    array = squall.create_array(tmp_path / "a.zarr", shape=(3, 4), dtype="i4", fill_value=-7)
    array[...] = masked
    assert made[...].tolist() == array[...].tolist() == wanted.tolist()
    array[...] = 0
    array[[2, 1, 0]] = masked[::-1]
    assert array[...].tolist() == wanted.tolist()
    array.oindex[[0, 1], :], array[2, 0] = masked[1], np.ma.masked
    assert array[...].tolist() == [wanted[1].tolist(), wanted[1].tolist(), [-7, 9, 10, 11]]
    array.vindex[[0, 1], [0, 1]] = np.ma.array([1, 2], mask=[True, False])
    assert array[0, 0] == -7 and array[1, 1] == 2
    texts = squall.create_array(tmp_path / "t.zarr", shape=2, dtype=str, fill_value="?")
    texts[...] = np.ma.array(["a", "b"], mask=[False, True])
    assert texts[...].tolist() == ["a", "?"]
    with pytest.raises(ValueError, match="data is masked: give the fill_value"):
        squall.create_array(tmp_path / "none.zarr", data=masked)
    assert not (tmp_path / "none.zarr").exists()
    assert squall.create_array(tmp_path / "all.zarr", data=np.ma.array(values))[...].tolist() == values.tolist()


def test_what_is_masked_without_a_fill_value_is_refused(tmp_path):
    zarr.create_array(tmp_path / "a.zarr", shape=(2,), dtype="i4", fill_value=None, zarr_format=2)
    array = squall.open_array(tmp_path / "a.zarr", mode="r+")
    with pytest.raises(ValueError, match="has no fill value for what is masked"):
        array[...] = np.ma.array([1, 2], mask=[True, False])


def test_attributes_of_numpy_become_jsons(tmp_path):
    attributes = {
        "n": np.float32(3),
        "range": np.array([1, 2], "i2"),
        "text": np.bytes_(b"K"),
        "texts": np.array(["a", "b"]),
        "objects": np.array(["a", b"b"], object),
        "long": np.longdouble(0.5),
        "deep": {"list": [np.int8(1), np.True_]},
    }
    wanted = {"n": 3, "range": [1, 2], "text": "K", "texts": ["a", "b"], "objects": ["a", "b"], "long": 0.5, "deep": {"list": [1, True]}}
    root = squall.create_group(tmp_path / "s.zarr", attributes=attributes)
    array = root.create_array("a", shape=3, dtype="f4", attributes=attributes)
    assert root.attrs == array.attrs == wanted
    array.attrs.update(range=np.arange(3))
    assert squall.open(tmp_path / "s.zarr/a").attrs == wanted | {"range": [0, 1, 2]}
    for value in (np.datetime64("2026-01-01"), 1j, np.complex64(1), b"\xff", {1}, np.zeros(1, "i4,i4")):
        with pytest.raises(TypeError, match="attribute strange is "):
            array.attrs["strange"] = value
        with pytest.raises(TypeError, match="attribute strange is "):
            squall.create_group(tmp_path / "t.zarr", attributes={"strange": value})
    assert not (tmp_path / "t.zarr").exists()


@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_xarray_reads_a_fill_value_among_the_attributes(dtype, zarr_format, tmp_path):
    xr = pytest.importorskip("xarray")
    values, fill = np.array([1, -99, 3], dtype), np.dtype(dtype).type(-99)
    root = squall.create_group(tmp_path / "s.zarr", zarr_format=zarr_format)
    root.create_array("a", data=values, dims=("x",), fill_value=-99, attributes={"_FillValue": fill})
    root.create_array("b", data=values, dims=("x",), fill_value=-99).attrs["_FillValue"] = fill
    with xr.open_zarr(tmp_path / "s.zarr", consolidated=False) as ds:
        assert np.isnan(ds["a"][1]) and np.isnan(ds["b"][1]) and ds["a"][0] == 1


def test_lengths_are_one_a_dimension_or_a_number_for_all(tmp_path):
    for wrong in ({"chunks": (7,)}, {"chunks": (7, 7, 7)}, {"chunks": [5, 5], "shards": (10,)}, {"chunks": ()}):
        with pytest.raises(ValueError, match="2 lengths are wanted, one a dimension, or a number for all"):
            squall.create_array(tmp_path / "a.zarr", shape=(100, 20), dtype="i4", **wrong)
    assert not (tmp_path / "a.zarr").exists()
    assert squall.create_array(tmp_path / "a.zarr", shape=(100, 20), dtype="i4", chunks=7).chunks == (7, 7)
    assert squall.create_array(tmp_path / "b.zarr", shape=100, dtype="i4", chunks=np.int64(7)).chunks == (7,)
    assert squall.create_array(tmp_path / "c.zarr", shape=(), dtype="i4", chunks=()).chunks == ()
