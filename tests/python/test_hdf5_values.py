"""HDF5 datasets: squall reads what h5py reads, of other people's files and of random ones, whole and in parts, bit for bit."""

import ctypes
import multiprocessing
import random
import shutil
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import h5py
import hdf5plugin  # noqa: F401 - registers filters with h5py
import numpy as np
import pytest
import squall as sq
from conftest import SHARED
from hdf5_random import EDGES_UNFILTERED, VERSIONS, File, files, library, selections, set_fill_value
from hypothesis import given, settings

FILES = sorted(p.name for p in (SHARED / "data" / "hdf5").glob("*")) if SHARED.is_dir() else []


# ---- what h5py reads, as squall gives it -----------------------------------------------------------------------------------------------


def packed(dtype):
    """The type in memory: little-endian, fields one behind the other, enums and bools as what they are."""
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return np.dtype((packed(base), shape))
    if dtype.names:
        return np.dtype([(name, packed(dtype[name])) for name in dtype.names])
    if dtype == np.longdouble:
        return np.dtype("<f8")
    return np.dtype(dtype.newbyteorder("<").str)


def objects(values, make):
    out = np.empty(values.shape, object)
    for index in np.ndindex(values.shape):
        out[index] = make(values[index])
    return out


def wanted_values(f, dset):
    """None: h5py cannot read it."""
    if dset.shape is None:
        return np.empty((0,), packed(dset.dtype) if not dset.dtype.hasobject else object)
    try:
        values = np.asarray(dset[()])
    except (TypeError, OSError, RuntimeError, ValueError):
        return None
    dtype = dset.dtype
    if h5py.check_string_dtype(dtype) and dtype.kind == "O":
        return objects(np.asarray(dset[()], object), lambda v: v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else v or "")
    if h5py.check_vlen_dtype(dtype) is not None:
        base = packed(h5py.check_vlen_dtype(dtype))
        whole = np.empty(dset.shape, object)
        for index in np.ndindex(dset.shape):
            whole[index] = dset[index]
        return objects(whole, lambda v: np.asarray(v).astype(base))
    if h5py.check_ref_dtype(dtype) is h5py.Reference:
        return objects(np.asarray(values, object), lambda r: f[r].name if r else "")
    if dtype.hasobject:
        return None
    if dtype.kind == "S":  # a scalar is bytes, without NULs at their end
        values = values.astype(dtype)
    return values.astype(packed(values.dtype))


def comparable(value):
    return (value.dtype.str, value.tobytes()) if isinstance(value, np.ndarray) else value


def assert_same(found, wanted, what):
    assert found.shape == wanted.shape, what
    if wanted.dtype.kind == "O":
        assert [comparable(v) for v in found.ravel()] == [comparable(v) for v in wanted.ravel()], what
        return
    assert found.dtype == wanted.dtype, what
    if found.tobytes() != wanted.tobytes():
        raise AssertionError(f"values differ: {what}\nfound {found}\nwanted {wanted}")


# ---- other people's files --------------------------------------------------------------------------------------------------------------


def datasets_of(f):
    """(name, what squall calls it) of each dataset of the file once, but those that are only dimensions to NetCDF."""
    found = []

    def visit(name, what):
        if isinstance(what, h5py.Dataset) and not bytes(what.attrs.get("NAME", b"")).startswith(b"This is a netCDF dimension but not"):
            found.append((name, name.replace("_nc4_non_coord_", "")))

    f.visititems(visit)
    return found


@pytest.mark.parametrize("name", FILES)
def test_every_dataset_is_read_as_h5py_reads_it_or_refused_by_name(shared, name):
    path = shared / "data" / "hdf5" / name
    try:
        f = h5py.File(path)
    except OSError:
        pytest.skip("h5py does not open it")
    with f, warnings.catch_warnings():
        group = sq.open(path)
        warnings.simplefilter("ignore")
        for dataset, known_as in datasets_of(f):
            array, wanted = group[known_as], wanted_values(f, f[dataset])
            if array.unsupported:
                with pytest.raises(sq.Error, match="array "):
                    array[...]
                continue
            found = np.asarray(array[...])
            if wanted is not None:
                assert_same(found, wanted, f"{name}: {dataset}")


