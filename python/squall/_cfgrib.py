"""GRIB fields as the hypercubes that cfgrib's users know: its names, dimensions, coordinates and attributes, without ecCodes.

Fields of one parameter (and level type, step type, data type, grid) are a variable, whose dimensions are what differs among them. C scans
the files and reads values; here is only decided which field lies where, from columns with a row for each field. An arrangement is a
function of the files and of Settings: that is what arrays pickle as.
"""

import dataclasses
import datetime
import json
import os
import warnings
from collections.abc import Mapping

import numpy as np

from squall import _squall
from squall._cfgrib_fields import COORDINATE_KEYS, COORDINATES, FIRST_KEYS, TIME_DIMS, VALID, VARIABLE_KEYS, Coordinate, Fields
from squall._errors import Error, InvalidError, Status, UnsupportedError

_DATASET_KEYS = ("edition", "centre", "centreDescription", "subCentre")
_UNKNOWN = ("undef", "unknown", None)
_CONVENTIONS = ("parameter", "time", "geography", "vertical")


@dataclasses.dataclass
class Hypercube:
    """A variable: its place in the dataset is what coordinates say, its values lie in the array of that name."""

    array: str  # unique in the dataset
    name: str  # as cfgrib calls it
    attrs: dict
    dims: list
    shape: tuple  # without the grid's dimensions
    coordinates: dict
    fields: np.ndarray  # a row for each place, -1: none
    grid: int
    again: bool  # its fields say the same of themselves as another variable's, and hold other data


# ---- what was asked for ----------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Settings:
    """cfgrib's keywords that decide what lies where."""

    filter_by_keys: dict
    encode_cf: tuple
    squeeze: bool
    time_dims: tuple
    extra_coords: dict
    coords_as_attributes: tuple
    ignore_keys: tuple
    read_keys: tuple
    double: bool

    @classmethod
    def taken(cls, keywords):
        """Takes them out of keywords."""
        wanted = keywords.pop("values_dtype", "float32")
        dtype = next((known for known in map(np.dtype, ("f4", "f8")) if wanted in (known, known.name, known.str, known.type)), None)
        if dtype is None:
            raise ValueError(f"values_dtype={wanted!r}: possible are float32 and float64")
        filters = keywords.pop("filter_by_keys", None) or {}
        if not isinstance(filters, Mapping):
            raise TypeError(f"filter_by_keys={filters!r}: a mapping of keys to values, such as {{'shortName': 't', 'level': 500}}")
        settings = cls(
            filter_by_keys=dict(filters),
            encode_cf=tuple(keywords.pop("encode_cf", _CONVENTIONS)),
            squeeze=bool(keywords.pop("squeeze", True)),
            time_dims=tuple(keywords.pop("time_dims", ("time", "step"))),
            extra_coords=dict(keywords.pop("extra_coords", None) or {}),
            coords_as_attributes=tuple(keywords.pop("coords_as_attributes", None) or ()),
            ignore_keys=tuple(keywords.pop("ignore_keys", None) or ()),
            read_keys=tuple(keywords.pop("read_keys", None) or ()),
            double=dtype.itemsize == 8,
        )
        settings._check()
        return settings

    def _check(self):
        unknown = [dim for dim in self.time_dims if dim not in TIME_DIMS]
        if unknown:
            reason = f"time_dims={unknown[0]!r}: keys of a centre's own section are not read; take {', '.join(TIME_DIMS)}"
            raise UnsupportedError(reason, Status.EUNSUPPORTED)
        if "geography" not in self.encode_cf:
            raise UnsupportedError("encode_cf without 'geography': fields are always on their grids", Status.EUNSUPPORTED)

    def check_keys(self, fields):
        """Keys of ecCodes that squall does not know."""
        asked = {"read_keys": (self.read_keys, fields.keys() - COORDINATE_KEYS), "extra_coords": (self.extra_coords, fields.keys())}
        for keyword, (keys, known) in asked.items():
            unknown = [key for key in keys if key not in known]
            if unknown:
                reason = f"{keyword}: squall does not know the key {unknown[0]!r}; it knows {', '.join(sorted(known))}"
                raise UnsupportedError(reason, Status.EUNSUPPORTED, fields.paths[0])

    @property
    def text(self):
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def of_text(cls, text):
        found = json.loads(text)
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in found.items()})


# ---- variables -------------------------------------------------------------------------------------------------------------------------


class _Group:
    """Fields that share what a variable has one value of."""

    def __init__(self, rows, keys, again=False):
        self.rows, self.keys, self.again = rows, keys, again


