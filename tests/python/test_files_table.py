"""docs/files.md says of every real file what gen/files_table.py finds."""

import sys

import pytest
from conftest import ROOT

pytest.importorskip("eccodes")
pytest.importorskip("xarray")


def test_the_table_of_real_files_is_the_generators(shared, account_of):
    sys.path.insert(0, str(ROOT / "gen"))
    from files_table import render
    from real_files import NO_ORACLE

    accounts = [account_of(path.name) for path in sorted((shared / "data" / "grib").iterdir())]
    committed, made = (ROOT / "docs" / "files.md").read_text().splitlines(), render(accounts, NO_ORACLE).splitlines()
    differences = [f"{a}\n  is now\n{b}" for a, b in zip(committed, made, strict=False) if a != b]
    assert committed == made, "run gen/files_table.py:\n" + "\n".join(differences[:10])
