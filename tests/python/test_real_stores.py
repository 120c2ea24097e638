"""Every real file, converted alone: xarray opens the store, and each field lies in it once, where ecCodes says, with ecCodes' values."""

import json
import pathlib
import re
import warnings

import numpy as np
import pytest
from conftest import SHARED

ec = pytest.importorskip("eccodes")
xr = pytest.importorskip("xarray")
pytest.importorskip("zarr")

FOLDER = SHARED / "data" / "grib"
FILES = sorted(p.name for p in FOLDER.iterdir() if re.search(r"gri?b2?1?$|grb2?$", p.name)) if FOLDER.is_dir() else []
FLAGS = {"chunk_exists", "field_count"}
WHOLE_FILE_REFUSED = {
    "iris_second_order_FRANX01.grib1": "second-order packing",
    "iris_ukv_chan9.grib2": "4.31",
    "jma_nowcast_run_length.grib2": "run length packing",
    "spherical_harmonics.grib": "spectral coefficients",
}
DAMAGED = {"era5-levels-corrupted.grib", "pygrib_flux.grb"}
# ecCodes drops the seconds of this one's time
SECONDS_DROPPED = {"MRMS_MergedReflectivityQCComposite_00.50_20220704-110040.grib2"}
# … and takes a length of −36 hours for one of 490,000 years: the interval says nothing, the forecast time is left
NEGATIVE_LENGTH = {"iris_file.grib2": np.timedelta64(36, "h")}


def get(handle, key, kind=None):
    try:
        return ec.codes_get(handle, key, kind)
    except ec.CodesInternalError:
        return None


def values_of(handle):
    """float32 of ecCodes' doubles: rows in the file's order, i ascending where there are rows."""
    ec.codes_set(handle, "missingValue", 1e300)
    values = ec.codes_get_double_array(handle, "values")
    values = np.where(values == 1e300, np.nan, values).astype(np.float32)
    columns, rows = get(handle, "Ni", int), get(handle, "Nj", int)
    missing = 2147483647
    if not columns or not rows or missing in (columns, rows) or columns * rows != values.size:
        return values
    if get(handle, "jPointsAreConsecutive", int):
        values = values.reshape(columns, rows).T
    values = values.reshape(rows, columns)
    if get(handle, "alternativeRowScanning", int):
        values = values.copy()
        values[1::2] = values[1::2, ::-1]
    if get(handle, "iScansNegatively", int):
        values = values[:, ::-1]
    return values


def fields_of(path):
    """What ecCodes says of each field: names, time, place, values."""
    ec.codes_grib_multi_support_on()
    with open(path, "rb") as stream:
        while True:
            try:
                handle = ec.codes_grib_new_from_file(stream)
            except ec.CodesInternalError:
                break  # damaged from here on
            if handle is None:
                break
            date, time, second = (get(handle, key, int) for key in ("dataDate", "dataTime", "second"))
            reference = np.datetime64(f"{date // 10000:04}-{date // 100 % 100:02}-{date % 100:02}T{time // 100:02}:{time % 100:02}", "s")
            ec.codes_set(handle, "stepUnits", "s")
            yield {
                "paramId": get(handle, "paramId", int),
                "shortName": get(handle, "shortName", str),
                "typeOfLevel": get(handle, "typeOfLevel", str) or "unknown",
                "stepType": get(handle, "stepType", str),
                "reference": reference + np.timedelta64(second or 0, "s"),
                "step": np.timedelta64(get(handle, "endStep", int), "s"),
                "number": get(handle, "perturbationNumber", int),
                "level": get(handle, "level", float),
                "values": values_of(handle),
            }
            ec.codes_release(handle)
    ec.codes_grib_multi_support_off()


def slabs_of(dataset):
    """Each horizontal slab of each variable, with what says where it lies."""
    for name in sorted(set(dataset.data_vars) - FLAGS):
        array = dataset[name]
        level_type = array.attrs["GRIB_typeOfLevel"]
        outer = [d for d in array.dims if not re.match("(latitude|longitude|y|x|values)(_|$)", d)]
        level_dim = next((d for d in outer if d.startswith(level_type)), None)
        for place in np.ndindex(*(array.sizes[d] for d in outer)):
            at = dict(zip(outer, place, strict=True))
            slab = array.isel(at)
            yield {
                "variable": name,
                "attrs": array.attrs,
                "reference": dataset.init_time.values[at["init_time"]].astype("datetime64[s]"),
                "step": dataset.step.values[at["step"]].astype("timedelta64[s]"),
                "number": int(dataset[next(d for d in outer if d.startswith("number"))].values[at["number"]]) if "number" in at else None,
                "level": float(dataset[level_dim].values[at[level_dim]]) if level_dim else array.attrs.get(level_type),
                "values": slab.values,
            }


