"""Grids against independent readers: ecCodes for shapes, keys and the latitudes and longitudes of points, pyproj for projections.

Every file of ../shared/data/grib, and messages that ecCodes writes here, with each scanning mode, earth and corner case."""

import json
import subprocess

import eccodes
import numpy as np
import pytest
from oracle import handles
from projecting import Projector

# The keys that cfgrib turns into attributes, by type of grid.
SCAN = "iScansNegatively jScansPositively jPointsAreConsecutive"
FIRST, LAST = (f"latitudeOf{end}GridPointInDegrees longitudeOf{end}GridPointInDegrees" for end in ("First", "Last"))
STEPS = "iDirectionIncrementInDegrees jDirectionIncrementInDegrees"
POLE = "latitudeOfSouthernPoleInDegrees longitudeOfSouthernPoleInDegrees"
KEYS = {
    "regular_ll": f"Nx Ny {STEPS} {SCAN} {FIRST} {LAST}",
    "rotated_ll": f"Nx Ny {STEPS} {SCAN} {FIRST} {LAST} {POLE} angleOfRotationInDegrees",
    "regular_gg": f"N Ni Nj iDirectionIncrementInDegrees {SCAN} {FIRST} {LAST}",
    "lambert": f"Nx Ny DxInMetres DyInMetres {SCAN} {FIRST} LaDInDegrees LoVInDegrees Latin1InDegrees Latin2InDegrees {POLE}",
    "reduced_ll": "Ny jDirectionIncrementInDegrees jScansPositively jPointsAreConsecutive latitudeOfFirstGridPointInDegrees",
    "reduced_gg": "N",
}
PROJECTED = ("mercator", "polar_stereographic", "lambert")
RECTANGULAR = ("regular_ll", "regular_gg", "rotated_ll", *PROJECTED)


@pytest.fixture(scope="session")
def project():
    projector = Projector()
    yield projector
    projector.close()


