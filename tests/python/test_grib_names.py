"""What fields are called, against ecCodes: every field of the real files, and made-up messages for every parameter of its tables."""

import faulthandler
import itertools
import json
import os
import pickle
import random
import re
import subprocess
import sys

import eccodes as ec
import pytest
from conftest import ROOT
from oracle import handles

sys.path.insert(0, str(ROOT / "gen"))
KEYS = ["paramId", "shortName", "name", "units", "cfName", "cfVarName", "typeOfLevel"]
CHILD_JOBS = 2500
LEVELS = ["level", "topLevel", "bottomLevel"]
MISSING = 2147483647  # ecCodes' word for it

# Met Office winds that no table of ecCodes has
ADDED = {("10u", 192), ("10v", 193), ("10wdir", 194), ("10si", 195), ("u", 192), ("v", 193), ("wdir", 194), ("ws", 195)}

# Edition 1 counts these in other units than edition 2, and ecCodes passes them on: ours is in the unit of the coordinate. Factors.
UNITS_OF_EDITION_1 = {
    "isobaricLayer": 10,  # kPa
    "sigma": 1e-4,
    "sigmaLayer": 1e-2,
    "depthBelowLand": 1e-2,  # cm
    "depthBelowLandLayer": 1e-2,
    "heightAboveSeaLayer": 100,  # hm
    "heightAboveGroundLayer": 100,
    "pressureFromGround": 100,  # hPa
    "pressureFromGroundLayer": 100,
}


def get(handle, key, kind=str):
    try:
        return ec.codes_get(handle, key, int if key == "paramId" else kind)
    except ec.CodesInternalError:
        return None


def facts_of(handle):
    facts = {key: get(handle, key) for key in KEYS if key != "cfVarName"}
    facts |= {key: get(handle, key, float) for key in LEVELS}
    # ecCodes ends the process where it makes a variable's name out of an empty short name
    facts["cfVarName"] = get(handle, "cfVarName") if facts["shortName"] else ""
    for key in ("edition", "centre", "parameterNumber", "typeOfSecondFixedSurface", "indicatorOfTypeOfLevel"):
        facts[key] = get(handle, key, int)
    return facts


def facts_of_file(path):
    return [facts_of(handle) for handle in handles(path)]


def facts_of_message(message):
    handle = ec.codes_new_from_message(message)
    try:
        return facts_of(handle)
    finally:
        ec.codes_release(handle)