def test_file_that_its_writer_left_open_is_read(shared):
    """h5py refuses the first of the two; both were written by the same program."""
    name = "jhdf_test_byteshuffle_compressed_datasets_{}.hdf5"
    left_open, closed = (sq.open(shared / "data" / "hdf5" / name.format(which)) for which in ("latest", "earliest"))
    for dataset in ("float/float32", "float/float64", "int/int8", "int/int16", "int/int32"):
        assert_same(left_open[dataset][...], closed[dataset][...], dataset)


def test_texts_in_a_heap_that_says_too_small_a_size_are_read(shared):
    """h5py refuses them; the file's attributes and names say what they are."""
    texts = sq.open(shared / "data" / "hdf5" / "jhdf_var-length-strings-reused.hdf5")["a0"][...].tolist()
    one, none = "att-0-value-1", "NULL"
    assert texts == [one, one, none, none, none, one, "att-0-value-0", one, none, none]


def test_commands_take_hdf5_files(squall, shared):
    path = shared / "data" / "hdf5" / "kerchunk_air.nc"
    assert [line.split()[0] for line in squall("ls", path).out.splitlines()] == ["lat", "air", "lon", "time"]
    assert "air  int16" in squall("info", path).out
    assert "496 B, " in squall("bench", path, "--array", "time").out
    with h5py.File(path) as f:
        assert [float(line.split(",")[-1]) for line in squall("get", path, "lat").out.splitlines()[1:]] == f["lat"][...].tolist()
    behind = shared / "data" / "hdf5" / "jhdf_test_userblock_latest.hdf5"
    assert squall("ls", behind).out == ""


# ---- random ones -----------------------------------------------------------------------------------------------------------------------


FEATURES = {*"contiguous compact chunked fixed extensible tree single implicit shuffle deflate fletcher32 masked fill resized".split()}
FEATURES |= {*"number complex bool enum text bytes raw sequence structure array reference".split()}
SELDOM = {*"lzf szip bzip2 lz4 zstd blosc bitshuffle scaleoffset nbit".split()}  # drawn among many


def check(rng, case, array, f, dset):
    what = f"{dset.name}: {case}\n{array!r}"
    assert not array.unsupported, f"{what}: {array.unsupported}"
    wanted = wanted_values(f, dset)
    assert wanted is not None, what
    assert_same(np.asarray(array[...]), wanted, what)
    if case.kind in ("number", "complex", "raw", "structure"):
        fill = np.asarray(dset.fillvalue, dset.dtype)
        assert_same(np.asarray(array.fill_value), fill.astype(packed(fill.dtype)), f"fill value of {what}")
    for key in selections(rng, dset.shape) if dset.shape else ():
        assert_same(np.asarray(array[key]), np.asarray(wanted[key]), f"{key} of {what}")


def check_files(version, examples, path, features):
    """As many as are wanted, and that these features are among them."""
    seen, cases = set(), 0

    @settings(max_examples=examples)
    @given(files(version))
    def check_file(drawn):
        nonlocal cases
        rng, file = drawn
        file.make(path)
        copy = shutil.copy(path, path.with_suffix(".copy"))
        with h5py.File(copy, "r+") as f:  # to read texts that are fill values libhdf5 has to write
            group = sq.open(path)
            for i, members in enumerate(file.groups):
                for k, case in enumerate(members):
                    check(rng, case, group[f"g{i}/x{k}"], f, f[f"g{i}/x{k}"])
                    seen.update(case.features)
                    cases += 1

    check_file()
    assert cases > 6 * examples and not features - seen, (cases, features - seen)


@pytest.mark.parametrize("version", VERSIONS)
def test_random_datasets_are_read_as_h5py_reads_them(tmp_path, version):
    check_files(version, 45, tmp_path / "random.h5", FEATURES)


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_many_random_datasets_are_read_as_h5py_reads_them(tmp_path, version):
    check_files(version, 2000, tmp_path / "random.h5", FEATURES | SELDOM)