def _groups(fields, rows, settings):
    """paramId → its groups, both in the files' order."""
    keys = [key for key in VARIABLE_KEYS if key not in settings.ignore_keys]
    r = fields.rows[rows]
    pairs, first, inverse = np.unique(r["product"].astype(np.int64) << 32 | r["grid"], return_index=True, return_inverse=True)
    numbers, of_pair, params = {}, np.empty(len(pairs), int), []
    for pair in np.argsort(first):
        product, grid = fields.products[pairs[pair] >> 32], int(pairs[pair] & 0xFFFFFFFF)
        values = tuple(product.get(key, fields.grids[grid].get(key)) for key in keys)
        param = product["paramId"] or product["shortName"]
        number = numbers.setdefault((param, values, grid), len(numbers))
        of_pair[pair] = number
        if number == len(params):
            params.append((param, dict(zip(keys, values, strict=True)), grid))
    of_row = of_pair[inverse]
    order = np.argsort(of_row, kind="stable")
    parts = np.split(rows[order], np.flatnonzero(np.diff(of_row[order])) + 1)
    found = {}
    for (param, values, _), part in zip(params, parts, strict=True):
        found.setdefault(param, []).append(_Group(part, values))
    return found


def _coordinate_keys(settings):
    times = settings.time_dims if "time" in settings.encode_cf else ("dataDate", "dataTime", "endStep")
    return ["number", *times, "level", "directionNumber", "frequencyNumber"]


def _axes(fields, group, settings):
    """Header coordinates of a group: name → (Coordinate, index of each row along it)."""
    found = {}
    for key in _coordinate_keys(settings):
        values = fields.column(key, group.rows)
        if values.dtype == object:
            if any(value is None for value in values):
                continue
            values = values.astype(float)
        name = key
        if key == "level" and "vertical" in settings.encode_cf and group.keys.get("typeOfLevel") not in _UNKNOWN:
            name = group.keys["typeOfLevel"]
        attrs = {"long_name": f"original GRIB coordinate for key: {key}({name})", "units": "1"} | COORDINATES.get(name, {})
        if len(values) == 1 or (values == values[0]).all():
            data, index = values[:1], np.zeros(len(values), int)
        else:
            data, index = np.unique(values, return_inverse=True)
            if attrs.get("stored_direction") == "decreasing":
                data, index = data[::-1], len(data) - 1 - index
        scalar = settings.squeeze and len(data) == 1
        found[name] = Coordinate(() if scalar else (name,), data[0] if scalar else data, attrs), index
    return found


