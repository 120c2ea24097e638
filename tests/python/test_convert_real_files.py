"""Real files of many centres, converted: every field that is stored has the values that ecCodes gives, and xarray opens the store.

Orientation and places have tests of their own; here the fields of a file are compared as sets of values, whatever they are called.
"""

import collections
import hashlib
import json
import pathlib
import warnings

import eccodes as ec
import numpy as np
import pytest
import xarray as xr

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data" / "grib"

# what this release does not read, with a word of the reason; all other files must convert
REFUSED = {
    "gfswave.t18z.atlocn.0p16.f001.grib2.idx": "no GRIB message",
    "iris_second_order_FRANX01.grib1": "second-order",
    "iris_ukv_chan9.grib2": "4.31",
    "jma_nowcast_run_length.grib2": "run length",
    "spherical_harmonics.grib": "spectral",
}
# fields that ecCodes itself does not decode
NO_ORACLE = {"era5-levels-corrupted.grib": 1}

GRIB = sorted(p.name for p in FOLDER.glob("*")) if FOLDER.is_dir() else []


def digest(values):
    return hashlib.md5(np.sort(values.ravel()).tobytes()).digest()


def eccodes_fields(path):
    ec.codes_grib_multi_support_on()
    found = collections.Counter()
    with open(path, "rb") as f:
        while True:
            try:
                h = ec.codes_grib_new_from_file(f)
            except ec.CodesInternalError:
                return found
            if h is None:
                return found
            try:
                ec.codes_set(h, "missingValue", 1e20)
                values = ec.codes_get_values(h)
                found[digest(np.where(values == 1e20, np.nan, values).astype("float32"))] += 1
            except ec.CodesInternalError:
                pass
            ec.codes_release(h)


def stored_fields(store):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds = xr.open_zarr(store).load()
    found = collections.Counter()
    for name, a in ds.data_vars.items():
        if a.dims[0] == "init_time" and name not in ("chunk_exists", "field_count") and a.ndim > 1:
            size = a.shape[-1] if a.dims[-1] == "values" else a.shape[-1] * a.shape[-2]
            found.update(digest(field) for field in a.values.astype("float32").reshape(-1, size))
    return found


@pytest.mark.skipif(not GRIB, reason="../shared/data/grib is not there: no real files to test with")
@pytest.mark.parametrize("name", GRIB)
def test_a_real_file(squall, tmp_path, name):
    store = tmp_path / "out.zarr"
    done = squall("convert", FOLDER / name, store, "-q", "--json", "--codec", "zstd:level=1", check=False)
    if name in REFUSED:
        assert done.code == 1 and REFUSED[name] in done.err
        return
    assert done.code in (0, 3), done.err
    report = json.loads(done.out)
    written, fields = report["fields_written"], report["fields"]
    assert fields["found"] == fields["placed"] + fields["ignored"] + fields["duplicates"] + fields["not_selected"]
    assert written == fields["placed"] > 0
    common = (stored_fields(store) & eccodes_fields(FOLDER / name)).total()
    assert common == written - NO_ORACLE.get(name, 0)
