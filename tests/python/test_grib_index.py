"""Times, levels, members and statistics of GRIB fields against ecCodes' keys: on other people's files, and on messages that ecCodes
itself writes for every template, unit of time and time range."""

import csv
import datetime
import json
import subprocess
import sys

import eccodes as ec
import pytest
from oracle import handles

EPOCH = datetime.datetime(1970, 1, 1)
MISSING = 2147483647

# Steps that ecCodes cannot tell. iris_file: a length of time range of 4294967276 hours; UKV's satellite product: no step.
NO_STEP_ORACLE = {"iris_file.grib2", "iris_ukv_chan9.grib2"}


@pytest.fixture(scope="session")
def index(support):
    def call(*paths, threads=2):
        out = subprocess.run([support / "grib_index", str(threads), *map(str, paths)], check=True, stdout=subprocess.PIPE, text=True).stdout
        lines = [json.loads(line) for line in out.splitlines()]
        return [line for line in lines if "problem" not in line], [line for line in lines if "problem" in line]

    return call


def get(h, key, kind=None):
    """A key's value; None where it has none. Of a missing surface ecCodes gives MISSING."""
    try:
        value = ec.codes_get(h, key, ktype=kind)
    except ec.CodesInternalError:
        return None
    return None if value == MISSING else value


def surface(h, which):
    kind = get(h, f"typeOf{which}FixedSurface", int)
    scale, value = get(h, f"scaleFactorOf{which}FixedSurface"), get(h, f"scaledValueOf{which}FixedSurface")
    if kind is None:
        kind = 255
    if value is not None and value >= 1 << 31:  # sign and magnitude (regulation 92.1.5), which ecCodes takes for a large number
        value = (1 << 31) - value
    return {"type": kind} if kind == 255 or scale is None or value is None else {"type": kind, "scale": scale, "value": value}


