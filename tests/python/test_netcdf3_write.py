"""NetCDF-3 files, written: headers and regions, read back by netCDF4 and by ncdump; from threads and processes at once."""

import fcntl
import json
import multiprocessing
import os
import pickle
import random
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import squall
from hypothesis import given, settings
from hypothesis import strategies as st
from squall import _squall
from test_netcdf3 import SEEDS, TYPES, opened, random_key, random_values, same

pytest.importorskip("netCDF4")
SPAWN = multiprocessing.get_context("spawn")  # what is written must be seen by strangers
NUMBERS = [t for t in TYPES["NETCDF3_64BIT_DATA"] if t != "S1"]


def create(path, dimensions, variables, attributes=None, types=None):
    """dimensions: {name: length}, a record dimension's negated; variables: {name: (type, dims)}."""
    _squall.create_netcdf(
        str(path),
        tuple((n, abs(length), length < 0) for n, length in dimensions.items()),
        tuple((n, np.dtype(t).str, dims, None, None) for n, (t, dims) in variables.items()),
        json.dumps(attributes or {}),
        json.dumps(types or {}),
    )


NAMES = ["time", "z", "y", "x"]


@settings(max_examples=40)
@given(
    st.fixed_dictionaries({name: st.integers(1, 8) for name in NAMES}),
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(TYPES["NETCDF3_64BIT_DATA"]), st.sets(st.sampled_from(NAMES))), min_size=1, max_size=6),
    SEEDS,
)
def test_random_regions_of_random_files_read_back_as_netcdf4_reads_them(tmp_path, sizes, record, drawn, seed):
    rng, keys = np.random.default_rng(seed), random.Random(seed)
    variables, expected = {}, {}
    for k, (dtype, chosen) in enumerate(drawn):
        dims = tuple(n for n in NAMES if n in chosen)
        variables[f"v{k}"] = dtype, dims
        expected[f"v{k}"] = np.zeros([sizes[n] for n in dims], dtype)
    path = tmp_path / "w.nc"
    path.unlink(missing_ok=True)
    create(path, {n: -s if record and n == "time" else s for n, s in sizes.items()}, variables)
    ds = squall.open(path, mode="r+")
    for name, values in expected.items():
        for _ in range(6):
            key = random_key(keys, values.shape)
            if any(isinstance(k, list) for k in key):
                continue
            new = random_values(rng, values.dtype.str[1:] if values.dtype.kind != "S" else "S1", values[key].shape)
            if values.ndim:
                values[key] = new
            ds[name][key] = new
        if not values.ndim:
            values[...] = ds[name][...]
        assert same(ds[name][...], values)
    with opened(path) as d:
        assert d.dimensions["time"].isunlimited() == record
        for name, values in expected.items():
            assert same(d[name][...], values), name
    ds["v0"][...] = ds["v0"].fill_value  # broadcast: strides of 0
    with opened(path) as d:
        assert (d["v0"][...] == ds["v0"].fill_value).all()


def test_attributes_are_written_in_their_types(tmp_path):
    values = {"text": "grüße", "n": 3, "far": 2**40, "real": 0.5, "none": float("nan"), "many": [1, 2, 3], "empty": "", "both": [1, 2.5]}
    typed = {"small": 7, "range": [-1, 2], "top": 2**64 - 1, "single": 0.1}
    types = {"small": "|i1", "range": "<i2", "top": "<u8", "single": "<f4"}
    create(tmp_path / "a.nc", {"x": 1}, {"v": ("i4", ("x",))}, {**values, **typed}, types)
    with opened(tmp_path / "a.nc") as d:
        assert d.ncattrs() == [*values, *typed]
        for name, value in values.items():
            assert np.array_equal(d.getncattr(name), value, equal_nan=not isinstance(value, str))
        for name, value in typed.items():
            got = np.asarray(d.getncattr(name))
            assert got.dtype == types[name] and np.array_equal(got, np.array(value, types[name]))
        assert d.n.dtype == "i4" and d.far.dtype == "i8" and d.both.dtype == "f8"
    ours = squall.open(tmp_path / "a.nc").attrs
    assert list(ours) == [*values, *typed] and ours["top"] == 2**64 - 1 and ours["text"] == "grüße"


def test_variables_without_records_begin_at_pages(tmp_path):
    create(
        tmp_path / "p.nc",
        {"time": -3, "x": 5},
        {"a": ("i1", ("x",)), "b": ("i2", ("time", "x")), "c": ("f8", ("x",)), "d": ("i1", ("time",))},
    )
    ds = squall.open(tmp_path / "p.nc", mode="r+")
    for n, name in enumerate("abcd"):
        ds[name][...] = n + 1
    content = (tmp_path / "p.nc").read_bytes()
    assert content[4096:4101] == b"\1" * 5 and content[8192:8200] == np.array(3.0, ">f8").tobytes()
    assert content[12288:] == (b"\0\2" * 5 + b"\0\0" + b"\4\0\0\0") * 3


