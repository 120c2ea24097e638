"""Descriptions of Zarr arrays: type, shape, chunks, dimensions, fill value and attributes are zarr-python's, however they are spelt."""

import json
import warnings

import numpy as np
import pytest
import squall
import zarr
from conftest import SHARED

warnings.filterwarnings("ignore", module="zarr")
pytestmark = pytest.mark.filterwarnings("ignore")

FOLDER = SHARED / "data" / "zarr"


@pytest.fixture
def squall_command(request):
    """The command, whose fixture is called as the package is."""
    return request.getfixturevalue("squall")


def shared_arrays():
    """Folders of arrays that zarr-python opens, too: it knows neither all types nor all codecs."""
    for path in sorted(FOLDER.rglob("*")) if FOLDER.is_dir() else []:
        if path.name == ".zarray" or (path.name == "zarr.json" and json.loads(path.read_text())["node_type"] == "array"):
            yield str(path.parent.relative_to(FOLDER))


def same_bits(found, wanted):
    """Bit for bit, whatever the order of bytes; a NaN's payload is data too."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    return found.shape == wanted.shape and found.tobytes() == wanted.astype(found.dtype).tobytes()


def check_description(found, wanted):
    assert found.shape == wanted.shape and found.chunks == wanted.chunks and found.shards == wanted.shards
    names = wanted.metadata.dimension_names if wanted.metadata.zarr_format == 3 else wanted.attrs.get("_ARRAY_DIMENSIONS")
    assert found.dims == tuple(name or None for name in names or [None] * wanted.ndim)
    attributes = {k: v for k, v in wanted.attrs.asdict().items() if not (k == "_ARRAY_DIMENSIONS" and wanted.metadata.zarr_format == 2)}
    assert json.dumps(dict(found.attrs)) == json.dumps(attributes)  # in their order
    if wanted.dtype.kind in "OT":
        assert found.dtype == object
        return
    # structures keep the order of their fields, all else comes in the machine's
    assert found.dtype == (wanted.dtype if wanted.dtype.names else wanted.dtype.newbyteorder("="))
    if wanted.fill_value is not None:
        assert same_bits(np.array(found.fill_value, found.dtype), np.array(wanted.fill_value, wanted.dtype))


@pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared is not there: no real files to test with")
@pytest.mark.parametrize("name", list(shared_arrays()) or ["none"])
def test_shared_arrays_are_described_as_zarr_python_does(name):
    try:
        wanted = zarr.open_array(FOLDER / name, mode="r")
    except (ValueError, KeyError) as unknown:  # its errors for unknown types and codecs are of these kinds
        wanted = None
        reason = str(unknown)
    found = squall.open_array(FOLDER / name)
    if wanted is None:
        document = next(FOLDER / name / n for n in ("zarr.json", ".zarray") if (FOLDER / name / n).exists())
        assert "codec" in reason or "data type" in reason
        assert list(found.shape) == json.loads(document.read_text())["shape"]
    else:
        check_description(found, wanted)


RECORD = np.dtype([("a", ">i4"), ("b", "<f8"), ("c", "S3"), ("d", "?"), ("t", "<M8[s]"), ("u", ">U2"), ("v", "V2"), ("z", "<c8")])
NESTED = np.dtype([("p", [("x", "<f4"), ("y", "<f4")]), ("n", "<i2")])
LITTLE = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S3"), ("d", "?")])
TIMES = [np.datetime64("NaT", "ns"), np.datetime64("2022-01-01T06", "ns")]
CASES = [
    # dtype, fill values, versions
    *[(t, [0, 1], (2, 3)) for t in ("?", "i1", "<i2", ">i4", "<i8", "u1", ">u2", "<u4", ">u8")],
    *[(t, [0.5, np.nan, np.inf, -np.inf], (2, 3)) for t in ("<f2", ">f4", "<f8")],
    *[(t, [0, 1 - 2j, complex(np.nan, np.inf), complex(-np.inf, -0.0)], (2, 3)) for t in ("<c8", ">c8", "<c16", ">c16")],
    *[(f"{order}M8[{unit}]", TIMES, (2, 3)) for order in "<>" for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "25s")],
    *[(f"{order}m8[{unit}]", ["NaT", 0, -7], (2, 3)) for order in "<>" for unit in ("D", "s", "10ms", "ns", "ps")],
    *[(t, ["", "é🎉"], (2, 3)) for t in ("<U3", ">U3", "<U40")],
    *[(t, [b"", b"ab", b"\xff\x00\x01"], (2, 3)) for t in ("S3", "S20")],
    *[(t, [b"\0" * n, bytes(range(n))], (2, 3)) for t, n in (("V1", 1), ("V5", 5))],
    (RECORD, [np.zeros((), RECORD)[()], np.array((-7, 0.5, b"ab", True, "2022-01-01", "é", b"\1\2", 1j), RECORD)[()]], (2,)),
    (LITTLE, [np.zeros((), LITTLE)[()], np.array((-7, 0.5, b"ab", True), LITTLE)[()]], (2, 3)),
    (NESTED, [np.array(((1, 2), 3), NESTED)[()]], (2, 3)),
]


def values_of(dtype, count):
    """Any bits, but where numpy itself cannot take them: truths, characters of Unicode's."""
    rng = np.random.default_rng(7)
    if dtype.names:
        values = np.zeros(count, dtype)
        for name in dtype.names:
            values[name] = values_of(dtype[name], count)
        return values
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(bool)
    if dtype.kind == "U":
        return np.array([rng.choice(["", "a", "é🎉", "x" * 50]) for _ in range(count)]).astype(dtype)
    return rng.integers(0, 256, (count, dtype.itemsize), dtype=np.uint8).view(dtype.str)[:, 0]


