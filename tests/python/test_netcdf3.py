"""NetCDF-3 files, read: other people's, and files that netCDF4 makes of dimensions, types, records and attributes drawn by
hypothesis, against what netCDF4 reads of them."""

import json
import pickle
import random
import warnings

import numpy as np
import pytest
import squall
from conftest import SHARED
from hypothesis import given, settings
from hypothesis import strategies as st

netCDF4 = pytest.importorskip("netCDF4")

FOLDER = SHARED / "data" / "netcdf3"
FILES = sorted(p.name for p in FOLDER.iterdir()) if FOLDER.is_dir() else []
NONE = [pytest.param("", marks=pytest.mark.skip("../shared is not there: no real files to test with"))]
FORMATS = {"NETCDF3_CLASSIC": "netcdf3 (CDF-1)", "NETCDF3_64BIT_OFFSET": "netcdf3 (CDF-2)", "NETCDF3_64BIT_DATA": "netcdf3 (CDF-5)"}
CLASSIC = ["i1", "S1", "i2", "i4", "f4", "f8"]
TYPES = {"NETCDF3_CLASSIC": CLASSIC, "NETCDF3_64BIT_OFFSET": CLASSIC, "NETCDF3_64BIT_DATA": [*CLASSIC, "u1", "u2", "u4", "i8", "u8"]}


def opened(path):
    """By netCDF4, values as they are stored."""
    dataset = netCDF4.Dataset(path)
    dataset.set_auto_maskandscale(False)
    dataset.set_auto_chartostring(False)
    return dataset


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=") and a.tobytes() == b.astype(a.dtype).tobytes()


def equal_attributes(ours, theirs):
    names = theirs.ncattrs()
    if list(ours) != names:
        return False
    return all(np.array_equal(ours[n], theirs.getncattr(n), equal_nan=not isinstance(ours[n], str)) for n in names)


def check(path):
    """Everything in the file is to squall what it is to netCDF4."""
    ours, rng = squall.open(path), random.Random(path.name)
    with opened(path) as theirs:
        assert ours.format == FORMATS[theirs.data_model] and not ours.problems
        assert equal_attributes(ours.attrs, theirs)
        assert list(ours) == list(theirs.variables)
        for name, variable in theirs.variables.items():
            a = ours[name]
            assert a.dims == variable.dimensions and a.shape == variable.shape, name
            values = variable[...]
            assert same(a[...], values), name
            key = random_key(rng, a.shape)
            assert same(a[key], values[key]), (name, key)
            assert equal_attributes(a.attrs, variable), name
    return ours


@pytest.mark.parametrize("name", FILES or NONE)
def test_real_files_read_as_netcdf4_reads_them(name):
    check(FOLDER / name)


def random_values(rng, dtype, shape):
    n = int(np.prod(shape))
    if dtype == "S1":
        return rng.integers(32, 127, n, dtype="u1").view("S1").reshape(shape)
    if dtype[0] == "f":
        return rng.standard_normal(n).astype(dtype).reshape(shape)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True).reshape(shape)


SEEDS = st.integers(0, 2**32 - 1)  # of values


@st.composite
def descriptions(draw, kind):
    """Of a file: lengths of dimensions, attributes, variables (type, with records?, dimensions, attributes), and the seed of values."""
    numbers = [dtype for dtype in TYPES[kind] if dtype != "S1"]
    texts = st.sampled_from(["", "K", "five5", "grüße", "a longer text with\nlines"])
    attributes = st.lists(texts | st.tuples(st.sampled_from(numbers), st.integers(1, 4)), max_size=3)
    fixed = {f"d{k}": n for k, n in enumerate(draw(st.lists(st.integers(1, 8), min_size=1, max_size=4)))}
    dims = st.lists(st.sampled_from(list(fixed)), unique=True)
    variables = st.lists(st.tuples(st.sampled_from(TYPES[kind]), st.booleans(), dims, attributes), min_size=1, max_size=6)
    return {"time": draw(st.integers(0, 5))} | fixed, draw(attributes), draw(variables), draw(SEEDS)


def make(path, kind, lengths, attributes, variables, seed):
    rng = np.random.default_rng(seed)

    def set_attributes(of, values):
        for k, value in enumerate(values):
            if isinstance(value, tuple):
                value = random_values(rng, value[0], (value[1],))
            of.setncattr(f"attr_{k}", value)

    with netCDF4.Dataset(path, "w", format=kind) as d:
        set_attributes(d, attributes)
        for name, length in lengths.items():
            d.createDimension(name, None if name == "time" else length)
        made = []
        for k, (dtype, has_records, dims, of_variable) in enumerate(variables):
            dims = ("time", *dims) if has_records else tuple(dims)
            made.append((d.createVariable(f"v{k}", dtype, dims), dtype, tuple(lengths[name] for name in dims)))
            set_attributes(made[-1][0], of_variable)
        for v, dtype, shape in made:
            v.set_auto_maskandscale(False)
            if 0 not in shape:
                v[...] = random_values(rng, dtype, shape)