def ours(support, *paths):
    output = subprocess.run([support / "grib_names", *paths], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def expected(theirs):
    """ecCodes' answers as squall gives them, where it says more or otherwise on purpose."""
    e = dict(theirs)
    if e["cfName"] == "unknown":
        e["cfName"] = None
    if e["shortName"] == "":
        e["shortName"] = e["cfVarName"] = "unknown"
    elif not re.match("[A-Za-z]", e["cfVarName"]):
        e["cfVarName"] = f"p{e['paramId']}"
    e["cfVarName"] = re.sub(r"\W", "_", e["cfVarName"])
    return e


def differences(theirs, mine):
    e, m = expected(theirs), dict(mine)
    for key in ("shortName", "cfVarName"):
        if m[key].startswith("param_"):
            m[key] = "unknown"
    if theirs["centre"] == 74 and theirs["shortName"] == "unknown" and (m["shortName"], theirs["parameterNumber"]) in ADDED:
        return []
    if theirs["typeOfLevel"] is None:  # a template without levels
        e["typeOfLevel"] = "unknown"
    return [(key, e[key], m[key]) for key in KEYS if e[key] != m[key]]


def level_differences(theirs, mine):
    """Ours has fractions, signs and missing values that ecCodes' keys for levels lose."""
    is_layer = theirs["typeOfSecondFixedSurface"] != 255 if theirs["edition"] == 2 else theirs["bottomLevel"] != theirs["topLevel"]
    # `level` keeps fractions, but is the bottom of some layers
    pairs = [(theirs["topLevel"] if is_layer else theirs["level"], mine["topLevel"])]
    pairs += [(theirs["bottomLevel"], mine["bottomLevel"])] if is_layer else []
    factor = UNITS_OF_EDITION_1.get(mine["typeOfLevel"], 1) if theirs["edition"] == 1 else 1
    return [(their, my) for their, my in pairs if not same_level(theirs, their, mine["typeOfLevel"], my, factor)]


def same_level(theirs, their, level_type, my, factor):
    if theirs["edition"] == 1 and their == MISSING:
        return my is None
    if my is None:
        return their in (0, None)  # no value there
    if level_type == "isobaricInhPa" and int(my) == their:
        return True  # ecCodes drops the fraction
    if my < 0 and theirs["edition"] == 2:
        return their > 1 << 31  # ecCodes takes the sign for a bit of the number
    return abs(my - their * factor) <= 1e-9 * abs(my)


def report(problems, total):
    assert total > 0
    shown = "\n".join(map(str, problems[:20]))
    assert not problems, f"{len(problems)} of {total} fields differ from ecCodes:\n{shown}"


def files(shared):
    return sorted(p for p in (shared / "data/grib").iterdir() if re.search(r"gri?b2?1?$|grb2?$", p.name))


def test_every_field_of_real_files_is_named_as_by_eccodes(shared, support):
    problems, total = [], 0
    for path in files(shared):
        theirs, mine = facts_of_file(path), ours(support, path)
        if len(mine) > len(theirs):
            continue  # ecCodes stopped at damage
        for number, (their, my) in enumerate(zip(theirs, mine, strict=True), 1):
            total += 1
            if found := differences(their, my) + level_differences(their, my):
                problems.append((path.name, number, found))
    assert total > 1500
    report(problems, total)


# --- made-up messages -----------------------------------------------------------------------------------------------

CENTRES = {
    **{"ecmf": 98, "edzw": 78, "kwbc": 7, "cnmc": 80, "eswi": 82, "efkl": 86, "eidb": 233, "ekmi": 94},
    **{"enmi": 88, "lfpw": 85, "lowm": 224, "rjtd": 34, "sbsj": 46, "egrr": 74},
}
STATUS = {"tigge": 4, "s2s": 6, "uerra": 8, "destine": 12, "lcgcr": 14, "wpmip": 16}
OWN_LOCAL_SECTIONS = range(10, 14)  # statuses of CARRA, CERRA and Destination Earth
CLASSES = {"era": 23, "era6": 40, "nextgems": 53, "cerise": 50, "hydro": 42, "hydro_legacy": 35}


@pytest.fixture(scope="module")
def tables():
    import grib_tables

    return grib_tables, grib_tables.Definitions()


def folders(definitions, edition):
    local = {p.rsplit("/", 1)[0] for p in definitions.paths if p.startswith(f"grib{edition}/localConcepts/")}
    return [f"grib{edition}", *sorted(local - {"grib1/localConcepts/ammc"})]


def entries(tables, edition, concepts):
    """Every entry of the concepts: (folder's own name, conditions)."""
    grib_tables, definitions = tables
    found = []
    for folder in folders(definitions, edition):
        for name in concepts:
            for variant in ("", ".lte33", ".chemsplit", ".legacy"):
                path = f"{folder}/{name}{variant}.def"
                if definitions.has(path):
                    for _, conditions in grib_tables.concept(definitions.read(path), path):
                        found.append((folder.rsplit("/", 1)[-1], dict(conditions)))
    return found


def made(make, jobs):
    """(message, facts) of make(job) for each job, in children: ecCodes does not survive every combination of keys."""
    results = []
    jobs = list(jobs)
    while jobs:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # it complains about each key that it cannot set
            faulthandler.disable()
            with os.fdopen(writer, "wb") as stream:
                for job in jobs[:CHILD_JOBS]:  # it does not give all memory back either
                    message = make(job)
                    pickle.dump((message, facts_of_message(message)) if message else None, stream)
                    stream.flush()
            os._exit(0)
        os.close(writer)
        count = len(results)
        with os.fdopen(reader, "rb") as stream:
            while True:
                try:
                    results.append(pickle.load(stream))
                except EOFError:
                    break
        os.waitpid(child, 0)
        done = len(results) - count
        jobs = jobs[done:] if done == CHILD_JOBS else jobs[done + 1 :]  # where it ended early, the next one is what it died of
    return [result for result in results if result]


def check(results, support, tmp_path, least):
    path = tmp_path / "messages.grib"
    path.write_bytes(b"".join(message for message, _ in results))
    mine = ours(support, path)
    assert len(mine) == len(results)
    problems, total = [], 0
    for (_, their), my in zip(results, mine, strict=True):
        if their["paramId"] is None or their["shortName"] is None:
            continue  # ecCodes itself cannot read what it made: a template with another centre's local section
        total += 1
        if found := differences(their, my):
            problems.append((their, found))
    assert total >= least
    report(problems, total)


def message_of_edition_1(base, entry, rng):
    folder, conditions = entry
    m, pds = bytearray(base), 8
    m[pds + 3] = conditions.get("table2Version", rng.choice([1, 2, 3, 128, 200, 201, 202, 203]))
    m[pds + 4] = CENTRES.get(folder, 98) if rng.random() < 0.8 else rng.choice(list(CENTRES.values()))
    m[pds + 8] = conditions.get("indicatorOfParameter", rng.randrange(256))
    m[pds + 9] = rng.choice([1, 100, 105, 109, 112, 116, 200, 201, 202, 210, 211, 222, rng.randrange(256)])
    m[pds + 10], m[pds + 11] = rng.choice([(0, 0), (0, 2), (0, 10), (0, 7), (255, 255), (0, 10), (10, 20), (1, 44)])
    m[pds + 20] = conditions.get("timeRangeIndicator", rng.choice([0, 1, 2, 3, 4, 10, 13, 113]))
    m[pds + 25] = rng.choice([0, 0, 98, 3])
    if rng.random() < 0.9:
        m[pds + 9] = conditions.get("indicatorOfTypeOfLevel", m[pds + 9])
        if "level" in conditions:
            m[pds + 10 : pds + 12] = min(conditions["level"], 65535).to_bytes(2, "big")
        m[pds + 10] = conditions.get("topLevel", m[pds + 10])
        m[pds + 11] = conditions.get("bottomLevel", m[pds + 11])
    return bytes(m)


def test_made_up_messages_of_edition_1_are_named_as_by_eccodes(tables, support, tmp_path):
    rng = random.Random(1)
    handle = ec.codes_grib_new_from_samples("GRIB1")
    ec.codes_set(handle, "deleteLocalDefinition", 1)
    base = ec.codes_get_message(handle)
    known = entries(tables, 1, ["paramId", "cfName", "cfVarName", "typeOfLevel", "stepType"])
    results = made(lambda entry: message_of_edition_1(base, entry, rng), rng.sample(known, 1500))
    check(results, support, tmp_path, 1450)


# Code table 3: these count down from a value, or in another unit; ecCodes passes on the octets. Factor and origin of top and bottom.
OWN_COUNTS = {
    "thetaLayer": ((-1, 475), (-1, 475)),
    "isobaricLayerHighPrecision": ((-1, 1100), (-1, 1100)),
    "sigmaLayerHighPrecision": ((-1e-3, 1.1), (-1e-3, 1.1)),
    "isobaricLayerMixedPrecision": ((10, 0), (-1, 1100)),
    "heightAboveGroundHighPrecision": ((1e-2, 0), (1e-2, 0)),
}
WITH_LEVELS = [100, 101, *range(103, 118), 121, 125, 128, 141, 160, 210]


@pytest.mark.parametrize("ends", [(0, 255), pytest.param((1, 7, 100, 254), marks=pytest.mark.long)])
def test_levels_of_every_type_of_edition_1_are_those_of_eccodes_for_every_octet(support, tmp_path, ends):
    handle = ec.codes_grib_new_from_samples("GRIB1")
    ec.codes_set(handle, "deleteLocalDefinition", 1)
    base = bytearray(ec.codes_get_message(handle))
    octets = {(a, b) for a in range(256) for b in ends} | {(a, b) for a in ends for b in range(256)}
    path, theirs = tmp_path / "levels.grib", []
    with open(path, "wb") as file:
        for level_type, pair in itertools.product(WITH_LEVELS, sorted(octets)):
            base[17:20] = level_type, *pair
            file.write(base)
            message = ec.codes_new_from_message(bytes(base))
            theirs.append((level_type, *pair, *(ec.codes_get(message, key) for key in ("typeOfLevel", "topLevel", "bottomLevel"))))
            ec.codes_release(message)
    problems = []
    for their, mine in zip(theirs, ours(support, path), strict=True):
        level_type, name, levels = their[0], their[3], their[4:]
        is_layer = "Layer" in name
        assert is_layer == (level_type in (101, 104, 106, 108, 110, 112, 114, 116, 121, 128, 141))
        factor = UNITS_OF_EDITION_1.get(name, 1)
        expected = [
            None if value == MISSING else factor * value + origin
            for value, (factor, origin) in zip(levels, OWN_COUNTS.get(name, ((factor, 0), (factor, 0))), strict=True)
        ]
        expected = expected if is_layer else [expected[0], None]
        found = [mine["topLevel"], mine["bottomLevel"]]
        if mine["typeOfLevel"] != name or found != [value if value is None else pytest.approx(value, rel=1e-9) for value in expected]:
            problems.append((their, found))
    report(problems, len(theirs))


class Maker:
    """Messages of edition 2 that fulfil an entry's conditions, more or less."""

    def __init__(self, tables):
        grib_tables, definitions = tables
        self.missing = grib_tables.MISSING
        self.known = entries(tables, 2, ["paramId", "cfName", "cfVarName", "typeOfLevelConcept"])
        self.all_keys = {key for _, conditions in self.known for key in conditions}
        self.bases, self.fitting = {}, {}
        files = (re.fullmatch(r"grib2/templates/template\.4\.(\d+)\.def", path) for path in definitions.paths)
        odd = {20, 254, 311, 1000, 1001, 1002, 1100, 1101, 2000}
        self.templates = sorted({int(m[1]) for m in files if m} - odd)
        for template in self.templates:  # before the children are forked
            self.keys_of(template)
            ec.codes_release(self.base(template, True))

    def base(self, template, is_local):
        if (template, is_local) not in self.bases:
            handle = ec.codes_grib_new_from_samples("GRIB2")
            ec.codes_set(handle, "tablesVersion", 33)
            if is_local:
                ec.codes_set(handle, "setLocalDefinition", 1)
            ec.codes_set(handle, "productDefinitionTemplateNumber", template)
            self.bases[template, is_local] = handle
        return ec.codes_clone(self.bases[template, is_local])

    def templates_for(self, conditions):
        """The templates that have all keys of the conditions (ecCodes' own, made by a message of each)."""
        keys = {key for key in conditions if key not in ("stepType", "typeOfStatisticalProcessingPair")}
        flags = {key: value for key, value in conditions.items() if key.startswith("is_")}
        return [t for t in self.templates if keys <= self.keys_of(t).keys() and all(self.keys_of(t)[k] == v for k, v in flags.items())]

    def keys_of(self, template):
        if template not in self.fitting:
            handle = self.base(template, False)
            values = {key: get(handle, key, int) for key in self.all_keys if ec.codes_is_defined(handle, key)}
            self.fitting[template] = values
            ec.codes_release(handle)
        return self.fitting[template]

    def set(self, handle, key, value):
        try:
            if value == self.missing:
                ec.codes_set_missing(handle, key)
            else:
                ec.codes_set_long(handle, key, value)
        except ec.CodesInternalError:
            pass  # not in this template

    def disturb(self, handle, rng):
        """Random values of the keys that conditions ask for most."""
        first = rng.choice([1, 1, 100, 103, 103, 101, 105, 106, 151, 160, 2, 7, 8, 10, 104, 107, 109, 150, 168, 174, 200, 204, 220, 254])
        chances = [
            ("centre", 0.2, [*CENTRES.values(), 34, 0, 54]),
            ("subCentre", 0.1, [98]),
            ("generatingProcessIdentifier", 0.1, [161, 6, 3, 109]),
            ("backgroundProcess", 0.1, [255, 1, 2, 3]),
            ("typeOfFirstFixedSurface", 0.7, [first]),
            ("scaleFactorOfFirstFixedSurface", 0.7, [0, 0, 0, 1, 2, -2, self.missing]),
            ("scaledValueOfFirstFixedSurface", 0.7, [0, 2, 10, 50, 100, 850, 85000, self.missing]),
            ("typeOfSecondFixedSurface", 0.4, [255, 8, first, first, 176, 9, 151]),
            ("scaleFactorOfSecondFixedSurface", 0.4, [0, 0, 1, self.missing]),
            ("scaledValueOfSecondFixedSurface", 0.4, [0, 10, 7, self.missing]),
            ("typeOfGeneratingProcess", 0.2, list(range(20))),
            ("typeOfStatisticalProcessing", 0.3, list(range(11))),
            ("lengthOfTimeRange", 0.3, [1, 3, 6, 24]),
            ("localTablesVersion", 0.1, [0, 1, 2, 228]),
        ]
        for key, chance, values in chances:
            if rng.random() < chance:
                self.set(handle, key, rng.choice(values))

    def message(self, seed):
        rng = random.Random(seed)
        folder, conditions = rng.choice(self.known)
        conditions = {k: v for k, v in conditions.items() if k not in ("numberOfGridInReference", "gridDefinitionTemplateNumber")}
        templates = self.templates_for(conditions) if rng.random() < 0.9 else self.templates
        if not templates:
            return None
        is_local = folder in CLASSES or rng.random() < 0.2
        handle = self.base(rng.choice(templates), is_local)
        self.set(handle, "centre", CENTRES.get(folder, 98))
        self.set(handle, "tablesVersion", rng.choice([4, 15, 33, 34, 35, 37]))
        if folder in STATUS:
            self.set(handle, "productionStatusOfProcessedData", STATUS[folder] + rng.randrange(2))
        elif rng.random() < 0.05:
            status = rng.randrange(18)
            if not (is_local and status in OWN_LOCAL_SECTIONS):  # ecCodes takes this one, made for another status, for theirs
                self.set(handle, "productionStatusOfProcessedData", status)
        if is_local:
            self.set(handle, "marsClass", CLASSES.get(folder) or rng.choice([19, 36, 51, 23, 50, 1]))
        self.disturb(handle, rng)
        for key, value in conditions.items():
            if key == "stepType":
                self.set(handle, "typeOfStatisticalProcessing", 1)
            elif not key.startswith("is_") and rng.random() < 0.97:
                self.set(handle, key, value)
        if pair := conditions.get("typeOfStatisticalProcessingPair"):
            self.set(handle, "numberOfTimeRanges", 2)
            ec.codes_set_array(handle, "typeOfStatisticalProcessing", [pair >> 8, pair & 255])
        message = ec.codes_get_message(handle)
        ec.codes_release(handle)
        return message


def test_made_up_messages_of_edition_2_are_named_as_by_eccodes(tables, support, tmp_path):
    check(made(Maker(tables).message, range(400)), support, tmp_path, 350)


@pytest.mark.long
@pytest.mark.parametrize("first", range(100_000, 115_000, 5_000))
def test_many_made_up_messages_of_edition_2_are_named_as_by_eccodes(tables, support, tmp_path, first):
    check(made(Maker(tables).message, range(first, first + 5_000)), support, tmp_path, 4300)


def message_with(edition, param_id, **keys):
    """A message that ecCodes itself sets the parameter on; None where it cannot."""
    handle = ec.codes_grib_new_from_samples(f"GRIB{edition}")
    try:
        for key, value in keys.items():
            ec.codes_set(handle, key, value)
        ec.codes_set_long(handle, "paramId", param_id)
        return ec.codes_get_message(handle)
    except ec.CodesInternalError:
        return None
    finally:
        ec.codes_release(handle)


@pytest.mark.long
@pytest.mark.parametrize("edition, tables_version", [(1, None), (2, 5), (2, 35)])
def test_every_parameter_that_eccodes_can_set_is_named_as_by_it(tables, support, tmp_path, edition, tables_version):
    grib_tables, definitions = tables
    jobs = []
    for folder in folders(definitions, edition):
        keys = {"centre": CENTRES.get(folder.rsplit("/", 1)[-1], 98)}
        if tables_version:
            keys["tablesVersion"] = tables_version
        ids = set()
        for variant in ("", ".lte33", ".chemsplit", ".legacy"):
            path = f"{folder}/paramId{variant}.def"
            if definitions.has(path):
                ids |= {int(value) for value, _ in grib_tables.concept(definitions.read(path), path)}
        jobs += [(param_id, keys) for param_id in sorted(ids)]
    results = made(lambda job: message_with(edition, job[0], **job[1]), jobs)
    check(results, support, tmp_path, 0.8 * len(jobs))
