#!/usr/bin/env python3
"""Makes the small files that the pages and notebooks of the documentation work with, in the current folder (5 MB):

    archive/2024-02-28T00.grib2 …   4 runs of a made-up global forecast model, every 6 hours: 2t, msl, 10u and 10v at 7 steps, 2.5 degrees
    era5/2024-01-01.nc …            20 days of hourly 2 m temperature, one NetCDF-4 file a day, 5 degrees

Needs numpy, eccodes, xarray and netCDF4. The weather is waves that travel east over a world with two continents."""

import argparse
import datetime as dt
import pathlib

import numpy as np

FIRST_RUN = dt.datetime(2024, 2, 28)
FIRST_DAY = dt.datetime(2024, 1, 1)


def axes(step_degrees):
    """Latitudes from the north pole to the south pole, longitudes from Greenwich eastwards, as columns and rows that broadcast."""
    latitude = np.linspace(90, -90, int(180 / step_degrees) + 1)[:, None]
    longitude = np.arange(0, 360, step_degrees)[None, :]
    return latitude, longitude


def weather(when, latitude, longitude):
    """Temperature (K), pressure (Pa) and wind (m/s) everywhere at one moment."""
    days = (when - FIRST_DAY) / dt.timedelta(days=1)
    y, x = np.radians(latitude), np.radians(longitude)
    belt = np.cos(y) ** 2
    land = 1 / (1 + np.exp(-8 * (np.sin(2 * x + 1) * np.cos(y) + 0.6 * np.sin(3 * y + x) - 0.2)))
    waves = np.sin(5 * x - days * 0.9 + 2 * y) + 0.6 * np.sin(8 * x - days * 1.7 - 3 * y)
    noon = np.cos(2 * np.pi * (days + longitude / 360) + np.pi)
    temperature = 299 - 48 * np.sin(y - 0.1) ** 2 + 4 * waves * belt * np.abs(np.sin(2 * y)) + land * (noon * 6 * belt - 6 * np.sin(y) ** 2)
    pressure = 101325 - 900 * waves * np.sin(2 * y) ** 2 + 600 * np.cos(6 * y)
    east = 8 * np.cos(3 * y) * -belt + 5 * np.cos(5 * x - days * 0.9 + 2 * y) * belt
    north = 6 * np.cos(5 * x - days * 0.9 + 2 * y) * np.sin(2 * y) ** 2
    return {"2t": temperature, "msl": pressure, "10u": east, "10v": north}


def grib_message(name, values, run, step_hours, step_degrees):
    import eccodes

    message = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    rows, columns = values.shape
    keys = {
        "Ni": columns,
        "Nj": rows,
        "latitudeOfFirstGridPointInDegrees": 90,
        "longitudeOfFirstGridPointInDegrees": 0,
        "latitudeOfLastGridPointInDegrees": -90,
        "longitudeOfLastGridPointInDegrees": 360 - step_degrees,
        "iDirectionIncrementInDegrees": step_degrees,
        "jDirectionIncrementInDegrees": step_degrees,
        "dataDate": int(run.strftime("%Y%m%d")),
        "dataTime": int(run.strftime("%H%M")),
        "step": step_hours,
        "shortName": name,
        "bitsPerValue": 12,
    }
    for key, value in keys.items():
        eccodes.codes_set(message, key, value)
    eccodes.codes_set_values(message, values.ravel())
    content = eccodes.codes_get_message(message)
    eccodes.codes_release(message)
    return content


def make_archive(folder="archive", runs=4, steps=range(0, 37, 6), step_degrees=2.5):
    """GRIB files, one a run."""
    latitude, longitude = axes(step_degrees)
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for number in range(runs):
        run = FIRST_RUN + dt.timedelta(hours=6 * number)
        with open(pathlib.Path(folder) / f"{run:%Y-%m-%dT%H}.grib2", "wb") as file:
            for step in steps:
                fields = weather(run + dt.timedelta(hours=step), latitude, longitude)
                for name, values in fields.items():
                    file.write(grib_message(name, values, run, step, step_degrees))


def make_era5(folder="era5", days=20, step_degrees=5):
    """NetCDF-4 files, one a day, packed as ERA5's often are."""
    import xarray as xr

    latitude, longitude = axes(step_degrees)
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for number in range(days):
        hours = [FIRST_DAY + dt.timedelta(days=number, hours=hour) for hour in range(24)]
        values = np.array([weather(hour, latitude, longitude)["2t"] for hour in hours], "f4")
        attributes = {"long_name": "2 metre temperature", "units": "K", "standard_name": "air_temperature"}
        ds = xr.Dataset(
            {"t2m": (("time", "latitude", "longitude"), values, attributes)},
            {
                "time": np.array(hours, "M8[ns]"),
                "latitude": ("latitude", latitude[:, 0], {"units": "degrees_north", "standard_name": "latitude"}),
                "longitude": ("longitude", longitude[0], {"units": "degrees_east", "standard_name": "longitude"}),
            },
        )
        packed = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32767, "zlib": True, "chunksizes": (24, 19, 36)}
        encoding = {"t2m": packed, "time": {"units": "hours since 1900-01-01", "dtype": "i4"}}
        ds.to_netcdf(pathlib.Path(folder) / f"{hours[0]:%Y-%m-%d}.nc", engine="netcdf4", encoding=encoding)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    make_archive()
    make_era5()


if __name__ == "__main__":
    main()
