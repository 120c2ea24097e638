"""The archives that the demo and the tests make themselves, read by ecCodes: what they say, and that all packings hold the same values."""

import json
import subprocess

import eccodes as ec
import numpy as np
import pytest


def messages(path):
    """Offset and handle of each message that ecCodes finds."""
    with open(path, "rb") as f:
        while (handle := ec.codes_grib_new_from_file(f)) is not None:
            yield handle
            ec.codes_release(handle)


def values(handle):
    ec.codes_set(handle, "missingValue", 1e20)
    found = ec.codes_get_values(handle)
    return np.where(found == 1e20, np.nan, found)


def make(support, folder, *options):
    subprocess.run([support / "make_archive", folder, *options], check=True)
    return sorted(folder.glob("*.grib"))


SMALL = "--inits 1 --steps 2 --ny 50 --nx 40".split()


@pytest.fixture(scope="module")
def simple(support, tmp_path_factory):
    files = make(support, tmp_path_factory.mktemp("simple") / "archive", *SMALL)
    return [values(h) for path in files for h in messages(path)]


def test_the_grid_is_the_real_models(support, tmp_path):
    files = make(support, tmp_path / "archive", "--inits", "1", "--steps", "1", "--vars", "1")
    (handle,) = (h for h in map(ec.codes_clone, messages(files[0])))
    expected = {
        "centre": "egrr",
        "gridType": "transverse_mercator",
        "Ni": 548,
        "Nj": 704,
        "latitudeOfReferencePoint": 49,
        "longitudeOfReferencePoint": -2,
        "scaleFactorAtReferencePoint": 0.0,
        "XR": 40000000,
        "YR": -10000000,
        "X1": -23800000,
        "Y1": 122200000,
        "X2": 85600000,
        "Y2": -18400000,
        "Di": 200000,
        "scanningMode": 64,
        "earthMajorAxisInMetres": pytest.approx(6377563.4),
        "shortName": "t",
        "typeOfFirstFixedSurface": "sfc",
        "level": 1,
        "dataDate": 20220101,
        "dataTime": 0,
        "stepRange": "0m",
        "packingType": "grid_simple",
        "isMessageValid": 1,
    }
    assert {key: ec.codes_get(handle, key) for key in expected} == expected
    ec.codes_release(handle)


def test_fields_are_smooth_move_and_keep_their_bounds(simple):
    assert len(simple) == 17 * 2
    temperature, an_hour_later = simple[0], simple[1]
    assert 270 < temperature.mean() < 296 and 1 < temperature.std() < 16
    change = np.abs(an_hour_later - temperature)
    assert 0 < change.mean() < temperature.std()
    assert np.abs(np.diff(temperature.reshape(50, 40), axis=1)).mean() < temperature.std()
    humidity = simple[2]
    assert humidity.min() >= 0 and humidity.max() <= 100.1
    gaps = [np.isnan(v).mean() for v in simple]
    assert sum(g > 0 for g in gaps) == 4 and all(0.05 < g < 0.8 for g in gaps if g > 0)


@pytest.mark.parametrize("packing, types", [("complex", {"grid_complex", "grid_complex_spatial_differencing"}), ("ccsds", {"grid_ccsds"})])
@pytest.mark.parametrize("bits", [1, 9, 12, 16, 17, 24])
def test_every_packing_holds_the_same_values(support, tmp_path, packing, types, bits):
    found, expected = set(), []
    for path in make(support, tmp_path / "simple", *SMALL, "--bits", str(bits)):
        expected += [values(h) for h in messages(path)]
    files = make(support, tmp_path / packing, *SMALL, "--packing", packing, "--bits", str(bits))
    for handle, theirs in zip((h for path in files for h in messages(path)), expected, strict=True):
        found.add(ec.codes_get(handle, "packingType"))
        np.testing.assert_array_equal(values(handle), theirs)
    assert found - {"grid_simple"} == types


def test_bits_say_how_finely_values_are_cut(support, tmp_path, simple):
    for bits in (8, 16):
        files = make(support, tmp_path / str(bits), *SMALL, "--vars", "1", "--bits", str(bits))
        handle = next(messages(files[0]))
        assert ec.codes_get(handle, "bitsPerValue") == bits
        step = 2.0 ** ec.codes_get(handle, "binaryScaleFactor")
        assert np.abs(values(handle) - simple[0]).max() <= step / 2 + 2.0**-7
        assert np.unique(values(handle)).size > 2 ** min(bits, 10) / 3


def test_traps_are_those_that_are_listed(support, tmp_path):
    folder = tmp_path / "archive"
    make(support, folder, *"--inits 6 --steps 3 --vars 9 --ny 12 --nx 10 --traps".split())
    traps = json.loads((tmp_path / "archive.traps.json").read_text())
    assert set(traps) == {
        "off cadence", "step missing", "two heights", "probability twin", "identical duplicate", "conflicting duplicate",
        "file missing", "bulletin header", "truncated", "empty", "not GRIB",
    }  # fmt: skip
    assert traps["step missing"] == ["2022-01-01T06:00:00", "r", 2]
    assert traps["off cadence"] == "2022-01-02T08:00:00"
    assert not (folder / traps["file missing"]).exists()
    assert (folder / traps["empty"]).stat().st_size == 0
    assert (folder / traps["not GRIB"]).read_text().startswith("<html>")
    assert not (folder / traps["bulletin header"]).read_bytes().startswith(b"GRIB")
    assert not (folder / traps["truncated"]).read_bytes().endswith(b"7777")
    handles = [ec.codes_clone(h) for h in messages(folder / traps["identical duplicate"])]
    whole = [ec.codes_get_message(h) for h in handles]
    assert len(whole) == 8 * 3 + 1 + 2
    assert whole[-2] == whole[0] and whole[-1] != whole[1]
    same = ["shortName", "level", "stepRange", "dataDate", "dataTime"]
    assert [ec.codes_get(handles[-1], k) for k in same] == [ec.codes_get(handles[1], k) for k in same]
    twins = [h for h in handles if ec.codes_get(h, "productDefinitionTemplateNumber") == 5]
    number = ["probabilityType", "parameterCategory", "parameterNumber"]
    assert [[ec.codes_get(h, k) for k in number] for h in twins] == [[0, 19, 0]]
    levels = {ec.codes_get(h, "level") for h in messages(folder / traps["bulletin header"]) if ec.codes_get(h, "shortName") == "t"}
    assert levels == {0, 1}


def test_the_same_options_make_the_same_archive(support, tmp_path):
    first = make(support, tmp_path / "a", *SMALL)
    second = make(support, tmp_path / "b", *SMALL)
    assert [p.name for p in first] == [p.name for p in second]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_wrong_options_are_refused(support, tmp_path):
    for options in ([], ["--inits", "0", "x"], ["x", "--packing", "jpeg"], ["x", "--traps"], ["x", "y"], ["x", "--bits"]):
        done = subprocess.run([support / "make_archive", *options], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "usage: make_archive" in done.stderr