@pytest.mark.skipif(shutil.which("ncdump") is None, reason="ncdump is not there (Debian: netcdf-bin)")
def test_ncdump_reads_what_is_written(tmp_path):
    create(tmp_path / "n.nc", {"time": -2, "x": 3}, {n: (n, ("time", "x")) for n in NUMBERS}, {"title": "made for ncdump"})
    ds = squall.open(tmp_path / "n.nc", mode="r+")
    for n in NUMBERS:
        ds[n][...] = np.arange(1, 7).reshape(2, 3)
    done = subprocess.run(["ncdump", tmp_path / "n.nc"], capture_output=True, text=True, check=True)
    assert "time = UNLIMITED ; // (2 currently)" in done.stdout and ':title = "made for ncdump"' in done.stdout
    words = "".join(done.stdout.split("data:")[1].split())
    for n in NUMBERS:
        assert f"{n}=1,2,3,4,5,6;" in words


def _write_share(path, share, shares):
    ds = squall.open(path, mode="r+")

    def write(name, first):
        a = ds[name]
        for i in range(first, a.shape[0], shares * 2):
            a[i] = i + np.arange(np.prod(a.shape[1:])).reshape(a.shape[1:]) % 97

    threads = [threading.Thread(target=write, args=(n, 2 * share + t)) for n in ds for t in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def test_threads_of_two_processes_write_one_file_at_once(tmp_path):
    path = tmp_path / "both.nc"
    create(path, {"time": -40, "y": 101, "x": 37}, {"a": ("f4", ("time", "y", "x")), "b": ("i1", ("time", "x")), "c": ("f8", ("y", "x"))})
    processes = [SPAWN.Process(target=_write_share, args=(path, k, 2)) for k in range(2)]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    assert [p.exitcode for p in processes] == [0, 0]
    with opened(path) as d:
        for name, v in d.variables.items():
            first = np.arange(v.shape[0]).reshape(-1, *[1] * (v.ndim - 1))
            wanted = first + np.arange(np.prod(v.shape[1:])).reshape(v.shape[1:]) % 97
            assert np.array_equal(v[...], wanted.astype(v.dtype)), name


NEIGHBOUR = """
import sys, squall
path, first = sys.argv[1], int(sys.argv[2])
a = squall.open(path, mode="r+")["a"]
print("ready", flush=True)
sys.stdin.readline()
for i in range(first, 200, 2):
    a[i] = i + 1
"""


@pytest.fixture
def neighbours(support):
    """A function that starts two writers of one page each on a machine of its own, and lets them go."""
    preload = support / "remote_io.so"
    if not preload.exists():
        pytest.skip("tests/support/remote_io.so is not built")
    started = []

    def start(path):
        for k in range(2):
            command = [sys.executable, "-c", NEIGHBOUR, path, str(k)]
            environment = os.environ | {"LD_PRELOAD": str(preload)}
            started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment))
        for p in started:
            assert p.stdout.readline() == "ready\n"
        for p in started:
            p.stdin.write("go\n")
            p.stdin.flush()
        return started

    yield start
    for p in started:
        p.kill()
        p.communicate()