# ---- what random ones are too small for ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<i2", "<c16", "i1"])
@pytest.mark.parametrize(
    "filters", [{"shuffle": True, "compression": "gzip"}, {"shuffle": True, "fletcher32": True}, {"compression": "gzip"}]
)
def test_few_elements_of_large_chunks_are_read(tmp_path, dtype, filters):
    values = np.random.default_rng(1).integers(-100, 100, (3, 100, 100)).astype(dtype)
    with h5py.File(tmp_path / "x.h5", "w") as f:
        dset = f.create_dataset("x", data=values, chunks=(1, 64, 64), **filters)
        plain = np.ascontiguousarray(values[1, :64, :64]).tobytes()
        dset.id.write_direct_chunk((1, 0, 0), plain, (1 << len(filters)) - 1)  # no filter touched it
    values = values.astype(values.dtype.newbyteorder("<"))
    array = sq.open(tmp_path / "x.h5")["x"]
    for _ in range(2):  # from the file, and from what was kept of it
        for key in [np.s_[:, 70, 3], np.s_[:, 63, 60:67], np.s_[1:2, 5::40, 7], np.s_[2, 99, 99], np.s_[:, :, 50]]:
            assert_same(np.asarray(array[key]), np.asarray(values[key]), key)


def test_contiguous_data_are_cut_where_they_are_large(tmp_path):
    values = np.arange(7 * 300 * 1000, dtype="<f8").reshape(7, 300, 1000)
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f["little"], f["big"] = values, values.astype(">f8")
        f["texts"] = np.array([[b"a", b"b"]] * 100000)
    group = sq.open(tmp_path / "x.h5")
    for name in ("little", "big"):
        assert group[name].chunks == (1, 131, 1000)
        for key in [np.s_[...], np.s_[3, 100:290, 5:8], np.s_[::3, -1, ::7]]:
            assert_same(group[name][key], values[key], (name, key))
    assert (group["texts"][...] == np.array([[b"a", b"b"]] * 100000)).all()


@pytest.mark.parametrize("index", ["earliest", "fixed", "extensible", "tree"])
@pytest.mark.parametrize("filters", [{}, {"compression": "gzip"}])
def test_index_of_thousands_of_chunks_is_read(tmp_path, index, filters):
    maximum = {"extensible": (None, 60), "tree": (None, None)}.get(index)
    values = np.arange(60 * 60, dtype="i4").reshape(60, 60)
    with h5py.File(tmp_path / "x.h5", "w", libver=("earliest" if index == "earliest" else "latest", "latest")) as f:
        dset = f.create_dataset("x", (60, 60), "i4", chunks=(1, 1), maxshape=maximum, fillvalue=-1, **filters)
        dset[:50] = values[:50]
    values[50:] = -1
    assert_same(sq.open(tmp_path / "x.h5")["x"][...], values, index)


def floats_of(kind):
    """A float type that machines do not have, as libhdf5 stores it."""
    if kind == "x87":
        return h5py.h5t.NATIVE_LDOUBLE.copy()
    if kind == "VAX":
        return h5py.h5t.VAX_F32.copy() if hasattr(h5py.h5t, "VAX_F32") else pytest.skip("h5py has no VAX floats")
    low = h5py.h5t.IEEE_F32LE.copy()
    fields, size, bias = {"bfloat16": ((15, 7, 8, 0, 7), 2, 127), "8 bits": ((7, 3, 4, 0, 3), 1, 7)}[kind]
    low.set_fields(*fields)
    low.set_size(size)
    low.set_precision(8 * size)
    low.set_ebias(bias)
    return low


