"""Small GRIB archives, made by ecCodes, and what ecCodes says is in them: for tests that must be quick."""

import contextlib
import datetime as dt
import pathlib
import zlib

import eccodes as ec
import numpy as np

ROWS, COLUMNS = 12, 20
START = dt.datetime(2024, 2, 28)

# name: (discipline, category, number, type of first surface, level, mean, spread)
VARIABLES = {
    "t": (0, 0, 0, 103, 2, 280.0, 10.0),
    "r": (0, 1, 1, 103, 2, 60.0, 20.0),
    "prmsl": (0, 3, 1, 101, 0, 101325.0, 900.0),
    "u": (0, 2, 2, 103, 10, 0.0, 8.0),
    "orog": (0, 3, 5, 1, 0, 65000.0, 300.0),  # some of it lies beyond float16
}


@contextlib.contextmanager
def message(sample="regular_ll_sfc_grib2"):
    h = ec.codes_grib_new_from_samples(sample)
    try:
        yield h
    finally:
        ec.codes_release(h)


def field(name, init, step_hours, seed=0, bits=16, missing=False, level=None):
    """One message. The values follow from all arguments."""
    discipline, category, number, surface, default_level, mean, spread = VARIABLES[name]
    rng = np.random.default_rng(
        zlib.crc32(repr((name, init.isoformat(), step_hours, seed, level)).encode())
    )  # hash() differs from run to run
    values = mean + spread * rng.standard_normal((ROWS, COLUMNS))
    with message() as h:
        for key, value in {
            "Ni": COLUMNS,
            "Nj": ROWS,
            "latitudeOfFirstGridPointInDegrees": 61,
            "longitudeOfFirstGridPointInDegrees": 0,
            "latitudeOfLastGridPointInDegrees": 61 - (ROWS - 1) * 0.5,
            "longitudeOfLastGridPointInDegrees": (COLUMNS - 1) * 0.5,
            "iDirectionIncrementInDegrees": 0.5,
            "jDirectionIncrementInDegrees": 0.5,
            "discipline": discipline,
            "parameterCategory": category,
            "parameterNumber": number,
            "typeOfFirstFixedSurface": surface,
            "scaleFactorOfFirstFixedSurface": 0,
            "scaledValueOfFirstFixedSurface": default_level if level is None else level,
            "dataDate": int(init.strftime("%Y%m%d")),
            "dataTime": int(init.strftime("%H%M")),
            "indicatorOfUnitOfTimeRange": 1,
            "forecastTime": step_hours,
            "bitsPerValue": bits,
        }.items():
            ec.codes_set(h, key, value)
        if missing:
            ec.codes_set(h, "bitmapPresent", 1)
            ec.codes_set(h, "missingValue", 1e20)
            values = np.where(rng.random(values.shape) < 0.3, 1e20, values)
        ec.codes_set_values(h, values.ravel())
        return ec.codes_get_message(h)


def init(n, hours=6):
    return START + dt.timedelta(hours=hours * n)


def path_of(folder, n, part=""):
    return pathlib.Path(folder) / f"{init(n):%Y%m%d%H%M}{part}.grib2"


def run(n, names=("t", "r", "u"), steps=range(3)):
    return [field(name, init(n), step, missing=name == "u") for name in names for step in steps]


def write(path, messages):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(messages))
    return path


def make(folder, inits=4, **kwargs):
    """A file a run."""
    for n in range(inits):
        write(path_of(folder, n), run(n, **kwargs))
    return pathlib.Path(folder)


def decoded(paths):
    """Every message of the files as ecCodes has it: (shortName, level, init time, step in hours, values as float64, missing NaN)."""
    for path in paths:
        with open(path, "rb") as f:
            while (h := ec.codes_grib_new_from_file(f)) is not None:
                ec.codes_set(h, "missingValue", 1e20)
                values = ec.codes_get_values(h)
                if ec.codes_get(h, "bitmapPresent"):
                    values = np.where(values == 1e20, np.nan, values)
                date, time = ec.codes_get(h, "dataDate"), ec.codes_get(h, "dataTime")
                start = dt.datetime.strptime(f"{date}{time:04d}", "%Y%m%d%H%M")
                ec.codes_set(h, "stepUnits", 1)
                yield (
                    ec.codes_get(h, "cfVarName"),
                    ec.codes_get(h, "level"),
                    np.datetime64(start, "ns"),
                    ec.codes_get(h, "endStep"),
                    values.reshape(ec.codes_get(h, "Nj"), ec.codes_get(h, "Ni")),
                )
                ec.codes_release(h)


def messages_of(path):
    """(offset, length) of the messages of a file by their own word; the last may be cut off."""
    data = pathlib.Path(path).read_bytes()
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at + 8 : at + 16], "big")
        yield at, length
        at += length
