"""Zarr stores that the converter's writer wrote open in zarr-python without a word, and the command gives the same of them. zarr-python and
numpy are the oracle; nothing here was computed by the code under test."""

import json
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest
import squall as sq
import zarr

ROOT = pathlib.Path(__file__).resolve().parents[2]
warnings.filterwarnings("ignore", module="zarr")


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


def test_what_is_no_dataset_is_refused_with_its_beginning(tmp_path):
    page = tmp_path / "page.grib"
    page.write_bytes(b"<!DOCTYPE html>\n")
    cut = tmp_path / "x.nc"
    cut.write_bytes(b"\x89HDF\r\n")
    for path, words in {page: '"<!DOCTYP"', cut: r"\\x89HDF", tmp_path / "nowhere": "no such file"}.items():
        with pytest.raises(sq.Error, match=words) as failure:
            sq.open(path)
        assert failure.value.path == str(path) and str(path) in str(failure.value)


def test_a_chunk_beyond_the_memory_is_not_measured(tmp_path, squall):
    zarr.create_array(tmp_path / "large.zarr", shape=(1 << 24,), chunks=(1 << 24,), dtype="u1", fill_value=0)
    done = squall("bench", "--memory", "1M", tmp_path / "large.zarr", check=False)
    assert done.code == 1 and "does not fit into the memory that may be used" in done.err
    assert squall("bench", "--memory", "64M", tmp_path / "large.zarr").code == 0