def named(case):
    return str(case[0]).replace("datetime64", "M8")


@pytest.mark.parametrize("dtype, fills, versions", CASES, ids=list(map(named, CASES)))
def test_every_type_and_fill_value_that_zarr_python_writes(tmp_path, dtype, fills, versions):
    dtype = np.dtype(dtype)
    for version in versions:
        for at, fill in enumerate(fills):
            path = tmp_path / f"{version}-{at}.zarr"
            fill = np.array(fill).astype(dtype)[()] if dtype.kind in "Mm" else fill
            order = {"serializer": zarr.codecs.BytesCodec(endian="big")} if version == 3 and dtype.str[0] == ">" else {}
            options = dict(shape=(7,), chunks=(3,), dtype=dtype, fill_value=fill, zarr_format=version, compressors=None, **order)
            wanted = zarr.create_array(path, **options)
            values = values_of(dtype, 3)
            wanted[3:6] = values  # the chunks around it are missing
            found = squall.open_array(path)
            assert found.unsupported is None, found.unsupported
            check_description(found, wanted)
            assert same_bits(found[...], wanted[...])
            assert same_bits(found[3:6], values)


@pytest.mark.parametrize("version", [2, 3])
def test_types_of_variable_length(tmp_path, version):
    for kind, fills, values in (
        ("string", ["", "é🎉", "f\0g"], ["a", "\0", "Zür\0ich"]),
        ("variable_length_bytes", [b"", b"\0ab"], [b"a\0b", b"", b"\xff" * 50]),
    ):
        for at, fill in enumerate(fills):
            path = tmp_path / f"{kind}-{at}.zarr"
            dtype = zarr.dtype.VariableLengthUTF8() if kind == "string" else zarr.dtype.VariableLengthBytes()
            wanted = zarr.create_array(path, shape=(7,), chunks=(3,), dtype=dtype, fill_value=fill, zarr_format=version)
            wanted[3:6] = np.array(values, dtype=object)
            found = squall.open_array(path)
            check_description(found, wanted)
            assert found[...].tolist() == [fill] * 3 + values + [fill]


def test_attributes_of_every_kind(tmp_path):
    attributes = {
        "z": 1,
        "a": [1, 2.5, "x", None, True, {"deep": [[]]}],
        "ü": 'é🎉 "quoted" \\ / \n\t',
        "big": 2**63,
        "small": -(2**63),
        "float": 1e300,
        "tiny": 5e-324,
        "zero": -0.0,
        "nan": float("nan"),
        "inf": float("-inf"),
        "": "no name",
    }
    for version in (2, 3):
        wanted = zarr.create_array(tmp_path / f"{version}.zarr", shape=(3,), dtype="i1", zarr_format=version, attributes=attributes)
        found = squall.open_array(tmp_path / f"{version}.zarr")
        assert json.dumps(dict(found.attrs)) == json.dumps(wanted.attrs.asdict())


@pytest.mark.parametrize("separator", [".", "/"])
@pytest.mark.parametrize("encoding", ["default", "v2"])
@pytest.mark.parametrize("shape", [(), (5,), (4, 3), (0, 3)])
def test_chunk_keys(tmp_path, encoding, separator, shape):
    keys = {"name": encoding, "separator": separator}
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    wanted = zarr.create_array(tmp_path / "a.zarr", shape=shape, chunks=(2,) * len(shape), dtype="i8", chunk_key_encoding=keys)
    wanted[...] = values
    found = squall.open_array(tmp_path / "a.zarr")
    check_description(found, wanted)
    assert np.array_equal(found[...], values)


