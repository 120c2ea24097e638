"""Every real file, by the command: listed, read, converted, and found again by xarray in the store, field by field (real_files.py has
the checks; here is what must come of each file), and what docs/files.md says of it."""

import json
import sys
import warnings

import numpy as np
import pytest
from conftest import ROOT, SHARED

pytest.importorskip("eccodes")
xr = pytest.importorskip("xarray")

FOLDER = SHARED / "data" / "grib"
FILES = sorted(p.name for p in FOLDER.iterdir()) if FOLDER.is_dir() else []
NONE = [pytest.param("", marks=pytest.mark.skip("../shared is not there: no real files to test with"))]
# What is not read yet, or not put into a store, and the words that say so.
UNREAD = {
    "iris_second_order_FRANX01.grib1": "second-order packing",
    "jma_nowcast_run_length.grib2": "run length packing",
    "spherical_harmonics.grib": "spectral coefficients",
}
NOT_CONVERTED = {
    **UNREAD,
    "iris_ukv_chan9.grib2": "product definition template 4.31 (satellite)",
    "gfswave.t18z.atlocn.0p16.f001.grib2.idx": "holds no GRIB message",
}
DAMAGED = {
    "era5-levels-corrupted.grib": "section 7 says 21972 bytes",
    "pygrib_flux.grb": "7571 bytes that belong to no GRIB message",
    "gfswave.t18z.atlocn.0p16.f001.grib2.idx": "neither a Zarr store nor an HDF5, NetCDF-3 or GRIB file",
}
# Their runs are months apart, or three chance moments.
OFF_CADENCE = {"forecast_monthly_ukmo.grib": 84, "iris_3_layer.grib2": 1, "single_gridpoint.grib": 2}


@pytest.mark.parametrize("name", FILES or NONE)
def test_every_field_is_read_and_found_in_the_store(name, account_of):
    a = account_of(name)
    assert len(a.damage) == (name in DAMAGED) and all(DAMAGED[name] in line for line in a.damage)
    assert a.read == (0 if name in UNREAD else len(a.rows))
    assert all(UNREAD[name] in reason for reason in a.refused)
    if name in NOT_CONVERTED:
        assert not a.variables and all(NOT_CONVERTED[name] in reason and name in reason for reason in a.ignored), a.ignored
    else:
        assert a.variables and a.ignored == ({"off cadence": OFF_CADENCE[name]} if name in OFF_CADENCE else {})
        assert a.placed + a.ignored.total() == len(a.rows)


@pytest.mark.parametrize("name", ["iris_file.grib2"] if FILES else NONE)
def test_where_an_interval_has_a_length_below_zero_its_forecast_time_is_the_step(name, squall, tmp_path):
    squall("convert", FOLDER / name, tmp_path / "step.zarr")
    assert xr.open_zarr(tmp_path / "step.zarr").step.values == np.timedelta64(36, "h")


@pytest.mark.parametrize("name", ["forecast_monthly_ukmo.grib", "single_gridpoint.grib"] if FILES else NONE)
def test_runs_of_months_are_all_taken_as_the_warning_says(name, squall, tmp_path):
    advised = squall("convert", FOLDER / name, tmp_path / "months.zarr", check=False)
    assert advised.code == 3 and "--every 24h takes every run" in advised.err, advised.err
    again = squall("convert", FOLDER / name, tmp_path / "months.zarr")  # exit 0: what is ignored is known
    assert "known already" in again.out and not again.err
    report = json.loads(squall("convert", "--json", "-q", "--every", "24h", FOLDER / name, tmp_path / "days.zarr").out)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = xr.open_zarr(tmp_path / "days.zarr").load()
    assert dataset.field_count.values.sum() == report["fields"]["placed"] == report["fields"]["found"]
    assert set(np.diff(dataset.init_time.values)) == {np.timedelta64(1, "D")}


def test_the_table_of_real_files_is_the_generators(shared, account_of):
    sys.path.insert(0, str(ROOT / "gen"))
    from files_table import render
    from real_files import NO_ORACLE

    accounts = [account_of(name) for name in FILES]
    committed, made = (ROOT / "docs" / "files.md").read_text().splitlines(), render(accounts, NO_ORACLE).splitlines()
    differences = [f"{a}\n  is now\n{b}" for a, b in zip(committed, made, strict=False) if a != b]
    assert committed == made, "run gen/files_table.py:\n" + "\n".join(differences[:10])
