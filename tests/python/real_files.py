"""What becomes of one real GRIB file, told by the command and judged by ecCodes: which fields are listed and read, what the converter
makes of them, and whether xarray finds each in the store, at its coordinates, under its name, with its values.

account(path, work) asserts all of it, and returns what docs/files.md says of the file."""

import collections
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import warnings

import eccodes as ec
import numpy as np
import xarray as xr
from conftest import BUILD
from oracle import doubles, handles, in_output_order, same
from test_grib_grids import check_grid, key
from test_grib_index import expected as expected_keys
from test_grib_names import differences, facts_of, level_differences

# Where ecCodes is no judge, and of what.
NO_ORACLE = {
    "ds.waveh.5.grib": ("points", "ecCodes mirrors the coordinates of every second row, which the file does not"),
    "MRMS_MergedReflectivityQCComposite_00.50_20220704-110040.grib2": ("", "ecCodes' dataTime drops the 40 seconds of the time"),
    "iris_file.grib2": ("steps", "its interval is 4294967276 hours long; ecCodes and squall read another step each"),
    "iris_ukv_chan9.grib2": ("steps", "ecCodes has no step for a satellite product"),
    "regular_gg_wrong_increment.grib": ("points", "ecCodes follows the header's number of points, which is not that of the values"),
    "regular_ll_wrong_increment.grib": ("points", "ecCodes follows the header's increment, which its corners contradict"),
}
LIST_KEYS = "number,offset,shortName,typeOfLevel,stepType,edition,packing,grid,points,reason"
FLAGS = {"chunk_exists", "field_count"}
GETS = 10  # of a file's fields by squall get; all are compared in the store, and by test_grib_values.py


@dataclasses.dataclass
class Account:
    name: str
    rows: list  # of squall ls, a dictionary a field
    damage: list  # lines
    read: int  # fields whose values are ecCodes' to the bit
    refused: collections.Counter  # why squall get does not read the others
    variables: list  # names; empty where the file is not converted
    placed: int
    ignored: collections.Counter  # why fields are not in the store
    notes: list  # lines of the converter, warnings first


def squall(*args):
    return subprocess.run([str(BUILD / "squall"), *map(str, args)], capture_output=True, text=True)


def rows_and_columns(handle, count):
    """(0, count) where the points lie in no rectangle."""
    columns, rows = key(handle, "Ni"), key(handle, "Nj")
    return (rows, columns) if rows and columns and rows * columns == count else (0, count)


def values_of(handle):
    """float32 of ecCodes' doubles, i ascending, rows in the file's order; None where ecCodes cannot decode."""
    values = doubles(handle)
    if values is None:
        return None
    rows, columns = rows_and_columns(handle, values.size)
    mode = sum(bit for name, bit in SCAN_BITS.items() if key(handle, name))
    with np.errstate(over="ignore"):
        values = in_output_order(values, rows, columns, mode).astype("f4")
    return values.reshape(rows, columns) if rows else values


SCAN_BITS = {"iScansNegatively": 0x80, "jPointsAreConsecutive": 0x20, "alternativeRowScanning": 0x10}


# ---- ls and get ------------------------------------------------------------------------------------------------------------------------


def damage_of(output, path):
    """What is said of a file: warnings, or why nothing in it is listed."""
    beginnings = f"warning: {path}: ", f"squall: {path}: "
    assert all(line.startswith(beginnings) for line in output.splitlines()), output
    return [line.split(f"{path}: ", 1)[1] for line in output.splitlines()]


def listed(path):
    """The rows of squall ls, and what it says of damage."""
    done = squall("ls", "--json", "-p", LIST_KEYS, path)
    damage = damage_of(done.stderr, path)
    rows = json.loads(done.stdout) if done.stdout else []
    assert done.returncode == (0 if not damage else 3 if rows else 1), done
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    return rows, damage


def check_read(path, row, values, out):
    """squall get --field gives ecCodes' values; returns None, or why it does not read the field."""
    done = squall("get", path, "--field", row["number"], "-o", out)
    if done.returncode:
        lines = done.stderr.splitlines()
        assert len(lines) == 1 and lines[0].startswith(f"squall: {path}: "), done.stderr
        assert row["reason"] and lines[0].endswith(row["reason"]), (done.stderr, row["reason"])
        return row["reason"]
    got = np.load(out)
    assert values is not None, f"{path}, field {row['number']}: ecCodes cannot decode it"
    assert got.shape == values.shape and same(got, values), f"{path}, field {row['number']}: not ecCodes' values"
    return None


# ---- the store -------------------------------------------------------------------------------------------------------------------------


