"""Cubes of real files: every field placed or listed, each at the place that ecCodes' keys say, and how building them grows."""

import collections
import datetime
import itertools
import json
import subprocess
import sys

import eccodes as ec
import numpy as np
import pytest
import xarray as xr
from oracle import handles

# its times have seconds, which ecCodes leaves out
SECONDS = "MRMS_MergedReflectivityQCComposite_00.50_20220704-110040.grib2"
# its interval ends before it begins (36 h, then 2³² − 36 h): squall takes the begin, ecCodes the end that the header names
IMPOSSIBLE_INTERVAL = "iris_file.grib2"


@pytest.fixture(scope="session")
def cube_of(support):
    def call(*args, check=True):
        done = subprocess.run([str(support / "cube_dump"), *map(str, args)], capture_output=True, text=True)
        assert not check or done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr

    return call


def minutes(date, time):
    then = datetime.datetime(date // 10000, date // 100 % 100, date % 100, time // 100, time % 100)
    return int((then - datetime.datetime(1970, 1, 1)).total_seconds()) // 60


def keys_of(handle):
    def get(key, kind):
        try:
            return ec.codes_get(handle, key, kind)
        except ec.CodesInternalError:
            return None

    keys = {key: get(key, str) for key in ("shortName", "typeOfLevel")}
    keys |= {key: get(key, int) for key in ("dataDate", "dataTime", "validityDate", "validityTime", "number")}
    level = get("level", float)
    if get("edition", int) == 2 and keys["typeOfLevel"] == "isobaricInhPa":  # ecCodes' level is a whole number
        level = get("scaledValueOfFirstFixedSurface", int) / 10 ** get("scaleFactorOfFirstFixedSurface", int) / 100
    return keys | {"level": level}


def messages(path):
    """(offset, number in the message) → keys, for every field that ecCodes reads."""
    found, seen = {}, collections.Counter()
    for handle in handles(path):
        offset = ec.codes_get(handle, "offset", int)
        found[offset, seen[offset]] = keys_of(handle)
        seen[offset] += 1
    return found


@pytest.fixture(scope="module")
def real_files(shared, cube_of):
    """[(name, cube, ecCodes' keys)]; the cube is a text where none could be made."""
    paths = sorted(p for p in (shared / "data" / "grib").iterdir() if p.suffix != ".idx")
    return [(p.name, cube_of("--places", p, check=False), messages(p)) for p in paths]


def located(cube, place):
    """A place's variable, and what the coordinates say of it."""
    variable = next(v for v in cube["variables"] if v["name"] == place["variable"])
    coordinates = {c["name"]: c["values"] for c in cube["coordinates"]}
    horizontal = 1 if variable["dims"][-1].startswith("values") else 2
    slab, at = place["slab"], {"init_time": coordinates["init_time"][place["init"]]}
    for dim, length in reversed(list(zip(variable["dims"], variable["shape"], strict=True))[1:-horizontal]):
        at[dim] = coordinates[dim][slab % length]
        slab //= length
    assert slab == 0
    return variable, at


def test_every_field_of_every_file_is_placed_or_listed(real_files):
    refused = []
    for name, cube, fields in real_files:
        if isinstance(cube, str):
            assert "is not read yet" in cube, (name, cube)
            refused.append(name)
            continue
        placed = sum(v["fields"] for v in cube["variables"])
        assert placed == cube["place_count"] == len(cube["places"]), name
        assert placed + len(cube["ignored"]) == cube["field_count"] == len(fields), name
        assert len({(p["variable"], p["init"], p["slab"]) for p in cube["places"]}) == placed, name
    assert len(refused) < 6, refused


def test_every_place_is_where_eccodes_keys_say(real_files):
    checked = 0
    for name, cube, fields in real_files:
        if isinstance(cube, str):
            continue
        for place in cube["places"]:
            variable, at = located(cube, place)
            keys, attributes = fields[place["offset"], place["in_message"]], variable["attributes"]
            where = (name, place, keys)
            if name != SECONDS:
                assert at["init_time"] == 60 * minutes(keys["dataDate"], keys["dataTime"]), where
            if name not in (SECONDS, IMPOSSIBLE_INTERVAL):
                assert at["init_time"] + at["step"] == 60 * minutes(keys["validityDate"], keys["validityTime"]), where
            assert keys["shortName"] in (attributes["GRIB_shortName"], "unknown"), where
            assert keys["typeOfLevel"] in (attributes["GRIB_typeOfLevel"], "unknown"), where
            level_dim = next((d for d in at if d.startswith(keys["typeOfLevel"])), None)
            level = at[level_dim] if level_dim else attributes.get(keys["typeOfLevel"])
            if keys["typeOfLevel"] in ("isobaricInhPa", "heightAboveGround", "hybrid", "isobaricInPa"):
                assert level == pytest.approx(keys["level"]), where
            assert at.get("number", keys["number"]) == keys["number"], where
            checked += 1
    assert checked > 1500


@pytest.fixture(scope="session")
def case(shared, tmp_path_factory):
    def make(name):
        folder = tmp_path_factory.mktemp(name)
        subprocess.run([sys.executable, str(shared / "cases" / f"{name}.py"), str(folder)], check=True)
        return next(folder.iterdir())

    return make


def names(cube):
    return [v["name"] for v in cube["variables"]]


def coordinate(cube, name):
    return next(c["values"] for c in cube["coordinates"] if c["name"] == name)


def test_an_instant_and_two_means_of_one_parameter_are_three_variables(case, cube_of):
    cube = cube_of(case("gfs_tcc_instant_and_mean"))
    assert names(cube) == ["tcc", "tcc_avg", "tcc_avg_boundaryLayerCloudLayer"]
    assert cube["place_count"] == 3 and not cube["warnings"]


def test_layers_with_one_top_are_all_kept_with_both_surfaces(case, cube_of):
    cube = cube_of(case("layers_same_top"))
    assert cube["place_count"] == 4
    assert coordinate(cube, "sigmaLayer_bounds") == [0.44, 0.72, 0.44, 1.0]
    assert coordinate(cube, "depthBelowLandLayer_bounds") == [0.0, 0.1, 0.1, 0.4]


def test_four_hundred_variables_are_kept_under_names_of_their_own(case, cube_of):
    cube = cube_of(case("many_hypercubes"))
    assert cube["place_count"] == 400 and len(set(names(cube))) == 400


def test_both_fields_of_a_message_are_kept(case, cube_of):
    cube = cube_of(case("multi_field"))
    assert names(cube) == ["u", "v"]
    assert coordinate(cube, "isobaricInhPa") == [500.0, 850.0]


def test_holes_are_counted_and_named(case, cube_of):
    cube = cube_of(case("sparse_time_step"))
    assert cube["place_count"] == 72 and cube["holes"] == 12
    assert cube["notes"] == ["ssrd: no field for 12 of 84 places: 1979-12-31T18:00 at 1 h to 5 h; 1980-01-03T18:00 at 6 h to 12 h"]


def test_steps_in_mixed_units_are_one_axis(case, cube_of):
    cube = cube_of(case("subhourly_mixed_units"))
    assert coordinate(cube, "step") == [900 * i for i in range(9)]


def test_every_trap_of_a_ukv_archive_has_its_expected_outcome(ukv_traps, cube_of):
    traps = json.loads((ukv_traps.parent / "archive.traps.json").read_text())
    cube = cube_of("--places", *sorted(ukv_traps.iterdir()))
    reasons = collections.Counter(i["reason"] for i in cube["ignored"])
    assert reasons == {"identical duplicate": 1, "conflicting duplicate": 1, "off cadence": reasons["off cadence"]}
    assert reasons["off cadence"] > 10
    assert [w for w in cube["warnings"] if traps["off cadence"][:16] in w and "off the cadence of 6 h" in w]
    conflict = [w for w in cube["warnings"] if "there twice with other values" in w]
    assert len(conflict) == 1 and traps["conflicting duplicate"][0] in conflict[0] and "+ 1 h" in conflict[0]
    assert len(cube["warnings"]) == 2
    assert "vis" in names(cube) and "vis_probability" in names(cube)
    assert coordinate(cube, "heightAboveGround") == [0.0, 1.0]
    times = coordinate(cube, "init_time")
    assert len(times) == 6 and {b - a for a, b in itertools.pairwise(times)} == {21600}
    assert len(coordinate(cube, "step")) == 2


def maximum_of(hours, until):
    """GFS's 2 m maximum of the last hours, up to this step: of six hours ecCodes' cfVarName is mx2t6, else mx2t, and one paramId."""
    handle = ec.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    keys = {"centre": 7, "productDefinitionTemplateNumber": 8, "parameterCategory": 0, "parameterNumber": 0}
    keys |= {"typeOfFirstFixedSurface": 103, "scaleFactorOfFirstFixedSurface": 0, "scaledValueOfFirstFixedSurface": 2}
    keys |= {"typeOfStatisticalProcessing": 2, "indicatorOfUnitForTimeRange": 1, "forecastTime": until - hours, "lengthOfTimeRange": hours}
    for key, value in keys.items():
        ec.codes_set(handle, key, value)
    ec.codes_set_values(handle, np.arange(ec.codes_get(handle, "numberOfValues")) + until)
    name, message = ec.codes_get(handle, "cfVarName"), ec.codes_get_message(handle)
    ec.codes_release(handle)
    return name, message


@pytest.mark.parametrize("ends, name", [({3: 3, 6: 6}, "mx2t"), ({3: 3, 6: 6, 9: 3, 12: 6, 18: 6}, "mx2t6"), ({1: 1, 2: 2, 6: 6}, "mx2t")])
def test_names_and_values_do_not_depend_on_which_file_comes_first(squall, tmp_path, ends, name):
    made = [maximum_of(hours, until) for until, hours in ends.items()]
    assert {other for other, _ in made} == {"mx2t", "mx2t6"}
    first = None
    for number, order in enumerate(itertools.islice(itertools.permutations(made), 24)):
        source, store = tmp_path / f"source{number}", tmp_path / f"{number}.zarr"
        source.mkdir()
        for place, (_, message) in enumerate(order):
            (source / f"{place}.grib2").write_bytes(message)
        squall("convert", source, store)
        dataset = xr.open_zarr(store).load()
        assert set(dataset.data_vars) == {name, "chunk_exists", "field_count"} and dataset[name].attrs["GRIB_cfVarName"] == name
        np.testing.assert_array_equal(dataset[name].values[0, :, 0, 0], sorted(ends))
        first = dataset if first is None else first
        xr.testing.assert_identical(dataset, first)


def test_time_grows_linearly_and_memory_stays_below_200_bytes_a_field(support):
    done = subprocess.run([str(support / "cube_growth"), "1000", "10000", "100000", "1000000"], capture_output=True, text=True, check=True)
    rows = [[float(x) for x in line.split()] for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == [1e3, 1e4, 1e5, 1e6]
    assert rows[3][3] / rows[3][0] <= 200
    assert rows[3][1] / rows[2][1] < 30  # ten times the fields; the machine may be busy with other things
