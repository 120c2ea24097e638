"""Every call of squall.create_many's that changes the file system fails once, and once the process dies there: whatever happened, others go
on, no region counts as written that was not, and finish() makes the same files.

This file is also the program in which that happens, a child for each call; tests/support/fail_io.c counts.
"""

import os
import pathlib
import sys
import types

import numpy as np
import pytest
from failing import in_child, run_failing

SIZES = {"a.nc": 3, "b.nc": 5}
REGIONS = [("v", np.s_[0:2]), ("n", np.s_[1:7]), ("v", np.s_[2:6, 1:3]), ("n", np.s_[7]), ("v", np.s_[7])]
VALUES = {"v": np.arange(24, dtype="f4").reshape(8, 3) + 1, "n": np.arange(8, dtype="i2") + 1}
FILLS = {"v": np.nan, "n": -1}


@pytest.mark.parametrize("action, words", [("kill", None), ("ENOSPC", "No space left"), ("EIO", "Input/output error")])
@pytest.mark.parametrize("stage", ["create", "write", "finish"])
def test_what_fails_anywhere_costs_nothing_that_was_written(support, stage, action, words, tmp_path):
    pytest.importorskip("netCDF4")
    calls = int(run_failing(support, __file__, stage, action, words or "", tmp_path))
    assert calls >= {"create": 5, "write": 12, "finish": 8}[stage]  # each of which failed


# ---- the program


def create(folder):
    import squall

    shapes = {"v": (8, 3), "n": (8,)}
    template = {
        name: types.SimpleNamespace(dims=("x", "y")[: len(s)], shape=s, dtype=VALUES[name].dtype, attrs={"_FillValue": FILLS[name]})
        for name, s in shapes.items()
    }
    paths = {folder / name: n for name, n in SIZES.items()}
    return squall.create_many(template, paths, "x", unlimited_dims=["x"], overwrite=True)


def write(target):
    for name, key in REGIONS:
        target[name][key] = VALUES[name][key]


def contents(folder, hidden):
    """What netCDF4 reads of all files, one behind the other."""
    import netCDF4

    parts = {"v": [], "n": []}
    for name in SIZES:
        with netCDF4.Dataset(folder / (f".{name}.partial" if hidden else name)) as d:
            d.set_auto_mask(False)
            for variable, found in parts.items():
                found.append(d[variable][...])
    return {variable: np.concatenate(found) for variable, found in parts.items()}


def left_out(target):
    """Variable → where nobody wrote, as missing() says."""
    begins, out = {"a.nc": 0, "b.nc": SIZES["a.nc"]}, {name: np.zeros(v.shape, bool) for name, v in VALUES.items()}
    for path, boxes in target.missing().items():
        for name, parts in boxes.items():
            for (start, stop), *rest in parts:
                begin = begins[os.path.basename(path)]
                out[name][(slice(begin + start, begin + stop), *(slice(*r) for r in rest))] = True
    return out


def check_partial(folder, target):
    out, found = left_out(target), contents(folder, hidden=True)
    for name, values in VALUES.items():
        assert np.array_equal(found[name][~out[name]], values[~out[name]]), (name, found, out)
    return out


def check_finished(folder, out):
    found = contents(folder, hidden=False)
    for name, values in VALUES.items():
        expected = np.where(out[name], FILLS[name], values)
        assert np.array_equal(found[name], expected, equal_nan=True), (name, found, expected)
    assert sorted(os.listdir(folder)) == sorted(SIZES), os.listdir(folder)


def written_by_all():
    out = {name: np.ones(v.shape, bool) for name, v in VALUES.items()}
    for name, key in REGIONS:
        out[name][key] = False
    return out


def run(stage, order, folder, go_on):
    """The status and words of the child in which the call failed."""
    if stage == "create":
        done = in_child(order, lambda: create(folder))
        target = create(folder)
        write(target)
        target.finish()
        check_finished(folder, written_by_all())
        return done
    target = create(folder)
    if stage == "write":
        done = in_child(order, lambda: write(target))
        out = check_partial(folder, target)
        if go_on:
            write(target)
            out = written_by_all()
    else:
        write(target)
        done, out = in_child(order, target.finish), written_by_all()
    target.finish()
    check_finished(folder, out)
    return done


def main(stage, action, words, folder):
    n = 0
    while True:
        n += 1
        for go_on in (False, True):
            inside = pathlib.Path(folder, f"{n}-{go_on}")
            inside.mkdir()
            status, said = run(stage, f"{n}:{action}", inside, go_on)
            assert status in ((0, -9) if action == "kill" else (0, 1)), (n, status)
            assert status != 1 or (words in said and str(inside) in said), (n, said)
        if status == 0:
            break
    print(n - 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
