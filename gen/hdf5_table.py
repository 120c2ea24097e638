#!/usr/bin/env python3
"""Writes docs/hdf5-files.md: every HDF5 and NetCDF-4 file of the test data, and what of it squall reads as h5py does.

    .venv/bin/python gen/hdf5_table.py [FILE]

A dataset that is read otherwise than h5py reads it ends it. Needs ../shared; tests/python/test_hdf5_files.py compares the committed page
with a new one."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT.parent / "shared" / "data" / "hdf5"

HEAD = """# Real HDF5 files

Every HDF5 and NetCDF-4 file of the test data, most of them from other projects' tests. `gen/hdf5_table.py` writes this page out of what
squall reads. **Same**: datasets of which every element is what h5py (with hdf5plugin) reads, bit for bit; those that are only dimensions
to NetCDF are not counted. Groups and attributes are compared in `tests/python/test_hdf5_structure.py`.

| file | same | what else |
|---|---|---|
"""


def row(a, expected):
    notes = [expected] if expected else []
    notes += ["no datasets"] if not (a.same or a.unknown or a.refused or expected) else []
    notes += [f"`{name}` is refused: {why}" for name, why in a.refused.items()]
    notes += [f"{a.unknown} that h5py does not read"] if a.unknown and not expected else []
    notes += [f"problem: {problem}" for problem in a.problems]
    return f"| {a.name} | {a.same} | {'; '.join(notes)} |\n"


def render(accounts, expected):
    return HEAD + "".join(row(a, expected.get(a.name)) for a in accounts)


def main():
    sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "build" / "python")]
    import hdf5plugin  # noqa: F401 - registers filters with h5py
    from hdf5_files import EXPECTED, account

    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "hdf5-files.md")
    out.write_text(render([account(path) for path in sorted(FOLDER.iterdir())], EXPECTED))


if __name__ == "__main__":
    main()