@pytest.mark.parametrize("kind", ["x87", "bfloat16", "8 bits", "VAX"])
def test_floats_that_machines_do_not_have_are_converted(tmp_path, kind):
    make = np.random.default_rng(3)
    values = np.concatenate([[0.0, 1.0, -1.5, 0.1], make.normal(size=100)])
    if kind in ("x87", "bfloat16"):
        values = np.concatenate([values, [-0.0, np.inf, -np.inf, 1e30, 1e-38, 3e-40]])
    with h5py.File(tmp_path / "x.h5", "w") as f:
        low = h5py.h5d.create(f.id, b"x", floats_of(kind), h5py.h5s.create_simple(values.shape))
        low.write(
            h5py.h5s.ALL,
            h5py.h5s.ALL,
            values if kind != "x87" else values * np.longdouble(1.1),
            h5py.h5t.py_create(values.dtype if kind != "x87" else np.dtype(np.longdouble)),
        )
        f.flush()
        found = sq.open(tmp_path / "x.h5")["x"][...]
        wanted = np.empty(values.shape, found.dtype)
        low.read(h5py.h5s.ALL, h5py.h5s.ALL, wanted, h5py.h5t.py_create(found.dtype))
    assert_same(found, wanted, kind)


# ---- what was never written, filters that nobody has -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["contiguous", "chunked"])
@pytest.mark.parametrize("dtype", ["<i2", ">i4", "S3"])
def test_fill_values_of_array_types_whose_elements_differ(tmp_path, layout, dtype):
    fill = np.array([[1, 2, 3], [4, 5, 6]]).astype(dtype)
    inner = h5py.h5t.array_create(h5py.h5t.py_create(fill.dtype), fill.shape)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if layout == "chunked":
        plist.set_chunk((2, 3))
    set_fill_value(plist, inner, fill)
    with h5py.File(tmp_path / "x.h5", "w") as f:
        dset = h5py.Dataset(h5py.h5d.create(f.id, b"x", inner, h5py.h5s.create_simple((5, 7)), plist))
        if layout == "chunked":
            dset[1:3, 2:4] = np.full((2, 2, 2, 3), 9).astype(dtype)
        wanted = dset[...]
    array = sq.open(tmp_path / "x.h5")["x"]
    wanted = wanted.astype(packed(wanted.dtype))
    assert (wanted[4, 6] == fill).all()
    for key in [np.s_[...], np.s_[4, 6], np.s_[1::2, :, 1], np.s_[:, 3, ::-1, ::2], np.s_[0, 0, 1, 2]]:
        assert_same(np.asarray(array[key]), np.asarray(wanted[key]), key)
    assert (array.fill_value.astype(fill.dtype) == fill).all()