def test_machines_that_share_a_page_of_a_network_file_take_turns(neighbours, tmp_path):
    path = tmp_path / "shared.nc"
    create(path, {"x": 200}, {"a": ("f8", ("x",))})
    with open(path, "rb+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 4096, 4096)  # the page of the variable
        started = neighbours(path)
        time.sleep(0.5)
        assert all(p.poll() is None for p in started) and not squall.open(path)["a"][...].any()
        fcntl.lockf(file, fcntl.LOCK_UN, 4096, 4096)
        assert [p.wait() for p in started] == [0, 0]
    with opened(path) as d:
        assert np.array_equal(d["a"][...], np.arange(1.0, 201.0))


def test_places_beyond_4_gib_and_no_records(tmp_path):
    path, n = tmp_path / "large.nc", 2**31 + 101
    create(path, {"time": -3, "x": n}, {"a": ("i2", ("x",)), "b": ("i1", ("x",)), "r": ("u2", ("time", "x")), "s": ("S1", ("time",))})
    ds = squall.open(path, mode="r+")
    for k, name in enumerate("ab"):
        ds[name][:3], ds[name][-3:] = k + 1, k + 3
    for i in range(3):
        ds["r"][i, -2:], ds["s"][i] = 65535 - i, b"abc"[i : i + 1]
    assert path.stat().st_size > 5 * n and path.stat().st_blocks * 512 < 1 << 20
    with opened(path) as d:
        for k, name in enumerate("ab"):
            assert d[name][:4].tolist() == [k + 1] * 3 + [0] and d[name][-4:].tolist() == [0] + [k + 3] * 3
        assert [d["r"][i, -3:].tolist() for i in range(3)] == [[0, 65535 - i, 65535 - i] for i in range(3)]
        assert d["s"][...].tolist() == [b"a", b"b", b"c"]


@pytest.mark.parametrize("dtype", TYPES["NETCDF3_64BIT_DATA"])
def test_a_file_without_records_and_one_record_variable(dtype, tmp_path):
    path = tmp_path / "none.nc"
    dims, variable = (("time", 0, True), ("x", 3, False)), ("v", np.dtype(dtype).str, ("time", "x"), None, None)
    _squall.create_netcdf(str(path), dims, (variable,), None, None)
    with opened(path) as d:
        assert d["v"].shape == (0, 3) and d.dimensions["time"].isunlimited()
    ds, values = squall.open(path, mode="r+"), random_values(np.random.default_rng(1), dtype, (5, 3))
    assert ds["v"][...].shape == (0, 3)
    ds["v"].resize(5, 3)
    ds["v"][...] = values
    with opened(path) as d:
        assert same(d["v"][...], values)


@pytest.mark.parametrize(
    ("dimensions", "variables", "words"),
    [
        ({"x": 2}, {"a": ("c8", ("x",))}, "CDF-5 has no type <c8"),
        ({"x": 2}, {"a": ("f2", ("x",))}, "CDF-5 has no type <f2"),
        ({"x": 2}, {"a": ("f4", ("y",))}, "there is no dimension y"),
        ({"x": 2, "t": -1}, {"a": ("f4", ("x", "t"))}, "the record dimension t must be its first"),
        ({"x": 0}, {}, "only the record dimension may have none"),
        ({"s": -1, "t": -1}, {}, "a second record dimension"),
        ({"x/y": 1}, {}, "no such name"),
        ({"x": 2**62}, {"a": ("f4", ("x", "x"))}, "larger than any file"),
    ],
)
def test_what_cannot_be_written_is_refused_by_name(dimensions, variables, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        create(tmp_path / "bad.nc", dimensions, variables)
    assert not (tmp_path / "bad.nc").exists()


def test_attributes_that_netcdf_has_no_place_for_are_refused(tmp_path):
    for value, types in (({"a": 1}, {}), (["x", "y"], {}), (True, {}), (300, {"v": "|i1"}), (1, {"v": "<c8"})):
        with pytest.raises(ValueError, match="attribute v"):
            create(tmp_path / "bad.nc", {}, {}, {"v": value}, types)


def test_a_file_that_is_there_stays(tmp_path):
    (tmp_path / "x.nc").write_text("mine")
    with pytest.raises(OSError, match=r"x\.nc is there already"):
        create(tmp_path / "x.nc", {}, {})
    assert (tmp_path / "x.nc").read_text() == "mine"


def test_an_array_that_is_written_to_pickles(tmp_path):
    create(tmp_path / "a.nc", {"x": 3}, {"v": ("i4", ("x",))})
    a = squall.open(tmp_path / "a.nc", mode="r+")["v"]
    packed = pickle.dumps(a)
    a[...] = 1
    pickle.loads(packed)[1] = 2
    assert a[...].tolist() == [1, 2, 1]


def test_another_file_at_the_path_is_not_written_to(tmp_path):
    for name in "ab":
        create(tmp_path / f"{name}.nc", {"x": 3}, {"v": ("i4", ("x",))})
    ds = squall.open(tmp_path / "a.nc", mode="r+")
    ds["v"][...] = 1
    (tmp_path / "b.nc").rename(tmp_path / "a.nc")
    with pytest.raises(OSError, match="is another file since it was opened"):
        ds["v"][...] = 2
    assert squall.open(tmp_path / "a.nc")["v"][...].tolist() == [0, 0, 0]


def test_what_would_change_the_header_is_refused(tmp_path):
    path = tmp_path / "a.nc"
    create(path, {"x": 3}, {"v": ("i4", ("x",))}, {"title": "t"})
    ds = squall.open(path, mode="r+")
    before = path.read_bytes()
    for change in (
        lambda: ds.attrs.update(title="u"),
        lambda: ds.attrs.clear(),
        lambda: ds["v"].attrs.update(units="K"),
        lambda: ds.create_array("w", shape=3, dtype="i4"),
        lambda: ds.create_group("g"),
        lambda: ds.__delitem__("v"),
    ):
        with pytest.raises(NotImplementedError, match="header of a NetCDF-3 file is not changed once it is written"):
            change()
    assert path.read_bytes() == before and list(ds) == ["v"]