def _moments(fields, rows):
    """The same number for fields of one time and step."""
    r = fields.rows[rows]
    return np.unique(np.stack([r["time"], r["end"]], axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def _kept(places, moments):
    """Which of the fields in each place counts in cfgrib: of one time and step the first; of several, where time_dims= has told that they
    make no difference, the first of those that come last."""
    firsts = np.sort(np.unique(np.stack([places, moments], axis=1), axis=0, return_index=True)[1])
    found = np.empty(places.max() + 1, firsts.dtype)
    found[places[firsts]] = firsts  # the last one is assigned
    return found


def _split(fields, groups, settings):
    """Groups of which no two fields claim one place, and their axes."""
    waiting = list(groups)
    while waiting:
        group = waiting.pop(0)
        axes = _axes(fields, group, settings)
        lengths = [coordinate.data.size for coordinate, _ in axes.values()]
        places = np.ravel_multi_index([index for _, index in axes.values()], lengths)
        taken, of_row = np.unique(places, return_inverse=True)
        if len(taken) == len(places):
            yield group, axes
            continue
        moments = _moments(fields, group.rows)
        firsts = _kept(of_row, moments)
        later = np.setdiff1d(np.arange(len(places)), firsts)
        claimed = firsts[of_row[later]]
        together = moments[claimed] == moments[later]
        for apart in (fields.column("kind", group.rows), fields.rows[group.rows]["begin"]):
            if (together & (apart[claimed] != apart[later])).any():
                values = dict.fromkeys(apart.tolist())
                waiting[:0] = [_Group(group.rows[apart == value], group.keys, group.again) for value in values]
                break
        else:
            kept = _Group(group.rows[np.sort(firsts)], group.keys, group.again)
            yield kept, _axes(fields, kept, settings)
            like, alike = fields.compared(group.rows[claimed], group.rows[later])
            if not alike.all():
                again = bool((like & ~alike & together).any())
                waiting.insert(0, _Group(group.rows[later[~alike]], group.keys, again))


def _attributes(fields, group, settings):
    product, grid = fields.products[fields.rows[group.rows[0]]["product"]], fields.grids[fields.rows[group.rows[0]]["grid"]]
    found = {f"GRIB_{key}": value for key, value in group.keys.items() if value not in _UNKNOWN}
    found["GRIB_stepUnits"] = 1
    found |= {f"GRIB_{key}": value for key, value in grid.items()}
    if "GRIB_gridDefinitionDescription" in found:
        found["GRIB_gridDefinitionDescription"] = _title(found["GRIB_gridDefinitionDescription"], product.get("tablesVersion"))
    found |= {f"GRIB_{key}": product[key] for key in FIRST_KEYS if key in product}
    for key in settings.read_keys:
        value = fields.column(key, group.rows[:1]).tolist()[0]
        if value is not None:
            found[f"GRIB_{key}"] = int(value) if key in ("level", "bottomLevel") and float(value).is_integer() else value
    found["GRIB_missingValue"] = float(np.finfo(np.float32).max)
    found["long_name"], found["units"] = f"original GRIB paramId: {product['paramId']}", "1"
    if "parameter" in settings.encode_cf:
        found |= {"standard_name": product["cfName"], "long_name": product["name"], "units": product["units"]}
    return found


def _title(title, version):
    """ecCodes cuts code table 3.1's texts at the bracket, which some versions of the table do not have."""
    plain, _, more = title.partition(" (")
    return f"{plain}. {more[:-1]}" if plain == "Latitude/longitude" and more and version in (1, 2, 3, 6, 7, 8, 9) else plain


def _name(attrs, settings):
    if "parameter" in settings.encode_cf and attrs["GRIB_cfVarName"] not in _UNKNOWN:
        return attrs["GRIB_cfVarName"]
    return attrs["GRIB_shortName"]


def _unique(name, group, leader, taken):
    """A name that says in what a variable differs from the one that has the plain name."""
    for key, value in group.keys.items():
        if name in taken and value != leader.keys[key]:
            name = f"{name}_{value}"
    number = 2
    plain = name
    while name in taken:
        name = f"{plain}_{number}"
        number += 1
    return name


def hypercubes(fields, rows, settings):
    """The variables that some of the fields make, in the files' order."""
    cubes, taken = [], {}
    for groups in _groups(fields, rows, settings).values():
        parts = list(_split(fields, groups, settings))
        # the plain name is that of most fields, an instant's before a statistic's
        order = sorted(parts, key=lambda part: (-len(part[0].rows), part[0].keys.get("stepType") != "instant"))
        named = {}
        for group, _ in order:
            attrs = _attributes(fields, group, settings)
            name = _name(attrs, settings)
            unique = _unique(name, group, taken.get(name, group), taken)
            taken[unique] = group
            named[id(group)] = unique, name, attrs
        for group, axes in parts:
            cubes.append(_hypercube(fields, group, axes, settings, *named[id(group)]))
    return cubes


def _hypercube(fields, group, axes, settings, array, name, attrs):
    coordinates = {}
    for key, (coordinate, _) in axes.items():
        if key in settings.coords_as_attributes and coordinate.data.size == 1:
            attrs[f"GRIB_{key}"] = [np.asarray(coordinate.data).reshape(-1)[0].item()]
        else:
            coordinates[key] = coordinate
    dims = [key for key, coordinate in coordinates.items() if coordinate.dims]
    shape = tuple(coordinates[dim].data.size for dim in dims)
    table = np.full(shape, -1, np.int32)
    table[tuple(axes[dim][1] for dim in dims)] = group.rows if dims else group.rows[0]
    for extra, along in settings.extra_coords.items():
        coordinates[extra] = _extra(fields, group, axes, extra, along, dims)
    grid = int(fields.rows[group.rows[0]]["grid"])
    geo_dims, geography = fields.geography(grid)
    coordinates |= geography
    if "time" in coordinates and "step" in coordinates:
        time, step = coordinates["time"], coordinates["step"]
        moments = np.asarray(time.data)[(...,) + (None,) * len(step.dims)] + np.asarray(step.data) * 3600
        coordinates["valid_time"] = Coordinate(time.dims + step.dims, moments, VALID)
    return Hypercube(array, name, attrs, dims + geo_dims, shape, coordinates, table, grid, group.again)


def _extra(fields, group, axes, name, along, dims):
    values = fields.column(name, group.rows)
    if along not in axes:
        raise InvalidError(f"extra_coords={{{name!r}: {along!r}}}: no dimension {along}; there are {', '.join(axes)}", Status.EINVAL)
    index = axes[along][1]
    data = np.empty(index.max() + 1, values.dtype)
    data[index] = values
    if (data[index] != values).any():
        raise ValueError(f"extra_coords={{{name!r}: {along!r}}}: {name} has several values at one {along}")
    attrs = COORDINATES.get(name, {})
    return Coordinate((along,), data, attrs) if along in dims else Coordinate((), data[0], attrs)


# ---- datasets --------------------------------------------------------------------------------------------------------------------------


def _merged(cubes):
    """Renames coordinates of which another variable has others under the same name: {name: Coordinate}, [(cube, its names), …]"""
    known, variants, users = {}, {}, []
    for cube in cubes:
        names = {}
        for name, coordinate in cube.coordinates.items():
            mine = dataclasses.replace(coordinate, dims=tuple(names.get(d, d) for d in coordinate.dims if d != name) or coordinate.dims)
            for used in variants.setdefault(name, []):
                if used[1] is coordinate or used[1].same(coordinate) and (coordinate.dims == (name,) or known[used[0]].dims == mine.dims):
                    names[name] = used[0]
                    break
            else:
                names[name] = name if name not in known else f"{name}_{cube.array}"
                variants[name].append((names[name], coordinate))
                known[names[name]] = dataclasses.replace(coordinate, dims=tuple(names.get(d, d) for d in coordinate.dims))
        users.append((cube, names))
    return known, users


def _together(cubes):
    """Groups of a tree: {name: cubes that agree in their coordinates}."""
    found = {}
    for cube in cubes:
        base = cube.attrs.get("GRIB_typeOfLevel", "unknown")
        for name, members in found.items():
            if name.startswith(base) and members[0].attrs.get("GRIB_typeOfLevel", "unknown") == base and _agree(cube, members):
                members.append(cube)
                break
        else:
            found[base if base not in found else f"{base}_{cube.array}"] = [cube]
    return found


def _agree(cube, members):
    return all(
        cube.name != other.name
        and all(
            name not in other.coordinates or c is other.coordinates[name] or c.same(other.coordinates[name])
            for name, c in cube.coordinates.items()
        )
        for other in members
    )


def _arranged(fields, cubes, names, settings):
    arrays = tuple((c.array, c.shape, tuple(c.dims), c.fields.tobytes(), c.grid, settings.double) for c in cubes)
    label = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    return fields.files.dataset(label, arrays, (tuple(map(os.fsencode, names)), settings.text))


def arrange(names, text):
    """The dataset of arrays that the settings make of the files: what is unpickled."""
    fields, settings = Fields(names), Settings.of_text(text)
    cubes = hypercubes(fields, fields.selected(settings.filter_by_keys), settings)
    return _arranged(fields, cubes, names, settings)


class Opened:
    """GRIB files, arranged: what an xarray dataset is made of."""

    def __init__(self, names, settings, errors="warn"):
        if errors not in ("ignore", "warn", "raise"):
            raise ValueError(f"errors={errors!r}: possible are 'ignore', 'warn' and 'raise'")
        fields = Fields(names)
        settings.check_keys(fields)
        self.settings, self.names = settings, names
        rows = fields.selected(settings.filter_by_keys)
        self.cubes = hypercubes(fields, rows, settings)
        self._tell(fields, errors)
        products = [fields.products[p] for p in np.unique(fields.rows[rows]["product"]).tolist()]
        self.attrs = self._attributes(products)
        self.dataset = _arranged(fields, self.cubes, names, settings)

    def _tell(self, fields, errors):
        problems = fields.problems
        if problems and errors == "raise":
            raise Error(problems[0], Status.ECORRUPT, self.names[0])
        if problems and errors == "warn":
            more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
            warnings.warn(f"not all could be read: {'; '.join(problems[:3])}{more}", stacklevel=6)
        again = [f"{cube.array} ({cube.name})" for cube in self.cubes if cube.again]
        if again and errors == "warn":
            text = "fields that say the same of themselves as others but hold other data are variables of their own"
            warnings.warn(f"{self.names[0]}: {text}: {', '.join(again)}", stacklevel=6)

    def _attributes(self, products):
        keys = [key for key in _DATASET_KEYS if key not in self.settings.ignore_keys]
        found = {f"GRIB_{key}": products[0][key] for key in keys if all(p[key] == products[0][key] for p in products)}
        found["Conventions"] = "CF-1.7"
        if "GRIB_centreDescription" in found:
            found["institution"] = found["GRIB_centreDescription"]
        now = datetime.datetime.now().isoformat(timespec="minutes")
        found["history"] = f"{now} GRIB to CF via squall-{_squall.version()} with {self.settings.text}"
        return found

    def groups(self):
        """Of a tree: name → (name of the variable, cube) of each."""
        return {name: [(cube.name, cube) for cube in cubes] for name, cubes in _together(self.cubes).items()}

    def whole(self):
        return [(cube.array, cube) for cube in self.cubes]

    def variables(self, named):
        """(name, dims, Coordinate or array's name, attributes) of what a dataset of these cubes holds."""
        known, users = _merged([cube for _, cube in named])
        for name, coordinate in known.items():
            yield name, coordinate.dims, coordinate.data, coordinate.attrs
        for (name, _), (cube, names) in zip(named, users, strict=True):
            attrs = cube.attrs | {"coordinates": " ".join(names.values())}
            yield name, tuple(names.get(d, d) for d in cube.dims), cube.array, attrs