def converted(path, store):
    """(report, dataset), or (None, message) where nothing of the file can be converted."""
    done = squall("convert", "--json", "--quiet", path, store)
    if done.returncode == 1:
        assert not store.exists()
        return None, done.stderr.splitlines()[-1].removeprefix("squall: ")
    report = json.loads(done.stdout)
    assert done.returncode == (3 if report["bad"] or report["ignored"] else 0), done
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = xr.open_zarr(store, chunks=None).load()  # without Dask, which takes longer than the rest
    assert squall("verify", store).returncode == 0
    return report, dataset


def variables_of(dataset):
    return [name for name in dataset.data_vars if name not in FLAGS]


def axis_of(dataset, dim):
    base = re.sub(r"_\d+$", "", dim)
    axis = {"name": base, "length": dataset.sizes[dim]}
    if dim in dataset.coords:
        axis |= {"values": dataset[dim].values.tolist(), "attributes": dataset[dim].attrs}
    return axis


def grid_of(dataset, array, dims):
    """What the store says of a grid, in the form in which the tests of grids judge it."""
    a = array.attrs
    grid = {"type": a["GRIB_gridType"], "points": int(np.prod([dataset.sizes[d] for d in dims])), "attributes": a}
    grid["axes"] = [axis_of(dataset, d) for d in dims]
    if len(dims) == 2:
        grid["rows"], grid["columns"] = (dataset.sizes[d] for d in dims)
        if dims[0] in dataset.coords and grid["rows"] > 1:
            grid["northward"] = bool(np.diff(dataset[dims[0]].values[:2])[0] > 0)
    else:
        suffix = dims[0].removeprefix("values")
        for name in ("latitude", "longitude"):
            if name + suffix in dataset.coords:
                grid[name + "s"] = dataset[name + suffix].values
    if "grid_mapping" in a or "grid_mapping" in array.encoding:
        grid["grid_mapping"] = dataset[a.get("grid_mapping", array.encoding.get("grid_mapping"))].attrs
    return grid


def check_words(name, array):
    """What a CF reader sees, against the variable's GRIB_* attributes, which are ecCodes'."""
    a = array.attrs
    assert name == a["GRIB_cfVarName"] or name.startswith(a["GRIB_cfVarName"] + "_"), name
    is_probability = "GRIB_probabilityType" in a  # which is not the quantity that it is about
    assert a.get("standard_name") == (None if is_probability else a.get("GRIB_cfName")), name
    assert a["long_name"] == ("Probability: " if is_probability else "") + a["GRIB_name"], name
    if is_probability:
        assert a["units"] == "%", name
    elif a["GRIB_units"] == "unknown":
        assert "units" not in a, name
    else:
        dimensionless = re.match(r"\(|[~-]$|Numeric|Proportion|Fraction|[Dd]imensionless", a["GRIB_units"])
        assert a["units"] == ("1" if dimensionless else a["GRIB_units"]), (name, a["units"], a["GRIB_units"])


