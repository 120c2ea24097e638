"""docs/hdf5-files.md says of every real HDF5 file what gen/hdf5_table.py finds."""

import sys

from conftest import ROOT
from hdf5_files import EXPECTED, account


def test_the_table_of_real_files_is_the_generators(shared):
    sys.path.insert(0, str(ROOT / "gen"))
    from hdf5_table import render

    accounts = [account(path) for path in sorted((shared / "data" / "hdf5").iterdir())]
    committed = (ROOT / "docs" / "hdf5-files.md").read_text().splitlines()
    assert committed == render(accounts, EXPECTED).splitlines(), "run gen/hdf5_table.py"
