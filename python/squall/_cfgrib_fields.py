"""Fields of GRIB files as columns under ecCodes' and cfgrib's keys, and the coordinates that cfgrib gives their grids.

C scans the files: a row for each field, which points into tables of products and grids.
"""

import dataclasses
import json
import os

import numpy as np

from squall import _squall
from squall._errors import Error, InvalidError, Status

_ROW = np.dtype([("product", "u4"), ("grid", "u4"), ("file", "u4"), ("number", "i4"), ("time", "i8"), ("begin", "i8"), ("end", "i8")])
# one value each in a variable, in the order in which names tell them apart
VARIABLE_KEYS = ("paramId", "dataType", "stepType", "typeOfLevel", "gridType", "numberOfPoints", "uvRelativeToGrid")
FIRST_KEYS = ("shortName", "units", "name", "cfName", "cfVarName", "totalNumber", "numberOfDirections", "numberOfFrequencies", "NV")
TIME_DIMS = ("time", "step", "valid_time")
COORDINATE_KEYS = {*TIME_DIMS, "endStep", "stepUnits", "md5GridSection"}  # not what the header says, word for word
_COMPUTED_KEYS = COORDINATE_KEYS | {"dataDate", "dataTime", "number", "level"}
_ALIASES = {"Nx": "Ni", "Ny": "Nj", "Ni": "Nx", "Nj": "Ny"}
# those that not every field has
_OTHER_KEYS = (
    "bottomLevel directionNumber frequencyNumber tablesVersion DxInMetres DyInMetres LaDInDegrees Latin1InDegrees Latin2InDegrees"
    " LoVInDegrees N Ni Nj Nx Ny angleOfRotationInDegrees gridDefinitionDescription iDirectionIncrementInDegrees iScansNegatively"
    " jDirectionIncrementInDegrees jPointsAreConsecutive jScansPositively latitudeOfFirstGridPointInDegrees"
    " latitudeOfLastGridPointInDegrees latitudeOfSouthernPoleInDegrees longitudeOfFirstGridPointInDegrees"
    " longitudeOfLastGridPointInDegrees longitudeOfSouthernPoleInDegrees numberOfGridInReference numberOfGridUsed pl uuidOfHGrid"
).split()
_DOWN = {"positive": "down"}
_PRESSURE = _DOWN | {"standard_name": "air_pressure", "long_name": "pressure"}
_SOIL = _DOWN | {"units": "m", "long_name": "soil depth", "standard_name": "depth"}
_MOMENT = {"units": "seconds since 1970-01-01T00:00:00", "calendar": "proleptic_gregorian"}
VALID = _MOMENT | {"standard_name": "time", "long_name": "time"}
COORDINATES = {
    "latitude": {"units": "degrees_north", "standard_name": "latitude", "long_name": "latitude"},
    "longitude": {"units": "degrees_east", "standard_name": "longitude", "long_name": "longitude"},
    "depthBelowLand": _SOIL,
    "depthBelowLandLayer": _SOIL,
    "hybrid": _DOWN | {"units": "1", "long_name": "hybrid level", "standard_name": "atmosphere_hybrid_sigma_pressure_coordinate"},
    "heightAboveGround": {"units": "m", "positive": "up", "long_name": "height above the surface", "standard_name": "height"},
    "isobaricInhPa": _PRESSURE | {"units": "hPa", "stored_direction": "decreasing"},
    "isobaricInPa": _PRESSURE | {"units": "Pa", "stored_direction": "decreasing"},
    "isobaricLayer": _PRESSURE | {"units": "Pa"},
    "number": {"units": "1", "standard_name": "realization", "long_name": "ensemble member numerical id"},
    "step": {
        "units": "hours",
        "standard_name": "forecast_period",
        "long_name": "time since forecast_reference_time",
        "dtype": "timedelta64[ns]",
    },
    "time": _MOMENT | {"standard_name": "forecast_reference_time", "long_name": "initial time of forecast"},
    "valid_time": VALID,
}


@dataclasses.dataclass
class Coordinate:
    dims: tuple
    data: np.ndarray
    attrs: dict

    def same(self, other):
        return self.dims == other.dims and self.attrs == other.attrs and np.array_equal(self.data, other.data)