@pytest.mark.parametrize("kind", FORMATS)
def test_random_files_read_as_netcdf4_reads_them(kind, tmp_path):
    @settings(max_examples=120)
    @given(descriptions(kind))
    def check_file(description):
        path = tmp_path / f"{description[-1]}.nc"
        make(path, kind, *description)
        check(path)
        path.unlink()

    check_file()


def random_key(rng, shape):
    key = []
    for n in shape:
        kind = rng.randrange(4)
        if kind == 0 and n:
            key.append(rng.randrange(-n, n))
        elif kind == 1 and n:
            key.append(sorted(rng.sample(range(n), rng.randint(1, min(n, 4)))))
        else:
            key.append(slice(rng.randint(0, n), rng.randint(0, n), rng.randint(1, 3)))
    if sum(isinstance(k, list) for k in key) > 1:
        key = [slice(None) if isinstance(k, list) else k for k in key]
    return tuple(key)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Variables of several chunks, fixed and with records, in 5 MiB to 9 MiB; the record is no multiple of 8 bytes."""
    path = tmp_path_factory.mktemp("large") / "large.nc"
    rng = np.random.default_rng(5)
    records = 9
    values = {
        "fixed": (("z", "y", "x"), rng.standard_normal((5, 400, 600))),
        "few": (("time",), np.arange(float(records))),
        "map": (("time", "y", "x"), rng.standard_normal((records, 400, 600)).astype("f4")),
        "odd": (("time", "z"), rng.integers(-9, 9, (records, 5)).astype("i1")),
        "words": (("time", "y"), rng.integers(-9999, 9999, (records, 400)).astype("i2")),
        "wide": (("x", "y", "z"), rng.integers(-9999, 9999, (600, 400, 5)).astype("i4")),
    }
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as d:
        for name, n in (("time", None), ("z", 5), ("y", 400), ("x", 600)):
            d.createDimension(name, n)
        for name, (dims, v) in values.items():
            d.createVariable(name, v.dtype, dims)[...] = v
    return path, {name: v for name, (_, v) in values.items()}


def test_any_selection_of_large_variables_is_numpys(large):
    path, values = large
    ds, rng = squall.open(path), random.Random(3)
    for name, v in values.items():
        a = ds[name]
        assert np.array_equal(a[...], v)
        assert np.prod(a.chunks, dtype=float) * a.itemsize <= 4 << 20
        for _ in range(40):
            key = random_key(rng, v.shape)
            assert np.array_equal(a[key], v[key]), (name, key)
    transposed = np.empty(values["map"].shape[::-1], "f4").T
    ds["map"].read(out=transposed)
    assert np.array_equal(transposed, values["map"])


@pytest.mark.parametrize("dtype", ["i2", "f4", "f8"])
def test_a_result_larger_than_the_caches_may_lie_anywhere_in_memory(dtype, tmp_path):
    values = np.random.default_rng(2).integers(0, 256, 50 << 20, np.uint8).view(dtype).reshape(10, -1)
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_64BIT_OFFSET") as d:
        d.createDimension("y", 10)
        d.createDimension("x", values.shape[1])
        d.set_auto_maskandscale(False)
        d.createVariable("v", dtype, ("y", "x"))[...] = values
    a = squall.open(tmp_path / "a.nc")["v"]
    memory = np.empty((50 << 20) + 8192, np.uint8)
    aligned = -memory.ctypes.data % 4096
    for at in (1, 2, 4, 8, 12, 16, 24, 32, 64, 4088):
        memory[:] = 0xA5
        out = memory[aligned + at :][: values.nbytes]
        a.read(out=out.view(dtype).reshape(values.shape))
        assert np.array_equal(out, values.view(np.uint8).ravel()), at
        assert memory[aligned + at - 1] == 0xA5 and memory[aligned + at + values.nbytes] == 0xA5


def test_arrays_pickle_and_a_file_that_changed_is_an_error(large, tmp_path):
    path = tmp_path / "copy.nc"
    path.write_bytes(large[0].read_bytes())
    a = squall.open(path)["fixed"]
    assert np.array_equal(pickle.loads(pickle.dumps(a))[3, 7], large[1]["fixed"][3, 7])
    path.write_bytes(path.read_bytes())
    with pytest.raises(squall.Error, match=r"copy\.nc changed since it was opened"):
        a[0]


def test_the_fill_value_is_the_attribute_or_netcdfs_own(tmp_path):
    with netCDF4.Dataset(tmp_path / "f.nc", "w", format="NETCDF3_64BIT_DATA") as d:
        d.createDimension("x", 2)
        for dtype in TYPES["NETCDF3_64BIT_DATA"]:
            d.createVariable(dtype, dtype, ("x",))
        d.createVariable("own", "f4", ("x",), fill_value=-1.5)
    ds = squall.open(tmp_path / "f.nc")
    for dtype in TYPES["NETCDF3_64BIT_DATA"]:
        assert ds[dtype].fill_value == (b"" if dtype == "S1" else np.dtype(dtype).type(netCDF4.default_fillvals[dtype]))
        assert (ds[dtype][:] == ds[dtype].fill_value).all()  # netCDF fills what nobody writes
    assert ds["own"].fill_value == np.float32(-1.5)


def test_the_command_reads_them(squall, tmp_path):
    path = tmp_path / "c.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as d:
        d.title = "five numbers"
        d.createDimension("x", 5)
        v = d.createVariable("t", "i2", ("x",))
        v.units = "K"
        v[:] = [1, 2, 3, 4, 5]
    info = json.loads(squall("info", "--json", path).out)
    assert info["format"] == "netcdf3 (CDF-1)" and info["attributes"] == {"title": "five numbers"}
    assert info["arrays"][0] == {
        "name": "t",
        "type": "int16",
        "dims": ["x"],
        "shape": [5],
        "chunks": [5],
        "codecs": "contiguous",
        "bytes": 10,
        "fill_value": -32767,
        "attributes": {"units": "K"},
        "unsupported": None,
    }
    assert "five numbers" in squall("info", path).out and "contiguous" in squall("ls", path).out
    squall("get", path, "t", "-s", "x=1:4", "-o", tmp_path / "t.npy")
    assert np.load(tmp_path / "t.npy").tolist() == [2, 3, 4]
    bench = json.loads(squall("bench", path, "--json").out)
    assert bench["points"] == 5 and bench["bytes"] == 10


def test_what_is_truncated_is_told_and_the_rest_can_be_read(large, squall, tmp_path):
    path, values = tmp_path / "cut.nc", large[1]
    path.write_bytes(large[0].read_bytes()[:-500_000])
    told = squall("info", path, check=False)
    assert told.code == 3 and "variable map goes on to byte" in told.err and "truncated" in told.err
    from squall import open as open_dataset

    ds = open_dataset(path)
    assert np.array_equal(ds["map"][:8], values["map"][:8]) and np.array_equal(ds["fixed"][...], values["fixed"])
    with pytest.raises(OSError, match=r"array map, chunk 2/0/0: .*cut\.nc: ends at byte"):
        ds["map"][8]


@pytest.mark.parametrize("kind", list(FORMATS))
def test_a_streamed_file_has_the_records_that_are_there(kind, tmp_path):
    path = tmp_path / "s.nc"
    with netCDF4.Dataset(path, "w", format=kind) as d:
        d.createDimension("time", None)
        d.createDimension("x", 3)
        d.createVariable("a", "i4", ("time", "x"))[:] = np.arange(12).reshape(4, 3)
        d.createVariable("b", "i1", ("time",))[:] = range(4)
    content = bytearray(path.read_bytes())
    content[4 : 12 if kind.endswith("DATA") else 8] = b"\xff" * (8 if kind.endswith("DATA") else 4)
    path.write_bytes(content)
    ds = squall.open(path)
    assert ds["a"][...].tolist() == np.arange(12).reshape(4, 3).tolist() and ds["b"][...].tolist() == [0, 1, 2, 3]


def test_text_attributes_are_decoded_as_netcdf4_does(tmp_path):
    path = tmp_path / "t.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_CLASSIC") as d:
        d.text = "XXXXXXXX"
        d.empty = ""
    for raw in (b"caf\xe9 \xc3\xa9\x00", b"\xf0\x9f\x98\x80\xed\xa0\x80\xc0", b"a\x00\x00\x00\x00b\xe2\x82"):
        content = path.read_bytes()
        damaged = tmp_path / "d.nc"
        damaged.write_bytes(content.replace(b"XXXXXXXX", raw.ljust(8, b"\x00")[:8]))
        with warnings.catch_warnings(), opened(damaged) as d:
            assert squall.open(damaged).attrs["text"] == d.text
            assert squall.open(damaged).attrs["empty"] == d.empty
