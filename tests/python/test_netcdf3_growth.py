"""NetCDF-3 files that netCDF4 made are made longer, and read by netCDF4; and each call of that fails once, or the process dies there.

This file is also the program in which that happens, see failing.py.
"""

import pathlib
import random
import sys

import numpy as np
import pytest
from failing import in_child, run_failing

CLASSIC = ["i1", "S1", "i2", "i4", "f4", "f8"]
TYPES = {"NETCDF3_CLASSIC": CLASSIC, "NETCDF3_64BIT_OFFSET": CLASSIC, "NETCDF3_64BIT_DATA": [*CLASSIC, "u1", "u2", "u4", "i8", "u8"]}


def random_values(rng, dtype, shape):
    made = np.frombuffer(rng.randbytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), "u1")
    if dtype == "S1":
        return (made % 26 + 65).astype("u1").view("S1").reshape(shape)
    return (made % 100).astype("u1").view(dtype).reshape(shape) if dtype[0] != "f" else made[:: int(dtype[1])].astype(dtype).reshape(shape)


def make(path, rng, format, types, records):
    """Variable → (its values, fill value); the first half have records, of other lengths."""
    import netCDF4

    found = {}
    with netCDF4.Dataset(path, "w", format=format) as d:
        for name, n in (("t", None), ("x", 3), ("y", 1)):
            d.createDimension(name, n)
        for i, dtype in enumerate(types):
            dims = ("t", *rng.sample(["x", "y"], rng.randint(0, 2))) if i % 2 == 0 else ("x",)
            fill = rng.choice([None, 7]) if dtype != "S1" else None
            v = d.createVariable(f"v{i}", dtype, dims, fill_value=fill)
            v.set_auto_maskandscale(False)
            values = random_values(rng, dtype, tuple(records if n == "t" else len(d.dimensions[n]) for n in dims))
            if values.size:
                v[...] = values
            usual = {"S1": b"\0", "i1": -127, "u1": 255}.get(dtype, netCDF4.default_fillvals[dtype])
            found[v.name] = (values, np.array(usual if fill is None else fill).astype(dtype))
    return found


def read(path):
    import netCDF4

    with netCDF4.Dataset(path) as d:
        d.set_auto_maskandscale(False)
        d.set_auto_chartostring(False)
        return {name: v[...] for name, v in d.variables.items()}


def grown(values, fill, count):
    new = np.full((count - len(values), *values.shape[1:]), fill, values.dtype)
    return np.concatenate([values, new])


def check(path, expected):
    found = read(path)
    for name, values in expected.items():
        assert found[name].shape == values.shape and np.array_equal(found[name], values), name


@pytest.mark.parametrize("seed", range(40))
def test_records_are_added_and_written(seed, tmp_path):
    squall, rng = pytest.importorskip("squall"), random.Random(seed)
    pytest.importorskip("netCDF4")
    format = rng.choice(list(TYPES))
    path, before = tmp_path / "a.nc", rng.choice([0, 1, 2, 5])
    made = make(path, rng, format, [rng.choice(TYPES[format]) for _ in range(rng.randint(1, 6))], before)
    ds, expected = squall.open(path, mode="r+"), {name: values for name, (values, _) in made.items()}
    for after in (before + 1, before + rng.randint(1, 4) + 1):
        name = rng.choice([n for n in made if int(n[1:]) % 2 == 0])
        ds[name].resize((after, *ds[name].shape[1:]))
        for n, (_, fill) in made.items():
            if int(n[1:]) % 2 == 0:
                expected[n] = grown(expected[n], fill, after)
                assert ds[n].shape == expected[n].shape and np.array_equal(ds[n][...], expected[n]), n
        check(path, expected)
        for n in made:
            if int(n[1:]) % 2 == 0:
                expected[n][after - 1] = random_values(rng, expected[n].dtype.str[1:], expected[n].shape[1:])
                ds[n][after - 1] = expected[n][after - 1]
        check(path, expected)
    assert all(np.array_equal(squall.open(path)[n][...], values) for n, values in expected.items())


def test_what_cannot_grow_says_why(tmp_path):
    squall, rng = pytest.importorskip("squall"), random.Random(0)
    netCDF4 = pytest.importorskip("netCDF4")
    path = tmp_path / "a.nc"
    make(path, rng, "NETCDF3_64BIT_OFFSET", ["f4", "i2"], 3)
    first, second, reader = squall.open(path, mode="r+"), squall.open(path, mode="r+"), squall.open(path)
    rest = first["v0"].shape[1:]
    with pytest.raises(NotImplementedError, match="v1: dimension x is not the record dimension"):
        first["v1"].resize(5)
    with pytest.raises(NotImplementedError, match="do not become fewer"):
        first["v0"].resize((2, *rest))
    with pytest.raises(ValueError, match="CDF-2 file has no room for 2147483648 records"):
        first["v0"].resize((2**31, *rest))
    with pytest.raises(PermissionError):
        reader["v0"].resize((4, *rest))
    before = path.read_bytes()
    first["v0"].resize((3, *rest))  # as it is
    assert path.read_bytes() == before
    first["v0"].resize((4, *rest))
    with pytest.raises(squall.Error, match="has 4 records now, but had 3 when it was opened; open it again"):
        second["v0"].resize((5, *rest))
    with pytest.raises(OSError, match="changed since it was opened"):
        reader["v0"][...]
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(squall.Error, match="truncated"):
        squall.open(path, mode="r+")["v0"].resize((5, *rest))
    with netCDF4.Dataset(path) as d:
        assert len(d.dimensions["t"]) == 4


@pytest.mark.parametrize("action, words", [("kill", None), ("ENOSPC", "No space left"), ("EIO", "Input/output error")])
def test_a_growth_that_fails_anywhere_leaves_the_old_file_or_the_new(support, action, words, tmp_path):
    pytest.importorskip("netCDF4")
    calls = int(run_failing(support, __file__, action, words or "", tmp_path))
    assert calls >= 8  # each of which failed


# ---- the program


def grow(path, count):
    import squall

    a = squall.open(path, mode="r+")["v0"]
    a.resize((count, *a.shape[1:]))


def main(action, words, folder):
    path, n, status = pathlib.Path(folder, "a.nc"), 0, None
    while status != 0:
        n += 1
        made = make(path, random.Random(1), "NETCDF3_64BIT_OFFSET", ["f4", "i2", "f8"], 2)
        old = {name: values for name, (values, _) in made.items()}
        new = {name: grown(v, fill, 4) if name != "v1" else v for name, (v, fill) in made.items()}
        status, said = in_child(f"{n}:{action}", lambda: grow(path, 4))
        assert status in ((0, -9) if action == "kill" else (0, 1)), (n, status)
        assert status != 1 or (words in said and str(path) in said), (n, said)
        check(path, old if len(read(path)["v0"]) == 2 else new)
        grow(path, 4)
        check(path, new)
    print(n - 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
