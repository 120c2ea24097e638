"""The committed tables are what gen/grib_tables.py makes, byte for byte."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = ["names_tables.c", "names_tables_text.c", "keys_tables.c"]


def test_committed_tables_are_the_generators(tmp_path):
    eccodes = pytest.importorskip("eccodes")
    committed = {name: (ROOT / "src/format/grib" / name).read_bytes() for name in TABLES}
    made_with = re.search(rb"of ecCodes ([\d.]+);", committed["names_tables.c"])[1].decode()
    if eccodes.codes_get_api_version() != made_with:
        pytest.skip(f"the tables are of ecCodes {made_with}, here is {eccodes.codes_get_api_version()}")
    subprocess.run([sys.executable, ROOT / "gen/grib_tables.py", tmp_path], check=True, capture_output=True)
    for name in TABLES:
        assert (tmp_path / name).read_bytes() == committed[name], f"{name}: run gen/grib_tables.py"