@pytest.mark.parametrize("dtype, fills, versions", CASES, ids=list(map(named, CASES)))
def test_the_command_writes_every_type_as_npy(squall_command, tmp_path, dtype, fills, versions):
    values = values_of(np.dtype(dtype), 5)
    zarr.create_array(tmp_path / "a.zarr", data=values, fill_value=fills[0], zarr_format=versions[0], compressors=None)
    squall_command("get", tmp_path / "a.zarr", "a.zarr", "-o", tmp_path / "a.npy")
    found = np.load(tmp_path / "a.npy")
    assert found.dtype == (values.dtype if values.dtype.names else values.dtype.newbyteorder("="))
    assert same_bits(found, values)


def column(squall_command, folder, *options):
    return [line.split(",", 1)[1] for line in squall_command("get", folder, folder.name, *options).out.splitlines()[1:]]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s", "7D"])
def test_the_command_prints_dates_as_numpy_does(squall_command, tmp_path, unit):
    rng = np.random.default_rng(3)
    top = {"Y": 8000, "M": 90000, "W": 400000, "D": 2900000, "7D": 400000, "h": 70000000, "m": 4 * 10**9}.get(unit, 10**11)
    counts = np.concatenate([[0, -1, 1, 59, 60, -60], rng.integers(-min(top, 10**11) // 4, top, 60), [-(2**63)]])
    values = counts.astype("i8").view(f"M8[{unit}]")
    zarr.create_array(tmp_path / "a.zarr", data=values)
    assert column(squall_command, tmp_path / "a.zarr") == np.datetime_as_string(values).tolist()


def test_the_command_prints_other_types_so_that_people_can_read_them(squall_command, tmp_path):
    cases = {
        "complex": (np.array([1 - 2j, 0.5 + 0j, complex(np.nan, np.inf)], "c8"), ["1-2j", "0.5+0j", "nan+infj"]),
        "bytes": (np.array([b"ab", b"", b"\xff\x01"], "S4"), ["ab", "", "ff01"]),
        "raw": (np.array([b"ab", b"\0\1"], "V2"), ["6162", "0001"]),
        "text": (np.array(["é🎉", 'a,"b"'], "U5"), ["é🎉", '"a,""b"""']),
        "span": (np.array([5, "NaT"], "m8[ms]"), ["5", "NaT"]),
        "record": (np.array([(1, b"x")], [("a", "<i2"), ("b", "S2")]), ["1,x"]),
    }
    for name, (values, wanted) in cases.items():
        zarr.create_array(tmp_path / name, data=values)
        assert column(squall_command, tmp_path / name) == wanted
    rows = json.loads(squall_command("get", "--json", tmp_path / "span", "span").out)
    assert [row["value"] for row in rows] == [5, None]


def test_the_command_tells_groups_and_shards(squall_command, tmp_path):
    group = zarr.open_group(tmp_path / "s.zarr", mode="w")
    group.create_group("a/b", attributes={"title": "deep"})
    group.create_array("a/t", shape=(8,), chunks=(2,), shards=(4,), dtype="i1")
    told = json.loads(squall_command("info", "--json", tmp_path / "s.zarr").out)
    assert told["groups"] == [{"name": "a", "attributes": {}}, {"name": "a/b", "attributes": {"title": "deep"}}]
    assert told["arrays"][0]["chunks"] == [2] and told["arrays"][0]["shards"] == [4]
    text = squall_command("info", tmp_path / "s.zarr").out
    assert "chunks (2) in shards (4)" in text and "group a/b" in text and "deep" in text


def test_coordinates_of_numpys_own_types_label_and_find(squall_command, tmp_path):
    dates = np.array(["2022-01-01T00:00", "2022-01-01T06:00", "NaT"], "M8[ns]")
    cases = {
        "time": (dates, "2022-01-01T05", ["2022-01-01T00:00:00", "2022-01-01T06:00:00", "NaT"], 1),
        "day": (dates.astype("M8[D]")[:2] + np.array([0, 3], "m8[D]"), "2022-01-03", ["2022-01-01T00:00:00", "2022-01-04T00:00:00"], 1),
        "step": (np.array([0, 90, 360], "m8[m]"), "1h", ["0h", "90m", "6h"], 1),
        "name": (np.array(["é🎉", "b"], "U4"), "b", ["é🎉", "b"], 1),
        "code": (np.array([b"ab", b"abcd"], "S4"), "abcd", ["ab", "abcd"], 1),
    }
    for dim, (values, key, labels, index) in cases.items():
        group = zarr.open_group(tmp_path / dim, mode="w")
        group.create_array(dim, data=values, dimension_names=[dim])
        group.create_array("v", data=np.arange(len(values)), dimension_names=[dim])
        rows = squall_command("get", tmp_path / dim, "v").out.splitlines()
        assert rows[1:] == [f"{label},{i}" for i, label in enumerate(labels)]
        assert squall_command("get", tmp_path / dim, "v", "--nearest", f"{dim}={key}").out.split()[-1] == str(index)