def reference(h):
    date, time = get(h, "dataDate"), get(h, "dataTime")
    moment = datetime.datetime(date // 10000, date // 100 % 100, date % 100, time // 100, time % 100, get(h, "second") or 0)
    return int((moment - EPOCH).total_seconds())


def steps(h):
    """startStep and endStep in seconds."""
    if ec.codes_is_defined(h, "stepUnits"):
        ec.codes_set(h, "stepUnits", "s")
    return get(h, "startStep", int), get(h, "endStep", int)


def has_members(h, edition):
    if edition == 2:
        return ec.codes_is_defined(h, "perturbationNumber")
    seasonal = get(h, "localDefinitionNumber") in (12, 15, 16, 23)  # their members are not always counted
    counted = seasonal or get(h, "totalNumber") != 0
    return get(h, "marsType", str) not in ("em", "es") and get(h, "perturbationNumber") is not None and counted


def expected(h):
    edition = get(h, "edition")
    keys = {
        "reference": reference(h),
        "stepType": get(h, "stepType", str),
        "centre": get(h, "centre", int),
        "subcentre": get(h, "subCentre", int),
        "number": get(h, "perturbationNumber") if has_members(h, edition) else -1,
    }
    keys["begin"], keys["end"] = steps(h)
    if edition == 2:
        keys["template"] = get(h, "productDefinitionTemplateNumber")
        keys["first"], keys["second"] = surface(h, "First"), surface(h, "Second")
        for name, key in (
            ("derived", "derivedForecast"),
            ("percentile", "percentileValue"),
            ("ensemble", "typeOfEnsembleForecast"),
            ("probability", "probabilityType"),
        ):
            value = get(h, key, int)
            keys[name] = -1 if value is None or not ec.codes_is_defined(h, key) else value
    return keys


def differences(h, field, leave_out=()):
    return {k: (v, field[k]) for k, v in expected(h).items() if field[k] != v and k not in leave_out}


def test_real_files_have_the_keys_that_eccodes_gives(index, shared):
    compared = 0
    for path in sorted((shared / "data" / "grib").iterdir()):
        if path.suffix == ".idx" or path.name == "era5-levels-corrupted.grib":  # ecCodes reads neither
            continue
        leave_out = ("begin", "end", "first") if path.name in NO_STEP_ORACLE else ()
        fields, _ = index(path)
        theirs = handles(path)
        for field, h in zip(fields, theirs, strict=True):
            wrong = differences(h, field, leave_out)
            assert not wrong, f"{path.name} at {field['offset']}: {wrong}"
            compared += 1
    assert compared == 1824


def test_each_file_has_the_fields_that_others_count(squall, shared):
    with open(shared / "data" / "peers" / "grib.tsv", newline="") as table:
        wanted = {row["file"]: int(row["fields"]) for row in csv.DictReader(table, delimiter="\t")}
    found = {name: len(squall("ls", shared / "data" / "grib" / name, check=False).out.splitlines()) for name in wanted}
    assert found == wanted


def test_seconds_of_the_reference_time_are_kept(index, shared):
    fields, _ = index(shared / "data" / "grib" / "MRMS_MergedReflectivityQCComposite_00.50_20220704-110040.grib2")
    assert EPOCH + datetime.timedelta(seconds=fields[0]["reference"]) == datetime.datetime(2022, 7, 4, 11, 0, 40)


def test_any_number_of_threads_gives_the_same_index(index, shared):
    paths = sorted((shared / "data" / "grib").iterdir())
    one = index(*paths, threads=1)
    assert len(one[0]) == 1825 and len(one[1]) == 3
    for threads in (2, 3, 7):
        assert index(*paths, threads=threads) == one


def write(path, messages):
    with open(path, "wb") as f:
        for h in messages:
            f.write(ec.codes_get_message(h))


def compare(index, path, messages, leave_out=()):
    write(path, messages)
    fields, problems = index(path)
    assert not problems
    for n, (field, h) in enumerate(zip(fields, messages, strict=True)):
        wrong = differences(h, field, leave_out)
        assert not wrong, f"message {n}: {wrong}"
    return fields


def edition2(**keys):
    h = ec.codes_grib_new_from_samples("regular_ll_sfc_grib2")
    for k, v in keys.items():
        ec.codes_set(h, k, v)
    return h


def edition1(pds=(), **keys):
    """pds: (octet from 0, value) pairs, written into the bytes as they are."""
    h = ec.codes_grib_new_from_samples("regular_ll_sfc_grib1")
    for k, v in keys.items():
        ec.codes_set(h, k, v)
    message = bytearray(ec.codes_get_message(h))
    for octet, value in pds:
        message[8 + octet] = value
    return ec.codes_new_from_message(bytes(message))


@pytest.mark.parametrize("template", [0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 15, 40, 41, 42, 43, 45, 46, 47, 48, 49, 60, 61, 70, 71, 72, 73])
def test_each_template_is_read_where_its_parts_lie(index, tmp_path, template):
    messages = []
    for n in range(6):
        h = edition2(
            productDefinitionTemplateNumber=template,
            dataDate=20240227 + n % 3,
            dataTime=1800,
            forecastTime=3 + n,
            typeOfFirstFixedSurface=103,
            scaleFactorOfFirstFixedSurface=1,
            scaledValueOfFirstFixedSurface=20 + n,
            typeOfSecondFixedSurface=103,
            scaleFactorOfSecondFixedSurface=0,
            scaledValueOfSecondFixedSurface=7,
        )
        parts = dict(
            perturbationNumber=3 * n,
            typeOfEnsembleForecast=n % 4,
            derivedForecast=n,
            percentileValue=10 * n,
            probabilityType=n % 5,
            lengthOfTimeRange=n + 1,
            typeOfStatisticalProcessing=n,
            indicatorOfUnitForTimeRange=1,
        )
        for key, value in parts.items():
            if ec.codes_is_defined(h, key):
                ec.codes_set(h, key, value)
        messages.append(h)
    compare(index, tmp_path / "a.grib2", messages)


@pytest.mark.parametrize("unit", [0, 1, 2, 10, 11, 12, 13])
def test_each_unit_of_time_gives_seconds(index, tmp_path, unit):
    messages = [
        edition2(
            productDefinitionTemplateNumber=8,
            indicatorOfUnitOfTimeRange=unit,
            forecastTime=count,
            indicatorOfUnitForTimeRange=other,
            lengthOfTimeRange=length,
        )
        for count in (0, 1, 7, 100, -5)
        for other, length in ((unit, 4), (0, 90))
    ]
    compare(index, tmp_path / "a.grib2", messages)


def test_months_and_years_follow_the_calendar(index, tmp_path):
    cases = [(20240131, 3, 1, 29), (20230131, 3, 1, 28), (20240229, 4, 1, 365), (20200101, 5, 1, 3653), (20240115, 3, 13, 397)]
    write(
        tmp_path / "a.grib2",
        [edition2(dataDate=date, indicatorOfUnitOfTimeRange=unit, forecastTime=count) for date, unit, count, _ in cases],
    )
    fields, _ = index(tmp_path / "a.grib2")
    assert [f["end"] for f in fields] == [86400 * days for *_, days in cases]


def test_statistics_and_their_kinds(index, tmp_path):
    messages = [
        edition2(
            productDefinitionTemplateNumber=8,
            typeOfStatisticalProcessing=process,
            typeOfTimeIncrement=increment,
            lengthOfTimeRange=6,
            forecastTime=6,
        )
        for process in (*range(12), 100, 101, 255)
        for increment in (1, 2, 255)
    ]
    compare(index, tmp_path / "a.grib2", messages)


def test_probabilities_have_their_limits(index, tmp_path):
    h = edition2(
        productDefinitionTemplateNumber=5,
        probabilityType=2,
        scaleFactorOfLowerLimit=2,
        scaledValueOfLowerLimit=27315,
        scaleFactorOfUpperLimit=-1,
        scaledValueOfUpperLimit=-30,
    )
    write(tmp_path / "a.grib2", [h])
    fields, _ = index(tmp_path / "a.grib2")
    assert (fields[0]["lower"], fields[0]["upper"]) == (273.15, -300.0)


@pytest.mark.parametrize("centre", [7, 98])
@pytest.mark.parametrize("unit", [0, 1, 2, 10, 11, 12, 13, 14, 254])
def test_time_ranges_of_edition_1(index, tmp_path, centre, unit):
    ranges = [0, 1, 2, 3, 4, 5, 10, 113, 123, 124] + ([118, 119, 120, 128, 130, 133] if centre == 98 else [])
    messages = [edition1([(17, unit), (18, 6), (19, 12), (20, r)], centre=centre) for r in ranges]
    compare(index, tmp_path / "a.grib1", messages)


LEVEL_TYPES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 115, 116, 117, 160]