@pytest.fixture(scope="session")
def grids_of(support):
    def call(*paths):
        done = subprocess.run([support / "grib_grids", *map(str, paths)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return call


def key(handle, name, kind=None):
    try:
        return eccodes.codes_get(handle, name, kind) if not eccodes.codes_is_missing(handle, name) else None
    except eccodes.CodesInternalError:
        return None


def file_order(values, grid, handle):
    """ecCodes' array, in the file's order, as rows × columns with i ascending: what decode makes of a field."""
    rows, columns = grid["rows"], grid["columns"]
    if key(handle, "jPointsAreConsecutive"):
        values = values.reshape(columns, rows).T
    else:
        values = values.reshape(rows, columns)
    return values[:, ::-1] if key(handle, "iScansNegatively") else values


def gaussian_latitudes(n):
    return [float(v) for v in np.array(list(eccodes.codes_get_gaussian_latitudes(n)))]


def points(handle):
    return eccodes.codes_get_array(handle, "latitudes"), eccodes.codes_get_array(handle, "longitudes")


def degrees_apart(a, b):
    return np.abs((a - b + 180) % 360 - 180)


def check_axes(grid):
    y, x = grid["axes"]
    assert (y["length"], x["length"]) == (grid["rows"], grid["columns"])
    assert y["attributes"]["axis"] == "Y" and x["attributes"]["axis"] == "X"
    for axis in (y, x):
        assert len(axis["values"]) == axis["length"]
        steps = np.diff(axis["values"])
        assert (steps > 0).all() or (steps < 0).all()
    assert (np.diff(x["values"]) > 0).all()
    if grid["rows"] > 1:
        assert grid["northward"] == bool(y["values"][1] > y["values"][0])


def contradiction(handle, along):
    """By how many degrees the header's increments miss its last corner: ecCodes follows the increments, we the corners."""
    angle, count = ("longitude", "Ni") if along == "i" else ("latitude", "Nj")
    first, last = (key(handle, f"{angle}Of{end}GridPointInDegrees") for end in ("First", "Last"))
    step, count = key(handle, f"{along}DirectionIncrementInDegrees"), key(handle, count)
    if step is None:
        return 0
    span = abs(last - first) if along == "j" else abs(last - first) % 360
    return min(abs(span - step * (count - 1)), abs(360 - span - step * (count - 1)))


def some(count):
    """Up to 50 indices, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, 50).astype(int))


def corresponding(grid, handle):
    """Latitudes and longitudes of some rows and columns by ecCodes, and our y (as a column) and x for them."""
    rows, columns = some(grid["rows"]), some(grid["columns"])
    latitudes, longitudes = (file_order(a, grid, handle)[np.ix_(rows, columns)] for a in points(handle))
    y, x = (np.array(axis["values"]) for axis in grid["axes"])
    return latitudes, longitudes, y[rows][:, None], x[columns]


def check_geographic(grid, handle, precision):
    latitudes, longitudes, y, x = corresponding(grid, handle)
    j_tolerance = 0 if grid["type"] == "regular_gg" else precision + contradiction(handle, "j")
    assert np.abs(latitudes - y).max() <= j_tolerance
    assert degrees_apart(longitudes, x).max() <= precision + contradiction(handle, "i")
    assert grid["axes"][0]["name"] == "latitude" and grid["axes"][1]["name"] == "longitude"


def check_projected(grid, handle, project, tolerance):
    """Projecting ecCodes' points by our grid mapping gives our coordinates."""
    latitudes, longitudes, y, x = corresponding(grid, handle)
    there_x, there_y = project(grid["grid_mapping"], longitudes, latitudes)
    if grid["type"] == "rotated_ll":
        there_x = x + (there_x - x + 180) % 360 - 180
    assert np.abs(there_x - x).max() <= tolerance
    assert np.abs(there_y - y).max() <= tolerance


def check_reduced(grid, handle):
    latitudes, longitudes = points(handle)
    assert grid["axes"] == [{"name": "values", "length": grid["points"]}]
    assert np.abs(latitudes - grid["latitudes"]).max() <= 1e-9
    assert degrees_apart(longitudes, np.array(grid["longitudes"])).max() <= 1e-9


def check_attributes(grid, handle):
    attributes = grid["attributes"]
    assert attributes["GRIB_gridType"] == key(handle, "gridType")
    assert attributes["GRIB_numberOfPoints"] == key(handle, "numberOfPoints")
    uv = key(handle, "uvRelativeToGrid")  # which ecCodes has no name for in some templates that have the flag
    assert attributes.get("GRIB_uvRelativeToGrid", uv) == uv or uv is None
    for name in KEYS.get(grid["type"], "").split():
        expected = key(handle, name)
        if expected is None:
            continue
        assert attributes["GRIB_" + name] == pytest.approx(expected, abs=1e-9), name
    if grid["type"] == "reduced_gg":
        assert attributes["GRIB_pl"] == list(eccodes.codes_get_array(handle, "pl"))


def check_grid(grid, handle, project):
    edition = key(handle, "edition")
    assert "error" not in grid
    assert grid["type"] == key(handle, "gridType")
    assert grid["points"] == key(handle, "numberOfPoints")
    check_attributes(grid, handle)
    if grid["type"].startswith("reduced"):
        check_reduced(grid, handle)
    elif grid["type"] in RECTANGULAR:
        assert (grid["columns"], grid["rows"]) == (key(handle, "Ni"), key(handle, "Nj"))
        check_axes(grid)
        if grid["type"] in PROJECTED:
            check_projected(grid, handle, project, 1)
        elif grid["type"] == "rotated_ll":  # degrees; ecCodes rounds the true latitudes and longitudes
            precision = (1e-3 if edition == 1 else 1e-5) + contradiction(handle, "i") + contradiction(handle, "j")
            check_projected(grid, handle, project, precision)
        else:
            check_geographic(grid, handle, 1.1e-3 if edition == 1 else 2.1e-6)


# ecCodes is no judge of these: it follows a header whose increment is wrong, and mirrors every second row of a boustrophedon.
NOT_ECCODES = {"regular_ll_wrong_increment.grib", "regular_gg_wrong_increment.grib", "ds.waveh.5.grib"}


def real_files():
    from conftest import SHARED

    return sorted(p.name for p in (SHARED / "data" / "grib").glob("*") if p.suffix != ".idx") if SHARED.is_dir() else ["(none)"]


def write(path, sample, keys):
    """One message, made of ecCodes' sample and these keys; None is missing, a list an array."""
    handle = eccodes.codes_grib_new_from_samples(sample)
    for name, value in keys.items():
        if value is None:
            eccodes.codes_set_missing(handle, name)
        elif isinstance(value, list):
            eccodes.codes_set_array(handle, name, value)
        else:
            eccodes.codes_set(handle, name, value)
    if sample == "GRIB2" and "Nx" in keys:
        eccodes.codes_set(handle, "numberOfDataPoints", keys["Nx"] * keys["Ny"])
    eccodes.codes_set_values(handle, np.arange(key(handle, "numberOfDataPoints")) % 7.0)
    with open(path, "wb") as f:
        eccodes.codes_write(handle, f)
    eccodes.codes_release(handle)
    return path


@pytest.fixture
def check_written(tmp_path, grids_of, project):
    """Write a message with ecCodes, and compare our reading of its grid with ecCodes' own."""

    def call(sample, keys):
        path = write(tmp_path / "written.grib", sample, keys)
        (grid,) = grids_of(path)
        checked = 0
        for handle in handles(path):
            check_grid(grid, handle, project)
            checked += 1
        assert checked == 1
        return grid

    return call


SCANNING = [{"iScansNegatively": i, "jScansPositively": j, "jPointsAreConsecutive": c} for i in (0, 1) for j in (0, 1) for c in (0, 1)]
SCANNING_IDS = ["".join(str(v) for v in s.values()) for s in SCANNING]


def area(scanning, south=40, north=50, west=350, east=380):
    """31 × 21 points whose corners follow the scanning mode."""
    first, last = (south, north) if scanning["jScansPositively"] else (north, south)
    left, right = (east, west) if scanning["iScansNegatively"] else (west, east)
    return {
        "Nx": 31,
        "Ny": 21,
        "latitudeOfFirstGridPointInDegrees": first,
        "longitudeOfFirstGridPointInDegrees": left % 360,
        "latitudeOfLastGridPointInDegrees": last,
        "longitudeOfLastGridPointInDegrees": right % 360,
        "iDirectionIncrementInDegrees": 1,
        "jDirectionIncrementInDegrees": 0.5,
        **scanning,
    }


@pytest.mark.parametrize("sample", ["GRIB1", "GRIB2"])
@pytest.mark.parametrize("scanning", SCANNING, ids=SCANNING_IDS)
def test_latitudes_and_longitudes_in_every_scanning_mode(sample, scanning, check_written):
    grid = check_written(sample, area(scanning))
    assert grid["axes"][1]["values"] == [float(v) for v in range(-10, 21)]
    assert sorted(grid["axes"][0]["values"]) == [40 + v / 2 for v in range(21)]
    assert grid["northward"] == bool(scanning["jScansPositively"])


@pytest.mark.parametrize("sample", ["GRIB1", "GRIB2"])
@pytest.mark.parametrize("scanning", SCANNING, ids=SCANNING_IDS)
def test_a_rotated_pole_in_every_scanning_mode(sample, scanning, check_written):
    pole = {"latitudeOfSouthernPoleInDegrees": -39.25, "longitudeOfSouthernPoleInDegrees": 18, "angleOfRotationInDegrees": 0}
    grid = check_written(sample, {"gridType": "rotated_ll", **area(scanning), **pole})
    assert [axis["name"] for axis in grid["axes"]] == ["y", "x"]


EARTHS = {
    "sphere": {"shapeOfTheEarth": 6},
    "radius": {"shapeOfTheEarth": 1, "scaleFactorOfRadiusOfSphericalEarth": 1, "scaledValueOfRadiusOfSphericalEarth": 63712290},
    "IAU": {"shapeOfTheEarth": 2},
    "GRS80": {"shapeOfTheEarth": 4},
    "WGS84": {"shapeOfTheEarth": 5},
    "Airy": {"shapeOfTheEarth": 9},
    "kilometres": {
        "shapeOfTheEarth": 3,
        "scaleFactorOfEarthMajorAxis": 3,
        "scaledValueOfEarthMajorAxis": 6378137,
        "scaleFactorOfEarthMinorAxis": 3,
        "scaledValueOfEarthMinorAxis": 6356752,
    },
    "metres": {
        "shapeOfTheEarth": 7,
        "scaleFactorOfEarthMajorAxis": 2,
        "scaledValueOfEarthMajorAxis": 637739716,
        "scaleFactorOfEarthMinorAxis": 2,
        "scaledValueOfEarthMinorAxis": 635607896,
    },
}
PLANE = {"Nx": 37, "Ny": 29, "DxInMetres": 40000, "DyInMetres": 30000}


def first_point(latitude, longitude):
    return {"latitudeOfFirstGridPointInDegrees": latitude, "longitudeOfFirstGridPointInDegrees": longitude}


def conic(latitude, longitude, origin, meridian, first, second):
    return {
        "gridType": "lambert",
        **PLANE,
        **first_point(latitude, longitude),
        "LaDInDegrees": origin,
        "LoVInDegrees": meridian,
        "Latin1InDegrees": first,
        "Latin2InDegrees": second,
        "projectionCentreFlag": 128 if first < 0 else 0,
    }


def stereographic(latitude, longitude, truth, meridian):
    return {
        "gridType": "polar_stereographic",
        **PLANE,
        **first_point(latitude, longitude),
        "LaDInDegrees": truth,
        "orientationOfTheGridInDegrees": meridian,
        "projectionCentreFlag": 128 if truth < 0 else 0,
    }


PLANES = {
    "lambert": conic(30, 240, 25, 265, 25, 45),
    "lambert with one parallel": conic(20, 240, 25, 265, 25, 25),
    "lambert in the south": conic(-40, 10, -35, 25, -35, -45),
    "lambert across the date line": conic(30, 170, 40, 180, 30, 60),
    "polar stereographic": stereographic(30, 240, 60, 265),
    "polar stereographic, true at the pole": stereographic(30, 240, 90, 265),
    "polar stereographic in the south": stereographic(-60, 240, -71, 0),
    "mercator": {"gridType": "mercator", **PLANE, **first_point(-10, 30), "LaDInDegrees": 20},
    "mercator across the date line": {"gridType": "mercator", **PLANE, **first_point(-10, 175), "LaDInDegrees": 20},
}


NORTHWARD = {"iScansNegatively": 0, "jScansPositively": 1, "jPointsAreConsecutive": 0}


@pytest.mark.parametrize("earth", EARTHS)
@pytest.mark.parametrize("plane", PLANES)
def test_a_projection_on_every_earth(plane, earth, check_written, grids_of, project, tmp_path):
    keys = {**PLANES[plane], **NORTHWARD, **EARTHS[earth]}
    if plane.startswith("polar") and earth not in ("sphere", "radius"):  # which ecCodes does not know: PROJ alone judges the first point
        (grid,) = grids_of(write(tmp_path / "ellipsoid.grib", "GRIB2", keys))
        longitude, latitude = keys["longitudeOfFirstGridPointInDegrees"], keys["latitudeOfFirstGridPointInDegrees"]
        x, y = project(grid["grid_mapping"], longitude, latitude)
        assert (grid["axes"][1]["values"][0], grid["axes"][0]["values"][0]) == pytest.approx((x, y), abs=0.01)
        assert set(np.diff(grid["axes"][1]["values"]).round(3)) == {40000}
    else:
        check_written("GRIB2", keys)


@pytest.mark.parametrize("plane", [name for name in PLANES if name != "polar stereographic, true at the pole"])
def test_a_projection_of_edition_1(plane, check_written, project, grids_of, tmp_path):
    keys = {name: value for name, value in PLANES[plane].items() if name != "LaDInDegrees" or plane.startswith("mercator")}
    if plane == "polar stereographic in the south":  # where ecCodes takes the true scale at 60 degrees north
        (grid,) = grids_of(write(tmp_path / "south.grib", "GRIB1", {**keys, **NORTHWARD}))
        assert grid["grid_mapping"]["standard_parallel"] == -60
        x, y = project(grid["grid_mapping"], 240, -60)
        assert (grid["axes"][1]["values"][0], grid["axes"][0]["values"][0]) == pytest.approx((x, y), abs=0.01)
    else:
        check_written("GRIB1", {**keys, **NORTHWARD})


@pytest.mark.parametrize("scanning", SCANNING, ids=SCANNING_IDS)
@pytest.mark.parametrize("plane", PLANES)
def test_a_projected_grid_is_the_same_in_every_scanning_mode(plane, scanning, tmp_path, grids_of):
    """ecCodes does not heed the scanning mode here, so the grid is written from each of its corners, which it does know."""
    path = write(tmp_path / "reference.grib", "GRIB2", {**PLANES[plane], **NORTHWARD})
    (reference,) = grids_of(path)
    for handle in handles(path):
        latitudes, longitudes = (a.reshape(29, 37) for a in points(handle))
    corner = (0 if scanning["jScansPositively"] else -1, -1 if scanning["iScansNegatively"] else 0)
    moved = {**PLANES[plane], **first_point(latitudes[corner], longitudes[corner]), **scanning}
    (grid,) = grids_of(write(tmp_path / "moved.grib", "GRIB2", moved))
    (y, x), (there_y, there_x) = ([axis["values"] for axis in g["axes"]] for g in (grid, reference))
    assert np.allclose(y if scanning["jScansPositively"] else y[::-1], there_y, rtol=0, atol=0.5)
    assert np.allclose(x, there_x, rtol=0, atol=0.5)
    assert grid["grid_mapping"] == reference["grid_mapping"]


@pytest.mark.parametrize("angle", [0, 10, -25.5])
def test_the_angle_of_rotation_turns_about_the_rotated_axis(angle, tmp_path, grids_of, project):
    """Judged by PROJ: ecCodes turns about the true axis instead."""
    pole = {"latitudeOfSouthernPoleInDegrees": -39.25, "longitudeOfSouthernPoleInDegrees": 18, "angleOfRotationInDegrees": angle}
    (grid,) = grids_of(write(tmp_path / "rotated.grib", "GRIB2", {"gridType": "rotated_ll", **area(NORTHWARD), **pole}))
    longitudes, latitudes = np.array([30.0, -100, 0]), np.array([55.0, 10, -80])
    ours = project(grid["grid_mapping"], longitudes, latitudes)
    assert np.allclose(ours, project.rotate(-39.25, 18, angle, 6371229, longitudes, latitudes), rtol=0, atol=1e-9)


def test_the_ukv_is_on_the_british_national_grid(shared, grids_of, project):
    (grid,) = grids_of(shared / "data" / "grib" / "ukv_transverse_mercator_header.grib")
    y, x = (axis["values"] for axis in grid["axes"])
    assert x == [float(v) for v in range(-238000, 856001, 2000)]
    assert y == [float(v) for v in range(1222000, -184001, -2000)]  # although the header says that rows go north
    assert not grid["northward"]
    mapping = grid["grid_mapping"]
    assert project.epsg(mapping) == 27700
    # by its attributes alone too: the caster at Greenwich, from the Ordnance Survey's own worked example on Airy 1830
    bare = {k: v for k, v in mapping.items() if k != "crs_wkt"}
    there = project(bare, 1 + 43 / 60 + 4.5177 / 3600, 52 + 39 / 60 + 27.2531 / 3600)
    assert there == pytest.approx((651409.903, 313177.270), abs=0.01)


def test_gaussian_latitudes_are_those_of_eccodes_to_the_last_bit(tmp_path, grids_of):
    numbers = [*range(1, 201), 256, 320, 400, 480, 512, 640, 1024, 1280]
    expected = {n: gaussian_latitudes(n) for n in numbers}
    path = tmp_path / "gaussian.grib"
    with open(path, "wb") as file:
        for n, latitudes in expected.items():
            gaussian = {
                "gridType": "regular_gg",
                "N": n,
                "Nx": 2,
                "Ny": 2 * n,
                "latitudeOfFirstGridPointInDegrees": latitudes[0],
                "latitudeOfLastGridPointInDegrees": latitudes[-1],
                "longitudeOfFirstGridPointInDegrees": 0,
                "longitudeOfLastGridPointInDegrees": 180,
                "iDirectionIncrementInDegrees": 180,
            }
            file.write(write(tmp_path / "one.grib", "GRIB2", gaussian).read_bytes())
    found = {len(grid["axes"][0]["values"]) // 2: grid["axes"][0]["values"] for grid in grids_of(path)}
    assert found.keys() == expected.keys()
    assert [n for n in numbers if found[n] != expected[n]] == []


@pytest.mark.parametrize("northward", [False, True])
@pytest.mark.parametrize("begin, count", [(0, 20), (30, 40), (63, 2), (100, 28), (64, 1)])
def test_a_part_of_a_gaussian_grid(begin, count, northward, check_written):
    latitudes = gaussian_latitudes(64)[begin : begin + count]
    if northward:
        latitudes = latitudes[::-1]
    grid = check_written(
        "GRIB2",
        {
            "gridType": "regular_gg",
            "N": 64,
            "Nx": 11,
            "Ny": count,
            "latitudeOfFirstGridPointInDegrees": latitudes[0],
            "latitudeOfLastGridPointInDegrees": latitudes[-1],
            "longitudeOfFirstGridPointInDegrees": 350.15625,
            "longitudeOfLastGridPointInDegrees": 4.21875,
            "iDirectionIncrementInDegrees": 1.40625,
            "jScansPositively": int(northward),
        },
    )
    assert np.allclose(grid["axes"][0]["values"], latitudes, rtol=0, atol=1e-10)
    assert grid["axes"][1]["values"][0] == -9.84375


def octahedral(n):
    north = [20 + 4 * i for i in range(n)]
    return north + north[::-1]


def reduced(n, lengths, latitudes, west, east):
    return {
        "gridType": "reduced_gg",
        "N": n,
        "Nj": len(lengths),
        "latitudeOfFirstGridPointInDegrees": latitudes[0],
        "latitudeOfLastGridPointInDegrees": latitudes[-1],
        "longitudeOfFirstGridPointInDegrees": west,
        "longitudeOfLastGridPointInDegrees": east,
        "pl": lengths,
    }


@pytest.mark.parametrize("n", [16, 32, 64])
def test_an_octahedral_grid(n, check_written):
    latitudes, lengths = gaussian_latitudes(n), octahedral(n)
    keys = reduced(n, lengths, latitudes, 0, 360 - 360 / max(lengths))
    check_written("GRIB2", {**keys, "numberOfDataPoints": sum(lengths)})


def points_between(lengths, west, east):
    """How many points of each row's circle lie between two longitudes."""
    return [len([k for k in range(-2 * n, 2 * n) if west - 1e-6 <= 360 * k / n <= east + 1e-6]) for n in lengths]


@pytest.mark.parametrize("west, east", [(10, 40), (-30, 25), (0, 90), (179, 181)])
def test_a_part_of_an_octahedral_grid(west, east, check_written):
    latitudes, lengths = gaussian_latitudes(32)[10:30], octahedral(32)[10:30]
    keys = reduced(32, lengths, latitudes, west % 360, east)
    check_written("GRIB2", {**keys, "numberOfDataPoints": sum(points_between(lengths, west, east))})


@pytest.mark.parametrize("west, east", [(10, 40), (0, 90), (0, 358.125)])
def test_a_part_of_an_octahedral_grid_of_edition_1(west, east, check_written):
    latitudes, lengths = gaussian_latitudes(32)[10:30], octahedral(32)[10:30]
    check_written("GRIB1", reduced(32, lengths, latitudes, west, east))


@pytest.mark.parametrize("west, east, count", [(0, 359, 360), (0, 360, 361), (180, 179, 360), (350, 10, 21), (-180, 179, 360), (359, 1, 3)])
@pytest.mark.parametrize("sample", ["GRIB1", "GRIB2"])
def test_longitudes_across_the_meridian_ascend(sample, west, east, count, check_written):
    keys = {**area(NORTHWARD), "Nx": count, "longitudeOfFirstGridPointInDegrees": west, "longitudeOfLastGridPointInDegrees": east}
    values = check_written(sample, keys)["axes"][1]["values"]
    assert values == list(np.arange(count) + values[0])
    assert -180 <= values[0] and values[-1] <= 360


def test_thirds_of_a_degree_do_not_drift(check_written):
    """359.667 and 0.333, as edition 1 rounds them: the circle is divided, not 0.333 added up."""
    keys = {**area(NORTHWARD), "Nx": 1080, "longitudeOfFirstGridPointInDegrees": 0, "longitudeOfLastGridPointInDegrees": 359.667}
    values = check_written("GRIB1", {**keys, "iDirectionIncrementInDegrees": 0.333})["axes"][1]["values"]
    assert values == [k / 3 for k in range(1080)]


@pytest.mark.parametrize("name", real_files())
def test_grids_of_a_real_file_are_those_of_eccodes(name, shared, grids_of, project):
    path = shared / "data" / "grib" / name
    grids = {g["field"]: g for g in grids_of(path)}
    checked, seen = 0, []
    for n, handle in enumerate(handles(path)):
        if n in grids and name not in NOT_ECCODES:
            same = [key(handle, "edition"), key(handle, "md5GridSection"), key(handle, "numberOfPoints"), {**grids[n], "field": 0}]
            if same not in seen:  # most fields of a file have one grid
                check_grid(grids[n], handle, project)
                seen.append(same)
            checked += 1
    assert name in NOT_ECCODES or checked == len(grids) or name == "era5-levels-corrupted.grib"
