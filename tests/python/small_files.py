"""Small NetCDF files of a model that writes one a day, made by netCDF4, and as xarray shows them: for tests that must be quick."""

import warnings

import netCDF4
import numpy as np
import xarray as xr

ROWS, COLUMNS, HOURS = 6, 10, 4
FILL = np.float32(-999)
FIELDS = ("t", "p", "count", "flag")  # what field_count counts: `series` has so little a time that it is kept as a coordinate is


def values_of(name, day, hours=HOURS, seed=0):
    """What the file of that day holds of a variable; follows from the arguments."""
    rng = np.random.default_rng([*name.encode(), day, seed])
    if name == "t":
        values = (280 + 10 * rng.standard_normal((hours, ROWS, COLUMNS))).astype("f4")
        values[0, 0, :2] = FILL
        return values
    if name == "p":
        values = rng.integers(-3000, 3000, (hours, ROWS, COLUMNS), "i2")
        values[-1, -1, -1] = -32768
        return values
    if name == "count":
        return rng.integers(-(2**31), 2**31, (hours, ROWS, COLUMNS), "i4")
    if name == "flag":
        return rng.integers(0, 3, (hours, ROWS, COLUMNS), "i1")
    return rng.standard_normal(hours)  # series


def write(path, day, *, format="NETCDF4", hours=HOURS, start=None, units="hours since 2024-01-01", without=(), seed=0, attrs=(), orog=0):
    """`attrs`: {"t": {"units": "degC"}} takes the place of the file's own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    attrs = dict(attrs)
    with netCDF4.Dataset(path, "w", format=format) as d:
        d.title, d.Conventions, d.history = "a model, cut small", "CF-1.11", "made by a test"
        d.setncatts({"version": np.int16(3), "origin": np.array([51.5, -0.1])})
        for name, length in (("time", None), ("lat", ROWS), ("lon", COLUMNS)):
            d.createDimension(name, length)

        def add(name, kind, dims, values, fill=None, chunks=None, **attributes):
            if name in without:
                return
            how = {"zlib": True, "complevel": 1, "shuffle": True, "chunksizes": chunks} if chunks and format == "NETCDF4" else {}
            v = d.createVariable(name, kind, dims, fill_value=fill, **how)
            v.set_auto_maskandscale(False)
            v.setncatts(attributes | attrs.get(name, {}))
            v[...] = values

        times = np.arange(hours) * 6 + (24 * day if start is None else start)
        add("time", "f8", ("time",), times, units=units, calendar="standard", standard_name="time", axis="T")
        add("lat", "f4", ("lat",), 50 + np.arange(ROWS) / 4, units="degrees_north", standard_name="latitude")
        add("lon", "f8", ("lon",), np.arange(COLUMNS) / 3, units="degrees_east", standard_name="longitude")
        maps, map_chunk = ("time", "lat", "lon"), (1, ROWS, COLUMNS)
        add("t", "f4", maps, values_of("t", day, hours, seed), FILL, map_chunk, units="K", long_name="Lufttemperatur, 2 m über Grund")
        add(
            "p",
            "i2",
            maps,
            values_of("p", day, hours, seed),
            -32768,
            (2, ROWS, 4),
            units="hPa",
            scale_factor=0.01,
            add_offset=np.float64(1000),
        )
        add("count", "i4", maps, values_of("count", day, hours, seed), valid_range=np.array([0, 2**31 - 1], "i4"))
        meanings = "none rain snow"
        add(
            "flag",
            "i1",
            maps,
            values_of("flag", day, hours, seed),
            chunks=map_chunk,
            flag_values=np.arange(3, dtype="i1"),
            flag_meanings=meanings,
        )
        add("series", "f8", ("time",), values_of("series", day, hours, seed), np.nan, missing_value=np.nan)
        add("orog", "f4", ("lat", "lon"), np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) + orog, units="m", coordinates="lat lon")
        add("crs", "i4", (), 7, grid_mapping_name="latitude_longitude", earth_radius=6371229.0)
    return path


def make(folder, days=5, format="NETCDF4"):
    return [write(folder / f"day{day:02}.nc", day, format=format) for day in range(days)]


def shown(paths, dim="time", **options):
    """All of it, as it is stored, by xarray."""
    options = {"decode_cf": False, "data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "override"} | options
    opener = xr.open_zarr if paths[0].suffix == ".zarr" else xr.open_dataset
    opened = [opener(p, decode_cf=options["decode_cf"]).load() for p in paths]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = xr.concat(opened, dim, combine_attrs="override", **{k: v for k, v in options.items() if k != "decode_cf"})
    for ds in opened:
        ds.close()
    return whole


def same_bits(found, wanted, what=""):
    """Also where both are NaN, and -0 is not 0."""
    assert found.shape == wanted.shape, (what, found.shape, wanted.shape)
    assert found.dtype == wanted.dtype, (what, found.dtype, wanted.dtype)
    if found.dtype.kind in "OTU":
        assert found.tolist() == wanted.tolist(), what
    else:
        assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(wanted).tobytes(), what


def same_attrs(found, wanted, what=""):
    """As far as JSON tells: numbers by value, NaN like NaN; texts."""
    plain = [{k: np.asarray(v).tolist() if not isinstance(v, str) else v for k, v in a.items()} for a in (found, wanted)]
    assert plain[0].keys() == plain[1].keys(), what
    for key, value in plain[1].items():
        assert repr(plain[0][key]) == repr(value) or plain[0][key] == value, (what, key, plain[0][key], value)


OURS = {"chunk_exists", "field_count"}


def same_dataset(found, wanted):
    """Variables, dimensions, types, values, attributes: what squall adds (flags, a line of history) aside."""
    assert set(found.variables) - OURS == set(wanted.variables)
    for name, variable in wanted.variables.items():
        assert found[name].dims == variable.dims, name
        same_bits(found[name].values, variable.values, name)
        same_attrs(found[name].attrs, variable.attrs, name)
    ours, theirs = dict(found.attrs), dict(wanted.attrs)
    assert theirs.pop("history", "") in ours.pop("history")
    same_attrs(ours, theirs, "the root")