@pytest.mark.parametrize("level_type", LEVEL_TYPES)
def test_level_types_of_edition_1_in_terms_of_edition_2(index, tmp_path, level_type):
    """The oracle is ecCodes' own conversion to edition 2; it does not carry the values over (test_grib_product.c has those)."""
    message = edition1([(9, level_type), (10, 3), (11, 5)], paramId=130)
    write(tmp_path / "a.grib1", [message])
    fields, _ = index(tmp_path / "a.grib1")
    ec.codes_set(message, "edition", 2)
    assert fields[0]["first"]["type"] == surface(message, "First")["type"]
    assert fields[0]["second"]["type"] == surface(message, "Second")["type"]


def test_members_of_edition_1(index, tmp_path):
    messages = [
        edition1(localDefinitionNumber=definition, type="pf", stream="enfo", number=n)
        for definition in (1, 15, 16, 18, 26, 30, 36)
        for n in (1, 7, 50)
    ]
    for h in messages:
        if ec.codes_is_defined(h, "numberOfForecastsInEnsemble"):
            ec.codes_set(h, "numberOfForecastsInEnsemble", 51)
    fields = compare(index, tmp_path / "a.grib1", messages)
    assert len({f["product"] for f in fields}) == 7


def case(shared, tmp_path, name):
    subprocess.run([sys.executable, shared / "cases" / f"{name}.py", tmp_path], check=True, stdout=subprocess.DEVNULL)
    return next(tmp_path.glob("*.grib*"))