def lies_there(slab, field):
    attrs = slab["attrs"]
    known = field["paramId"] == 0 or attrs["GRIB_paramId"] == field["paramId"]
    return (
        (known or attrs["GRIB_shortName"] in ("10u",))  # the Met Office's own number for it
        and attrs["GRIB_typeOfLevel"] == field["typeOfLevel"]
        and slab["reference"] == field["reference"]
        and slab["step"] == field["step"]
        and (slab["number"] is None or slab["number"] == field["number"])
        and same_level(slab, field)
    )


def same_level(slab, field):
    """ecCodes' levels of edition 1 are in other units, its soil and snow layers are bottoms, its numbers whole, and never negative."""
    if slab["level"] is None or np.isnan(slab["level"]) or "Layer" in field["typeOfLevel"]:
        return True
    theirs = field["level"] if field["level"] < 1 << 31 else (1 << 31) - field["level"]
    return abs(slab["level"] - theirs) < 1 or np.isclose(slab["level"] * 10000, theirs)


def equal(a, b):
    return any(np.array_equal(a, x, equal_nan=True) for x in (b, b[::-1]))


def placed_once(dataset, fields):
    """Match fields and slabs one to one; what is left of both."""
    slabs, lost = list(slabs_of(dataset)), []
    for field in fields:
        match = next((i for i, s in enumerate(slabs) if lies_there(s, field) and equal(s["values"], field["values"])), None)
        if match is None:
            lost.append(field)
        else:
            del slabs[match]
    return slabs, lost


def describe(fields):
    return "\n".join(str({k: v for k, v in field.items() if k not in ("values", "attrs")}) for field in fields[:10])


@pytest.mark.skipif(not FILES, reason="../shared is not there: no real files to test with")
@pytest.mark.parametrize("name", [f for f in FILES if f not in WHOLE_FILE_REFUSED] or ["none"])
def test_each_field_of_a_file_lies_in_its_store(squall, tmp_path, name):
    store = tmp_path / "store.zarr"
    done = squall("convert", "--json", FOLDER / name, store, check=False)
    report = json.loads(done.out)
    assert done.code == (3 if report["bad"] or report["ignored"] else 0), done.err
    assert bool(report["bad"]) == (name in DAMAGED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = xr.open_zarr(store).load()

    fields = list(fields_of(FOLDER / name))
    if name in SECONDS_DROPPED:
        fields = [f | {"reference": dataset.init_time.values[0].astype("datetime64[s]")} for f in fields]
    if name in NEGATIVE_LENGTH:
        fields = [f | {"step": NEGATIVE_LENGTH[name]} for f in fields]
    in_store = set(dataset.init_time.values.astype("datetime64[s]"))
    wanted = [f for f in fields if f["reference"] in in_store]
    if name not in DAMAGED:
        assert len(fields) == report["fields"]["found"]
        assert len(fields) - len(wanted) == report["fields"]["ignored"]  # runs off the cadence
    left, lost = placed_once(dataset, wanted)
    assert not lost, f"{len(lost)} fields are not where they belong:\n{describe(lost)}"
    if name not in DAMAGED:
        full = [slab for slab in left if not np.isnan(slab["values"]).all()]
        assert not full, f"{len(full)} slabs hold what no field says:\n{describe(full)}"


@pytest.mark.skipif(not FILES, reason="../shared is not there: no real files to test with")
@pytest.mark.parametrize("name, reason", sorted(WHOLE_FILE_REFUSED.items()))
def test_a_file_that_is_not_read_yet_is_refused_by_name(squall, tmp_path, name, reason):
    done = squall("convert", FOLDER / name, tmp_path / "store.zarr", check=False)
    assert done.code == 1
    assert reason in done.err and name in done.err
    assert not pathlib.Path(tmp_path / "store.zarr").exists()