@pytest.mark.parametrize("fill_time", [h5py.h5d.FILL_TIME_NEVER, h5py.h5d.FILL_TIME_ALLOC, h5py.h5d.FILL_TIME_IFSET])
@pytest.mark.parametrize("alloc_time", [h5py.h5d.ALLOC_TIME_EARLY, h5py.h5d.ALLOC_TIME_LATE])
@pytest.mark.parametrize("how", ["contiguous", "chunked", "filtered", "edges unfiltered"])
def test_whenever_space_is_taken_and_filled_the_same_is_read(tmp_path, fill_time, alloc_time, how):
    """What was written; and what was not is the fill value, whenever it would have been written. Where nobody filled the space that was
    taken, it is whatever h5py finds there, too."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_fill_time(fill_time)
    plist.set_alloc_time(alloc_time)
    plist.set_fill_value(np.array(-3, "i4"))
    if how != "contiguous":
        plist.set_chunk((4, 5))
    if how not in ("contiguous", "chunked"):
        plist.set_shuffle()
        plist.set_deflate(4)
    if how == "edges unfiltered":
        library().H5Pset_chunk_opts(ctypes.c_int64(plist.id), EDGES_UNFILTERED)
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as f:
        for name, written in (("all", np.s_[:, :]), ("part", np.s_[3:9, 6:13]), ("none", None)):
            dset = h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple((10, 13)), plist))
            if written:
                dset[written] = np.arange(130).reshape(10, 13)[written]
    group = sq.open(tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5") as f:
        for name in ("all", "part", "none"):
            found, wanted = group[name][...], f[name][...]
            where = np.zeros((10, 13), bool)
            if name != "none":
                where[np.s_[:, :] if name == "all" else np.s_[3:9, 6:13]] = True
            if fill_time != h5py.h5d.FILL_TIME_NEVER:
                assert_same(found, wanted, name)
                assert (found[~where] == -3).all()
            assert (found[where] == np.arange(130).reshape(10, 13)[where]).all()
    assert (group["none"][...] == -3).all() or fill_time == h5py.h5d.FILL_TIME_NEVER


def behind_a_filter_of_nobodys(path, masks):
    """A dataset of a chunk for each mask, behind deflate and a filter that no library has."""
    values = np.arange(8 * len(masks), dtype="<i4")
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((8,))
    plist.set_deflate(1)
    plist.set_filter(500, h5py.h5z.FLAG_OPTIONAL, (1, 2))
    with h5py.File(path, "w") as f:
        dset = h5py.h5d.create(f.id, b"x", h5py.h5t.STD_I32LE, h5py.h5s.create_simple(values.shape), plist)
        for i, mask in enumerate(masks):
            chunk = values[8 * i : 8 * i + 8].tobytes()
            dset.write_direct_chunk((8 * i,), chunk if mask & 1 else zlib.compress(chunk), mask)
    return values


def test_a_filter_that_is_not_known_does_no_harm_where_no_chunk_went_through_it(tmp_path):
    path = tmp_path / "x.h5"
    values = behind_a_filter_of_nobodys(path, [2, 3, 2])
    array = sq.open(path)["x"]
    assert not array.unsupported and (array[...] == values).all()
    behind_a_filter_of_nobodys(path, [2, 1, 2])
    array = sq.open(path)["x"]
    assert array.unsupported.startswith("filter 500")
    with pytest.raises(sq.Error, match="array x cannot be read: filter 500"):
        array[...]


# ---- threads, processes, damage --------------------------------------------------------------------------------------------------------


def chunked(path, values, **how):
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("x", data=values, chunks=(1, 50), **how)
    return path


def test_threads_that_need_an_index_at_the_same_time_read_it(tmp_path):
    values = np.arange(400 * 100, dtype="f8").reshape(400, 100)
    path = chunked(tmp_path / "x.h5", values, shuffle=True, compression=1, maxshape=(None, None))
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            array = sq.open(path)["x"]
            for row, found in enumerate(pool.map(lambda row, array=array: array[row], range(0, 400, 20))):
                assert (found == values[20 * row]).all()


def read_in_child(path, queue):
    queue.put(float(sq.open(path)["x"][...].sum()))


def test_child_of_a_process_that_read_reads_too(tmp_path):
    values = np.arange(400 * 100, dtype="f8").reshape(400, 100)
    path = chunked(tmp_path / "x.h5", values, compression=1)
    assert sq.open(path)["x"][...].sum() == values.sum()
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    child = fork.Process(target=read_in_child, args=(path, queue))
    child.start()
    assert queue.get(timeout=60) == values.sum()
    child.join()


def arrays_of(group):
    for member in group.values():
        if isinstance(member, sq.Array):
            yield member
        else:
            yield from arrays_of(member)


def test_damaged_files_are_errors_or_values(tmp_path):
    """Nothing else: no crash, no other exception, no endless walk."""
    errors = 0
    for number in range(60):
        rng = random.Random(number)
        data = File(rng, rng.choice(VERSIONS), [1]).make(tmp_path / "whole.h5").read_bytes()
        for _ in range(12):
            damaged = bytearray(data)
            for _ in range(rng.choice([1, 1, 2, 8])):
                at = rng.randrange(len(damaged))
                damaged[at] = rng.choice([damaged[at] ^ (1 << rng.randrange(8)), 0, 255])
            (tmp_path / "damaged.h5").write_bytes(damaged[: rng.choice([len(data), len(data), rng.randrange(len(data))])])
            try:
                for array in arrays_of(sq.open(tmp_path / "damaged.h5")):
                    array[tuple(slice(0, 100) for _ in array.shape)]
            except (sq.Error, MemoryError):
                errors += 1
    assert errors > 100