def test_case_multi_field(index, shared, tmp_path):
    fields, problems = index(case(shared, tmp_path, "multi_field"))
    assert not problems and [(f["shortName"], f["in_message"]) for f in fields] == [("u", 0), ("v", 1)] * 2


def test_case_subhourly_mixed_units(index, shared, tmp_path):
    fields, _ = index(case(shared, tmp_path, "subhourly_mixed_units"))
    assert [f["end"] for f in fields] == [900 * n for n in range(9)]
    assert len({f["product"] for f in fields}) == 1


def test_case_gfs_tcc_instant_and_mean(index, shared, tmp_path):
    fields, _ = index(case(shared, tmp_path, "gfs_tcc_instant_and_mean"))
    assert [(f["stepType"], f["begin"], f["end"], f["first"]["type"]) for f in fields] == [
        ("instant", 21600, 21600, 10),
        ("avg", 0, 21600, 10),
        ("avg", 0, 21600, 211),
    ]


def test_case_layers_same_top(index, shared, tmp_path):
    fields, _ = index(case(shared, tmp_path, "layers_same_top"))
    assert [(f["first"]["value"], f["second"]["value"]) for f in fields] == [(44, 100), (44, 72), (0, 10), (10, 40)]
    assert len({f["product"] for f in fields}) == 4


def test_case_sparse_time_step(index, shared, tmp_path):
    fields, _ = index(case(shared, tmp_path, "sparse_time_step"))
    assert len(fields) == 72 and len({f["product"] for f in fields}) == 1
    assert len({f["reference"] for f in fields}) == 7 and {f["end"] for f in fields} == {3600 * n for n in range(1, 13)}


def test_case_many_hypercubes(index, shared, tmp_path):
    fields, _ = index(case(shared, tmp_path, "many_hypercubes"))
    assert len(fields) == 400 and len({f["product"] for f in fields}) == 400 and len({f["grid"] for f in fields}) == 1


def test_steps_runs_members_and_packing_share_a_product(index, tmp_path):
    messages = [
        edition2(
            productDefinitionTemplateNumber=11,
            dataDate=20240101 + run,
            forecastTime=0,
            lengthOfTimeRange=hours,
            perturbationNumber=member,
            typeOfStatisticalProcessing=1,
        )
        for run in range(3)
        for hours in (2, 4, 5, 7, 12, 36)
        for member in range(2)
    ]
    fields = compare(index, tmp_path / "a.grib2", messages)
    assert len({f["product"] for f in fields}) == 1
    messages = [
        edition1(paramId=167, dataDate=20240101, step=step, decimalPrecision=precision) for step in (0, 12, 300) for precision in (0, 3)
    ]
    assert len({f["product"] for f in compare(index, tmp_path / "a.grib1", messages)}) == 1


def test_parameters_named_by_the_length_of_their_interval(index, tmp_path):
    messages = [
        edition2(productDefinitionTemplateNumber=8, shortName=name, forecastTime=start)
        for name in ("mx2t6", "mn2t6", "10fg3")
        for start in (0, 6, 12)
    ]
    names = [get(h, "shortName") for h in messages]
    fields = compare(index, tmp_path / "a.grib2", messages)
    assert [f["shortName"] for f in fields] == names
    assert len({f["product"] for f in fields}) == 3