class Fields:
    """All fields of some files: columns, and tables that they point into."""

    def __init__(self, paths):
        self.paths = paths
        self.files = _squall.GribFiles(tuple(map(os.fsencode, paths)))
        self.rows = np.frombuffer(self.files.columns, _ROW)
        tables = json.loads(self.files.tables)
        self.products, self.grids = (
            [{k.removeprefix("GRIB_"): v for k, v in row.items()} for row in tables[name]] for name in ("products", "grids")
        )
        self.problems = tables["problems"]
        if not len(self.rows):
            reason = self.problems[0] if self.problems else f"{paths[0]}: no GRIB message"
            raise Error(reason, Status.ENOTFOUND, paths[0])
        self._geography = {}
        self._values = {}  # key → its value in each product

    def column(self, key, rows):
        """Values of a key, ecCodes' or cfgrib's, in some of the rows (None: a field does not have it)."""
        key, _, kind = key.partition(":")
        r = self.rows[rows]
        if key == "time":
            return r["time"]
        if key in ("step", "endStep"):
            return r["end"] / 3600.0
        if key == "valid_time":
            return r["time"] + r["end"]
        if key == "dataDate":
            days = r["time"].astype("M8[s]").astype("M8[D]").astype(object)
            return np.array([d.year * 10000 + d.month * 100 + d.day for d in days])
        if key == "dataTime":
            minutes = r["time"] // 60 % 1440
            return minutes // 60 * 100 + minutes % 60
        if key == "stepUnits":
            return np.ones(len(r), int)
        if key == "md5GridSection":
            return r["grid"]
        if key == "number":
            common = self._of_products("number", r["product"])
            return np.array([n if n >= 0 else c for n, c in zip(r["number"].tolist(), common, strict=True)])
        if any(key in grid or _ALIASES.get(key) in grid for grid in self.grids):
            return _array([self.grids[g].get(key, self.grids[g].get(_ALIASES.get(key))) for g in r["grid"].tolist()])
        default = 0.0 if key == "level" else None
        values = self._of_products(key, r["product"], default)
        if key == "bottomLevel":
            levels = self._of_products("level", r["product"], 0.0)
            values = [level if value is None else value for value, level in zip(values, levels, strict=True)]
        values = _array(values)
        return values.astype(kind) if kind and values.dtype != object else values

    def _of_products(self, key, products, default=None):
        if key not in self._values:
            self._values[key] = [product.get(key, default) for product in self.products]
        values = self._values[key]
        return [values[p] for p in products.tolist()]

    def keys(self):
        """Those that column takes."""
        own = {"kind", "institution"}  # squall's, not ecCodes'
        return _COMPUTED_KEYS.union(VARIABLE_KEYS, FIRST_KEYS, _OTHER_KEYS, *self.grids, *self.products) - own

    def knows(self, key):
        return key.partition(":")[0] in self.keys()

    def selected(self, filter_by_keys):
        """Rows of the fields that have one of the values for each key."""
        rows = np.arange(len(self.rows))
        for key, wanted in filter_by_keys.items():
            if not self.knows(key):
                raise InvalidError(
                    f"filter_by_keys={{{key!r}: …}}: no field has this key, or squall does not know it", Status.EINVAL, self.paths[0]
                )
            wanted = wanted if isinstance(wanted, (list, tuple)) else [wanted]
            rows = rows[[value in wanted for value in self.column(key, rows).tolist()]]
        if not len(rows):
            raise InvalidError(f"{self.paths[0]}: no field has {filter_by_keys}", Status.ENOTFOUND, self.paths[0])
        return rows

    def compared(self, rows, others):
        """Which pairs of fields say the same of themselves, and which of these hold the same data."""
        like = self.rows[rows]["product"] == self.rows[others]["product"]
        pairs = np.stack([rows[like], others[like]], axis=1).astype(np.uint32)
        alike = np.zeros(len(like), bool)
        alike[like] = np.frombuffer(self.files.same(pairs.tobytes()), bool)
        return like, alike

    def geography(self, grid):
        """Dimensions and coordinates of a grid."""
        if grid not in self._geography:
            self._geography[grid] = self._geography_of(grid)
        return self._geography[grid]

    def _geography_of(self, grid):
        axes, latitudes, longitudes, mapping = self.files.grid(grid)
        dims = [name for name, _, _ in axes]
        found = {}
        for name, values, attrs in axes:
            if values is not None:
                attributes = COORDINATES[name].copy() if name in COORDINATES else json.loads(attrs)
                found[name] = Coordinate((name,), np.frombuffer(values), attributes)
        for name, values in (("latitude", latitudes), ("longitude", longitudes)):
            if values is not None:
                found[name] = Coordinate(tuple(dims), np.frombuffer(values), COORDINATES[name])
        if self.grids[grid].get("gridType") == "regular_ll":
            _accumulate(found, self.grids[grid])
        if "latitude" in found and dims[0] == "latitude" and found["latitude"].data[0] > found["latitude"].data[-1]:
            found["latitude"].attrs["stored_direction"] = "decreasing"
        if mapping is not None:
            found["spatial_ref"] = Coordinate((), np.array(0), json.loads(mapping))
        return dims, found


def _array(values):
    found = np.array(values)
    return found if found.dtype.kind in "iufb" else np.array(values, object)


def _accumulate(found, keys):
    """ecCodes adds the increment point by point, and sets the last: the same sums here, so that its labels are found."""
    latitude, longitude = (found[name].data for name in ("latitude", "longitude"))
    first, last = (keys.get(f"longitudeOf{end}GridPointInDegrees", 0.0) for end in ("First", "Last"))
    # the circle is added behind the difference, which has rounded by then
    span = last - first + 360 if last < first and longitude[-1] > longitude[0] else longitude[-1] - longitude[0]
    increment = keys.get("jDirectionIncrementInDegrees", 0.0) * (1 if keys.get("jScansPositively") else -1)
    for name, values, step in (("latitude", latitude, increment), ("longitude", longitude, span / max(len(longitude) - 1, 1))):
        sums = np.add.accumulate(np.concatenate([values[:1], np.full(len(values) - 1, step)]))
        sums[-1] = values[-1]
        if np.allclose(sums, values, rtol=0, atol=1e-2 * abs(step)):
            found[name].data = sums
