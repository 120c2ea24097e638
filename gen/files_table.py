#!/usr/bin/env python3
"""Writes docs/files.md: every real GRIB file of the test data, what of it is read and converted, and what is refused and why.

    .venv/bin/python gen/files_table.py [FILE]

It runs the command of build/ on each file and has ecCodes judge the outcome (tests/python/real_files.py); a claim that does not hold
ends it. Needs ../shared; tests/python/test_real_files.py compares the committed page with a new one."""

import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT.parent / "shared" / "data"
NAMES_SHOWN = 4

HEAD = """# Real files

Every GRIB file of the test data, most of them from other projects' tests: what squall reads of it, and what it refuses and why.
`gen/files_table.py` writes this page out of what the command does; each claim is checked against ecCodes and xarray.

- **read**: `squall get` gives the values of ecCodes' doubles, cast to float32, bit for bit.
- **in the store**: the variables that `squall convert FILE` makes. xarray opens the store without an argument or a warning and finds each
  field at its run, step, level, member and grid, with those values, and with ecCodes' names, units and coordinates.
- A field is in the store, or a reason says why it is not.

"""


def origins():
    lines = (FOLDER / "MANIFEST.tsv").read_text().splitlines()[1:]
    return {line.split("\t")[0].removeprefix("grib/"): line.split("\t")[1] for line in lines if line.startswith("grib/")}


def distinct(rows, key):
    return ", ".join(sorted({str(row[key]) for row in rows}))


def short(names):
    shown = ", ".join(f"`{name}`" for name in names[:NAMES_SHOWN])
    return shown + (f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else "")


def outcome(account):
    parts = [short(account.variables)] if account.variables else []
    for reason, count in account.ignored.items():
        if not account.variables:
            found = re.search(r"is not read yet \((.*)\)$", reason)
            parts.append(f"none: {found[1] if found else reason.removeprefix(account.name + ' ')}")
        else:
            advice = re.search(r"--every \w+ takes every run", "\n".join(account.notes))
            parts.append(
                f"{count} of {len(account.rows)} fields not: {reason}" + (f" ({advice[0]})" if advice and reason == "off cadence" else "")
            )
    return "; ".join(parts)


def read(account):
    total = len(account.rows)
    reasons = "; ".join(account.refused)
    return ("all" if account.read == total else f"{account.read} of {total}") + (f": {reasons}" if reasons else "") if total else "–"


def cell(text):
    return text.replace("|", "\\|")


def grid_notes(account):
    return [note.split(": ", 1)[1] for note in account.notes if note.startswith("grid ")]


def render(accounts, no_oracle):
    """The page; accounts in the order of names."""
    origin = origins()
    fields = sum(len(a.rows) for a in accounts)
    read_count, placed = sum(a.read for a in accounts), sum(a.placed for a in accounts)
    out = HEAD + f"{len(accounts)} files, {fields} fields: {read_count} are read, {placed} are in a store.\n\n"
    out += "| file | from | edition | fields | packing | grid | read | in the store |\n|---|---|---|---|---|---|---|---|\n"
    notes = []
    for a in accounts:
        rows = a.rows
        cells = [
            f"`{a.name}`",
            origin[a.name],
            distinct(rows, "edition"),
            str(len(rows)),
            distinct(rows, "packing"),
            distinct(rows, "grid"),
        ]
        out += "| " + " | ".join(cell(c or "–") for c in (*cells, read(a), outcome(a))) + " |\n"
        told = [f"damaged: {line}" for line in a.damage] + grid_notes(a)
        told += [f"no oracle: {no_oracle[a.name][1]}"] if a.name in no_oracle else []
        notes += [f"- `{a.name}`: {cell(line)}" for line in told]
    return out + "\n## Notes\nDamage, grids without coordinates, and where ecCodes is no judge.\n\n" + "\n".join(notes) + "\n"


def main():
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    from projecting import Projector
    from real_files import NO_ORACLE, account

    project = Projector()
    with tempfile.TemporaryDirectory() as work:
        accounts = [account(path, work, project) for path in sorted((FOLDER / "grib").iterdir())]
    project.close()
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "files.md"
    target.write_text(render(accounts, NO_ORACLE))


if __name__ == "__main__":
    main()