class Store:
    """A converted file, and which of its slabs have been found to be a field."""

    def __init__(self, dataset, project, oracle):
        self.dataset, self.project, self.oracle = dataset, project, oracle
        self.arrays = {name: dataset[name] for name in variables_of(dataset)}
        self.values = {name: array.values for name, array in self.arrays.items()}
        self.claimed = {name: np.zeros(self.outer(name), bool) for name in self.arrays}
        self.upward = {}  # of a grid's first field: it says which way the rows go

    def dims(self, name):
        dims = self.arrays[name].dims
        return dims[-1:] if dims[-1].startswith("values") else dims[-2:]

    def outer(self, name):
        return self.arrays[name].shape[: -len(self.dims(name))]

    def is_level(self, name, dim, at, facts):
        """Is the level at this place of the dimension (dim None: the variable's only one) the field's?"""
        attrs, level_type = self.arrays[name].attrs, facts["typeOfLevel"] or "unknown"
        if dim:
            top = self.dataset[dim].values[at]
            bounds = self.dataset[dim + "_bounds"].values[at] if dim + "_bounds" in self.dataset else (None, None)
        else:
            top, bounds = attrs.get(level_type), attrs.get(level_type + "_bounds", (None, None))
        mine = {"typeOfLevel": level_type, "topLevel": None if top is None or np.isnan(top) else top, "bottomLevel": bounds[1]}
        return not level_differences(facts, mine)

    def places(self, name, facts, keys):
        """The slabs of a variable whose coordinates are the field's."""
        array, choices = self.arrays[name], []
        for dim in array.dims[: -len(self.dims(name))]:
            coordinate = self.dataset[dim].values
            if dim == "init_time":
                fits = coordinate == np.datetime64(keys["reference"], "s")
            elif dim == "step":
                fits = (coordinate == np.timedelta64(keys["end"] or 0, "s")) | ("steps" in self.oracle)
            elif dim == "number":
                fits = coordinate == keys["number"]
            else:
                fits = [self.is_level(name, dim, at, facts) for at in range(len(coordinate))]
            choices.append(np.flatnonzero(fits))
        levels = [d for d in array.dims if d.startswith(facts["typeOfLevel"] or "unknown")]
        if not levels and not self.is_level(name, None, 0, facts):
            return
        if keys["number"] >= 0 and "number" not in array.dims and array.attrs.get("number", keys["number"]) != keys["number"]:
            return
        yield from product_of(choices)

    def is_variable(self, name, facts, keys):
        a = self.arrays[name].attrs
        mine = {k: a.get("GRIB_" + k) for k in ("paramId", "shortName", "name", "units", "cfName", "cfVarName", "typeOfLevel")}
        return not differences(facts, mine) and a["GRIB_stepType"] == keys["stepType"]

    def find(self, handle, facts, keys, values):
        """Claim the slab that is the field; False where there is none."""
        for name, array in self.arrays.items():
            if not self.is_variable(name, facts, keys) or array.attrs["GRIB_gridType"] != key(handle, "gridType"):
                continue
            dims = self.dims(name)
            upward = key(handle, "jScansPositively")
            if values.shape != tuple(self.dataset.sizes[d] for d in dims):
                continue
            shown = values if self.upward.get(dims, upward) == upward else values[::-1]
            for place in self.places(name, facts, keys):
                if not self.claimed[name][place] and same(np.ascontiguousarray(self.values[name][place]), np.ascontiguousarray(shown)):
                    self.claim(name, place, handle)
                    return True
        return False

    def claim(self, name, place, handle):
        array, dims = self.arrays[name], self.dims(name)
        if not self.claimed[name].any():
            check_words(name, array)
        if dims not in self.upward:
            self.upward[dims] = key(handle, "jScansPositively")
            if "points" not in self.oracle:
                check_grid(grid_of(self.dataset, array, dims), handle, self.project)
        self.claimed[name][place] = True

    def check_rest(self):
        """Slabs that no field claimed are fill."""
        for name, claimed in self.claimed.items():
            for place in np.argwhere(~claimed):
                assert np.isnan(self.values[name][tuple(place)]).all(), f"{name}{place} holds what no field says"


def product_of(choices):
    return (tuple(c[i] for c, i in zip(choices, at, strict=True)) for at in np.ndindex(*map(len, choices)))


def check_times(dataset):
    np.testing.assert_array_equal(dataset.valid_time, dataset.init_time.values[:, None] + dataset.step.values[None])
    assert dataset.step.dtype.kind == "m" and dataset.init_time.dtype.kind == "M"
    assert dataset.attrs["Conventions"].startswith("CF-")
    np.testing.assert_array_equal(dataset.chunk_exists, dataset.field_count > 0)


# ---- all of it -------------------------------------------------------------------------------------------------------------------------


def account(path, work, project):
    """project: projecting.Projector. Everything about the file that can be said, each claim of it checked."""
    path, work = pathlib.Path(path), pathlib.Path(work)
    rows, damage = listed(path)
    report, outcome = converted(path, work / "store.zarr")
    shutil.rmtree(work / "store.zarr", ignore_errors=True)
    store = Store(outcome, project, NO_ORACLE.get(path.name, ("",))[0]) if report else None
    result = Account(path.name, rows, damage, 0, collections.Counter(), list(store.arrays) if store else [], 0, collections.Counter(), [])
    count, lost, stride = 0, [], 1 + len(rows) // GETS
    for handle in handles(path):
        row, values = rows[count], values_of(handle)
        assert row["offset"] == ec.codes_get(handle, "offset"), row
        is_got = row["reason"] or count % stride == 0
        reason = check_read(path, row, values, work / "field.npy") if is_got else None
        count += 1
        result.read += reason is None
        result.refused.update([reason] if reason else [])
        if not store:
            continue
        facts, keys = facts_of(handle), expected_keys(handle)
        keys["reference"] = np.datetime64(int(keys["reference"]), "s")
        if reason or not store.find(handle, facts, keys, values):
            lost.append(f"{row} {keys}")
    assert count == len(rows)
    if not store:
        result.ignored[outcome.replace(str(path), path.name)] = len(rows)
        return result
    store.check_rest()
    check_times(outcome)
    fields = report["fields"]
    result.placed, result.notes = fields["placed"], report["warnings"] + report["notes"]
    assert fields["found"] == len(rows) == fields["placed"] + fields["ignored"] + fields["duplicates"]
    assert len(lost) == fields["ignored"] + fields["duplicates"], "\n".join(lost)
    assert [bad["what"] for bad in report["bad"]] == damage
    for ignored in report["ignored"]:
        result.ignored[ignored["what"]] += ignored["fields"]
    result.ignored.update(duplicate=fields["duplicates"])
    result.ignored = +result.ignored
    return result
