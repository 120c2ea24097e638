"""The command as a user meets it: help, usage errors, messages and exit codes, listings and values."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest
import zarr


@pytest.fixture(scope="module")
def archive(tmp_path_factory, support):
    """Two runs of four variables on a small grid, without damage."""
    folder = tmp_path_factory.mktemp("cli") / "archive"
    sizes = "--inits 2 --steps 3 --vars 4 --ny 30 --nx 20".split()
    subprocess.run([support / "make_archive", folder, *sizes], check=True)
    return folder


def first_file(archive):
    return sorted(archive.iterdir())[0]


def make_store(path, **arrays):
    """A Zarr store of 1-D arrays, each with a dimension of its own name unless attributes are given: (values, dim, attributes)."""
    import zarr

    group = zarr.open_group(path, mode="w")
    for name, given in arrays.items():
        values, dim, attributes = given if isinstance(given, tuple) else (given, None, {})
        array = group.create_array(name, shape=values.shape, dtype=values.dtype, dimension_names=[dim] if dim else None)
        array[:] = values
        array.attrs.update(attributes)


def test_help_names_every_command(squall):
    text = squall("help").out
    for command in "info ls get convert status verify bench completion".split():
        assert command in text
        assert f"usage: squall {command} " in squall("help", command).out
        assert squall(command, "--help").out == squall("help", command).out


def test_version_is_one_line(squall):
    assert squall("--version").out.startswith("squall ")


@pytest.mark.parametrize(
    "args, words",
    [
        ([], "usage: squall"),
        (["frobnicate"], "no command frobnicate"),
        (["ls"], "something is missing"),
        (["info", "a", "b"], "too much is given"),
        (["convert", "a", "b", "--chnks", "x"], "is --chunks meant?"),
        (["convert", "a", "b", "--threads", "0"], "a whole number from 1"),
        (["convert", "a", "b", "--threads", "-3"], "a whole number from 1"),
        (["convert", "a", "b", "--memory", "lots"], "a size is wanted"),
        (["convert", "a", "b", "--on-overflow", "wrap"], "error|inf|clip"),
        (["convert", "a", "b", "--codec"], "wants [NAME=]CHAIN;..."),
        (["convert", "a", "b", "--dry-run=yes"], "takes no value"),
        (["convert", "a", "b", "--stack-name", "X"], "--stack variable"),
        (["convert", "a", "b", "--strict", "--keep-going"], "exclude each other"),
        (["get", "a"], "which array?"),
        (["get", "a", "b", "-o", "x.txt"], "FILE.npy, FILE.csv or -"),
        (["get", "a", "b", "--json", "-o", "x.csv"], "--json is for stdout"),
        (["convert", "a", "b", "--chunks", "y=1", "--chunks", "x=1"], "--chunks is given twice"),
        (["ls", "-w", "shortName", "x"], "KEY=VALUE"),
        (["ls", "-p", "colour", "x"], "no key colour"),
        (["completion", "tcsh"], "no shell tcsh"),
    ],
)
def test_usage_errors_say_what_is_wrong_and_exit_with_2(squall, args, words):
    done = squall(*args, check=False)
    assert done.code == 2
    assert words in done.err
    assert done.out == ""


@pytest.mark.parametrize("command, more", [("info", []), ("bench", []), ("verify", []), ("get", ["t"])])
def test_many_files_are_told_to_be_a_pattern_in_quotes(squall, archive, command, more):
    paths = sorted(archive.iterdir())[:3]
    done = squall(command, *paths, *more, check=False)
    over = [*paths, *more][1 + len(more)]
    assert done.code == 2 and f"too much is given: {over}" in done.err and f"squall {command} 'FOLDER/*.nc'" in done.err
    assert "FOLDER" not in squall("status", *paths, check=False).err


@pytest.mark.parametrize("command", ["info", "status", "verify", "bench"])
def test_a_path_that_is_not_there_is_named(squall, command):
    done = squall(command, "/no/such/path", check=False)
    assert done.code == 1
    assert "/no/such/path" in done.err
    assert "Traceback" not in done.err


def test_ls_has_a_row_a_field(squall, archive):
    path = first_file(archive)
    rows = squall("ls", path).out.splitlines()
    listed = json.loads(squall("ls", "--json", path).out)
    assert len(rows) == len(listed) > 0
    assert [r["number"] for r in listed] == list(range(1, len(rows) + 1))
    assert listed[0]["offset"] == 0
    total = sum(r["size"] for r in listed)
    assert total == os.path.getsize(path)


def test_columns_of_ls_are_as_wide_as_they_must_be(squall, archive, support, tmp_path):
    """Packings have long and short names; what stands behind them stands in one column."""
    sizes = "--inits 1 --steps 1 --vars 1 --ny 30 --nx 20 --packing complex".split()
    subprocess.run([support / "make_archive", tmp_path / "complex", *sizes], check=True)
    rows = squall("ls", first_file(archive), first_file(tmp_path / "complex")).out.splitlines()
    assert len({len(row.split()[10]) for row in rows}) == 2
    assert len({row.index(" transverse_mercator ") for row in rows}) == 1


def test_ls_filters_and_chooses_columns(squall, archive):
    rows = squall("ls", "-w", "step=1", "-p", "shortName,step", *sorted(archive.iterdir())).out.split("\n")[:-1]
    assert rows and all(row.split()[1] == "1" for row in rows)
    assert squall("ls", "-w", "step=0|2,stepType=instant", "-p", "step", first_file(archive)).out.split().count("1") == 0


def write_like(path, source, samples):
    """GRIB messages like the first one of a file, with ecCodes' keys changed."""
    import eccodes

    with open(source, "rb") as f:
        first = eccodes.codes_grib_new_from_file(f)
    with open(path, "wb") as out:
        for keys in samples:
            handle = eccodes.codes_clone(first)
            for key, value in keys.items():
                eccodes.codes_set(handle, key, value)
            eccodes.codes_write(handle, out)


LAYER = {"typeOfFirstFixedSurface": 106, "typeOfSecondFixedSurface": 106, "scaleFactorOfFirstFixedSurface": 2}
LAYER |= {"scaledValueOfFirstFixedSurface": 7, "scaleFactorOfSecondFixedSurface": 2, "scaledValueOfSecondFixedSurface": 28}


def test_ls_gives_programs_numbers(squall, archive, tmp_path):
    """Levels and steps are numbers whose keys do not depend on what they are; people see what ecCodes prints."""
    path = tmp_path / "some.grib2"
    accumulated = {"productDefinitionTemplateNumber": 8, "typeOfStatisticalProcessing": 1, "stepRange": "3-9"}
    member = {"productDefinitionTemplateNumber": 1, "number": 7}
    write_like(
        path, first_file(archive), [{"step": 6}, LAYER, accumulated, member, {"typeOfLevel": "meanSea"}, {"stepUnits": "m", "step": 90}]
    )
    rows = json.loads(squall("ls", "--json", path).out)
    assert [(row["level"], row["bottomLevel"]) for row in rows] == [(1, None), (0.07, 0.28), (1, None), (1, None), (None, None), (1, None)]
    assert [(row["startStep"], row["step"]) for row in rows] == [(6, 6), (0, 0), (3, 9), (0, 0), (0, 0), (1.5, 1.5)]
    assert [row["member"] for row in rows] == [None, None, None, 7, None, None]
    assert len({tuple(row) for row in rows}) == 1
    lines = [line.split() for line in squall("ls", "-p", "level,step,member", path).out.splitlines()]
    assert lines == [["1", "6", "-"], ["0.07-0.28", "0", "-"], ["1", "3-9", "-"], ["1", "0", "7"], ["-", "0", "-"], ["1", "90m", "-"]]


def test_ls_of_several_files_says_which_file_a_row_is_of(squall, archive):
    paths = sorted(archive.iterdir())[:2]
    rows = [line.split() for line in squall("ls", *paths).out.splitlines()]
    listed = json.loads(squall("ls", "--json", *paths).out)
    assert [row[-1] for row in rows] == [row["path"] for row in listed]
    assert {row["path"] for row in listed} == {str(path) for path in paths}
    assert squall("ls", "-p", "path", *paths).out.split() == [row["path"] for row in listed]


def test_ls_of_a_store_has_a_row_an_array(squall, archive, tmp_path):
    store = tmp_path / "s.zarr"
    squall("convert", archive, store)
    listed = {row["name"]: row for row in json.loads(squall("ls", "--json", store).out)}
    assert listed["t"]["shape"] == [2, 3, 30, 20] and listed["t"]["chunks"] == [1, 3, 30, 20]
    assert listed["t"]["dims"] == ["init_time", "step", "y", "x"] and listed["t"]["type"] == "float32"
    done = squall("ls", store, first_file(archive), check=False)
    assert done.code == 3 and f"{store}: arrays, which are listed apart from GRIB fields" in done.err and done.out
    (store / "zarr.json").write_text("{")
    done = squall("ls", store, check=False)
    assert done.code == 1 and "zarr.json" in done.err and done.out == ""


def test_ls_of_several_stores_lists_the_arrays_of_each(squall, tmp_path):
    paths = [tmp_path / f"s{k}.zarr" for k in range(3)]
    for path in paths:
        make_store(path, a=np.arange(3.0), b=np.arange(4))
    wanted = [(str(path), name) for path in paths for name in "ab"]
    for given in (paths, [tmp_path / "s*.zarr"], [paths[0], tmp_path / "s[12].zarr"]):
        listed = json.loads(squall("ls", "--json", "-p", "path,name", *given).out)
        assert [(row["path"], row["name"]) for row in listed] == wanted
    assert squall("ls", "-p", "path", "-w", "name=b", *paths).out.split() == [str(path) for path in paths]
    rows = squall("ls", *paths).out.splitlines()
    assert len(rows) == 6 and rows[5].endswith(str(paths[2]))

    (paths[1] / "zarr.json").write_text("{")
    done = squall("ls", "--json", *paths, check=False)
    assert done.code == 3 and "s1.zarr" in done.err and len(json.loads(done.out)) == 4
    (paths[0] / "b" / "zarr.json").write_text("{")
    done = squall("ls", *paths, check=False)
    assert done.code == 3 and "s1.zarr" in done.err and "s0.zarr" in done.err
    done = squall("ls", paths[0], check=False)
    assert done.code == squall("info", paths[0], check=False).code == 3 and "s0.zarr" in done.err
    done = squall("ls", tmp_path / "none*.nc", check=False)
    assert done.code == 1 and "none*.nc" in done.err


def test_ls_of_a_pattern_of_grib_files(squall, archive):
    assert squall("ls", archive / "*").out == squall("ls", *sorted(archive.iterdir())).out


def test_ls_of_a_folder_says_what_to_name(squall, archive):
    done = squall("ls", archive, check=False)
    assert done.code == 1 and f"{archive}: a folder; name the files in it, such as {archive}/*" in done.err


def test_get_writes_a_field_that_ecCodes_agrees_with(squall, archive, tmp_path):
    import eccodes

    path = first_file(archive)
    squall("get", path, "--field", "2", "-o", tmp_path / "field.npy")
    ours = np.load(tmp_path / "field.npy")
    with open(path, "rb") as f:
        for _ in range(2):
            handle = eccodes.codes_grib_new_from_file(f)
    theirs = eccodes.codes_get_values(handle).astype("float32").reshape(30, 20)
    np.testing.assert_array_equal(ours, theirs)


def test_get_keeps_zero_bytes_in_texts(squall, tmp_path):
    for dtype, texts in ((str, ["a\0b", "\0", ""]), ("U3", ["a\0b", "\0c", ""])):
        path = tmp_path / f"{len(texts[1])}.zarr"
        zarr.create_array(path, name="t", shape=3, dtype=dtype)[:] = np.array(texts, dtype=object if dtype is str else dtype)
        assert [row["value"] for row in json.loads(squall("get", path, "t", "--json").out)] == texts
        assert squall("get", path, "t").out == "dim_0,t\n" + "".join(f"{i},{t}\n" for i, t in enumerate(texts))
        squall("get", path, "t", "-o", tmp_path / "texts.npy")
        assert np.load(tmp_path / "texts.npy").tolist() == np.array(texts, "U3").tolist()


def test_get_prints_csv_with_coordinates(squall, archive):
    out = squall("get", first_file(archive), "t", "-s", "init_time=0,step=1,y=0:2,x=0:3").out.splitlines()
    assert out[0] == "y,x,t"
    assert len(out) == 1 + 6


@pytest.mark.parametrize(
    "units, values, labels",
    [
        ("seconds", [0, 3600, 5400, 45, 864000], ["0h", "1h", "90m", "45s", "240h"]),
        ("hours", [0, 6, 1.5, -3], ["0h", "6h", "90m", "-3h"]),
        ("days", [0, 1, 0.25], ["0d", "1d", "6h"]),
        ("m", [0, 60, 3600], ["0", "60", "3600"]),
    ],
)
def test_steps_are_labelled_with_their_unit_which_nearest_takes(squall, tmp_path, units, values, labels):
    import pandas as pd

    values = np.array(values, float)
    make_store(tmp_path / "s.zarr", step=(values, "step", {"units": units}), v=(np.arange(values.size), "step", {}))
    assert squall("get", tmp_path / "s.zarr", "v").out == "step,v\n" + "".join(f"{label},{i}\n" for i, label in enumerate(labels))
    if units == "m":
        return
    assert [row["step"] for row in json.loads(squall("get", tmp_path / "s.zarr", "v", "--json").out)] == labels
    for i, label in enumerate(labels):
        assert pd.to_timedelta(label.replace("d", "D")) == pd.to_timedelta(values[i], units)
        assert squall("get", tmp_path / "s.zarr", "v", "--nearest", f"step={label}").out == f"v\n{i}\n"


def test_get_warns_of_damage_that_may_be_what_is_missing(squall, archive, tmp_path):
    whole = first_file(archive).read_bytes()
    second = json.loads(squall("ls", "--json", first_file(archive)).out)[1]["offset"]
    (tmp_path / "bad.grib").write_bytes(whole[:second] + b"XXXX" + whole[second + 4 :])
    done = squall("get", tmp_path / "bad.grib", "t", "-s", "y=0,x=0", check=False)
    assert done.code == 3 and done.err.count(f"at byte {second}") == 1
    assert [line.split(",")[2] == "nan" for line in done.out.splitlines()[1:]] == [False, True, False]


def test_get_refuses_what_is_not_there(squall, archive):
    path = first_file(archive)
    assert "no number 999" in squall("get", path, "--field", "999", check=False).err
    done = squall("get", path, "nonsense", check=False)
    assert done.code == 1 and "nonsense" in done.err and "t" in done.err
    done = squall("get", path, "t", "-s", "step=77", check=False)
    assert done.code == 2 and "outside 0 to 2" in done.err
    assert "has no dimension depth" in squall("get", path, "t", "-s", "depth=0", check=False).err


def test_get_prints_json_with_null_for_what_json_cannot_say(squall, archive, tmp_path):
    box = "init_time=0,step=1,y=0:2,x=0:3"
    rows = json.loads(squall("get", first_file(archive), "t", "-s", box, "--json").out)
    csv = [line.split(",") for line in squall("get", first_file(archive), "t", "-s", box).out.splitlines()[1:]]
    assert [list(row) for row in rows] == [["y", "x", "value"]] * 6
    np.testing.assert_array_equal([list(row.values()) for row in rows], np.array(csv, float))
    values = np.array([1, np.nan, np.inf], "float32")
    make_store(tmp_path / "s.zarr", v=values)
    assert [row["value"] for row in json.loads(squall("get", tmp_path / "s.zarr", "v", "--json").out)] == [1, None, None]


def test_dimensions_may_be_chosen_from_in_several_options_but_each_once(squall, archive):
    path = first_file(archive)
    whole = squall("get", path, "t", "-s", "init_time=0,step=1,y=0:2,x=0:3").out
    assert squall("get", path, "t", "-s", "init_time=0", "-s", "step=1,y=0:2", "-s", "x=0:3").out == whole
    for args in (["-s", "step=0,step=1"], ["-s", "step=0", "-s", "step=1"], ["-s", "step=0", "--nearest", "step=1h"]):
        done = squall("get", path, "t", *args, check=False)
        assert done.code == 2 and "step is chosen from twice" in done.err


def test_nearest_finds_the_index(squall, archive):
    path = first_file(archive)
    near = squall("get", path, "t", "--nearest", "step=2h,y=0,x=0,init_time=2022-01-01").out.splitlines()
    info = {a["name"]: a for a in json.loads(squall("info", "--json", path).out)["arrays"]}
    places = {}
    for dim in "yx":
        values = squall("get", path, dim).out.splitlines()[1:]
        places[dim] = np.argmin(np.abs([float(line) for line in values]))
        assert len(values) == info[dim]["shape"][0]
    box = f"init_time=0,step=2,y={places['y']},x={places['x']}"
    assert squall("get", path, "t", "-s", box).out.splitlines() == near


@pytest.mark.parametrize(
    "nearest, words",
    [
        ("init_time=2022", "a date is wanted"),
        ("init_time=2022010106", "a date is wanted"),
        ("step=6", "a time with its unit"),
        ("y=2022-01-01", "a number is wanted (m)"),
        ("lat=51.5", "no dimension lat; it has init_time step y x (y and x are in the units"),
    ],
)
def test_nearest_takes_no_value_of_another_kind(squall, archive, nearest, words):
    done = squall("get", first_file(archive), "t", "--nearest", nearest, check=False)
    assert done.code == 2 and words in done.err and done.out == ""


def test_nearest_counts_in_the_units_of_the_store(squall, tmp_path):
    hours = np.arange(0, 48, 6)
    make_store(
        tmp_path / "s.zarr",
        lead=(hours, "lead", {"units": "hours"}),
        time=(hours, "time", {"units": "hours since 1900-01-01"}),
        v=(hours * 10.0, "lead", {}),
        w=(hours * 10.0, "time", {}),
    )
    assert squall("get", tmp_path / "s.zarr", "v", "--nearest", "lead=1d").out == "v\n240\n"
    assert squall("get", tmp_path / "s.zarr", "w", "--nearest", "time=1900-01-02").out == "w\n240\n"
    done = squall("get", tmp_path / "s.zarr", "w", "--nearest", "time=24", check=False)
    assert done.code == 2 and "a date is wanted" in done.err


@pytest.mark.parametrize(
    "dim, attributes",
    [
        ("lon", {}),
        ("longitude", {"units": "degrees"}),
        ("nx", {"units": "degrees_east"}),
        ("nx", {"units": "degreeE"}),
        ("nx", {"standard_name": "longitude", "units": "degrees"}),
    ],
)
def test_nearest_goes_round_the_globe(squall, tmp_path, dim, attributes):
    lon = np.arange(0.0, 360, 10)
    make_store(tmp_path / "s.zarr", **{dim: (lon, dim, attributes)}, v=(lon, dim, {}))
    for wanted, value in (("-10", 350), ("358", 0), ("725", 0), ("-3", 0)):
        done = squall("get", tmp_path / "s.zarr", "v", "--nearest", f"{dim}={wanted}")
        assert done.out == f"v\n{value}\n" and done.err == ""


def test_nearest_goes_round_nothing_but_longitudes(squall, tmp_path):
    values = np.arange(0.0, 360, 10)
    make_store(
        tmp_path / "s.zarr",
        x=(values, "x", {"units": "m"}),
        lon=(values, "lon", {"units": "m"}),
        v=(values, "x", {}),
        w=(values, "lon", {}),
    )
    assert squall("get", tmp_path / "s.zarr", "v", "--nearest", "x=358").out == "v\n350\n"
    assert squall("get", tmp_path / "s.zarr", "w", "--nearest", "lon=358").out == "w\n350\n"


def test_nearest_warns_of_what_lies_far_outside(squall, tmp_path):
    lat = np.arange(60.0, 40, -5)
    make_store(tmp_path / "s.zarr", lat=(lat, "lat", {"units": "degrees_north"}), v=(lat, "lat", {}))
    assert squall("get", tmp_path / "s.zarr", "v", "--nearest", "lat=64").err == ""
    done = squall("get", tmp_path / "s.zarr", "v", "--nearest", "lat=1000")
    assert done.out == "v\n60\n" and "lat=1000 lies outside its coordinate, 60 to 45; 60 is taken" in done.err


def test_text_labels_are_shown_and_chosen_by(squall, archive, tmp_path):
    store = tmp_path / "s.zarr"
    squall("convert", archive, store, "--stack", "variable")
    point = "init_time=0,step=0,y=0,x=0"
    rows = [line.split(",") for line in squall("get", store, "data", "-s", point).out.splitlines()]
    assert rows[0] == ["variable", "data"] and len(rows) == 5
    for name, value in rows[1:]:
        assert squall("get", store, "data", "-s", point, "--nearest", f"variable={name}").out == f"data\n{value}\n"
    assert [line.split(",")[0] for line in squall("get", store, "data", "-s", point + ",variable=2:").out.splitlines()[1:]] == [
        name for name, _ in rows[3:]
    ]
    assert squall("get", store, "data", "--nearest", "variable=nonsense", check=False).code == 2


def test_a_dimension_without_a_name_goes_by_its_place(squall, tmp_path):
    make_store(tmp_path / "s.zarr", v=np.arange(3.0))
    assert squall("get", tmp_path / "s.zarr", "v", "-s", "dim_0=1:").out == "dim_0,v\n1,1\n2,2\n"
    assert "it has dim_0" in squall("get", tmp_path / "s.zarr", "v", "-s", "x=1", check=False).err


def test_info_tells_the_structure_as_text_and_json(squall, archive):
    info = json.loads(squall("info", "--json", first_file(archive)).out)
    by_name = {a["name"]: a for a in info["arrays"]}
    assert info["format"] == "grib"
    assert by_name["t"]["dims"] == ["init_time", "step", "y", "x"]
    assert by_name["t"]["shape"] == [1, 3, 30, 20]
    assert "  t " in squall("info", first_file(archive)).out


def test_info_prints_attributes_a_line_each(squall, tmp_path):
    """As ncdump does; long ones are cut so that they fit 80 columns, whole characters only."""
    import zarr

    group = zarr.open_group(tmp_path / "s.zarr", mode="w")
    attributes = {"title": 'a "quoted" one', "levels": [1, 2, {"x": "}]"}], "nothing": None, "history": "ä" * 300, "k" * 90: "v" * 90}
    group.attrs.update(attributes)
    a = group.create_array("t", shape=(2,), dtype="float32", dimension_names=["x"])
    a.attrs.update({"units": "K", "long_name": "temperature"})
    lines = squall("info", "-v", tmp_path / "s.zarr").out.splitlines()
    globals_ = lines[lines.index("attributes:") + 1 :]
    assert globals_[0] == '  :title = "a \\"quoted\\" one"'
    assert globals_[1].replace(" ", "") == ':levels=[1,2,{"x":"}]"}]'
    assert globals_[2] == "  :nothing = null"
    assert globals_[3].startswith('  :history = "ää') and globals_[3].endswith("ää... (602 bytes)") and len(globals_[3]) == 80
    assert globals_[4].startswith(f'  :{"k" * 90} = "v') and globals_[4].endswith("v... (92 bytes)")
    assert len(globals_) == 5
    assert lines[lines.index('      t:units = "K"') + 1] == '      t:long_name = "temperature"'
    assert json.loads(squall("info", "--json", tmp_path / "s.zarr").out)["attributes"] == attributes


def test_info_of_a_store_without_arrays_shows_what_it_has(squall, tmp_path):
    root = zarr.open_group(tmp_path / "s.zarr", mode="w", attributes={"title": "nothing yet"})
    root.create_group("later")
    done = squall("info", tmp_path / "s.zarr")
    assert ':title = "nothing yet"' in done.out and "later" in done.out and "arrays (" not in done.out


def test_json_of_info_is_what_strict_parsers_take(squall, tmp_path):
    def refuse(word):
        raise ValueError(word)

    odd = {"a": np.nan, "b": [1e-5, np.inf, -np.inf, {"NaN": np.nan}], "c": 'NaN, "Infinity"', "d": None, "e": True}
    null = {"a": None, "b": [1e-5, None, None, {"NaN": None}], "c": 'NaN, "Infinity"', "d": None, "e": True}
    root = zarr.open_group(tmp_path / "s.zarr", mode="w", attributes=odd)
    root.create_group("g", attributes=odd)
    root.create_array("v", shape=(3,), dtype="f8", fill_value=np.nan, attributes=odd)
    told = json.loads(squall("info", "--json", tmp_path / "s.zarr").out, parse_constant=refuse)
    assert told["attributes"] == told["groups"][0]["attributes"] == told["arrays"][0]["attributes"] == null
    assert told["arrays"][0]["fill_value"] is None
    assert "a = NaN" in squall("info", tmp_path / "s.zarr").out


def test_info_tells_the_grid(squall, archive, tmp_path):
    squall("convert", archive, tmp_path / "s.zarr")
    squall("convert", archive, tmp_path / "stack.zarr", "--stack", "variable", "--coarsen", "y=2,x=2")
    files = squall("get", first_file(archive), "x").out.splitlines()
    first, last = (float(files[i]) for i in (1, -1))
    for path, factor in ((first_file(archive), 1), (archive, 1), (tmp_path / "s.zarr", 1), (tmp_path / "stack.zarr", 2)):
        info = json.loads(squall("info", "--json", path).out)
        (grid,) = info["grids"]
        assert (grid["type"], grid["crs"], grid["dims"]) == ("transverse_mercator", "EPSG:27700", ["y", "x"])
        assert grid["shape"] == [30 // factor, 20 // factor]
        half = (factor - 1) * 1000
        x = {"name": "x", "units": "m", "first": first + half, "last": last - half, "spacing": 2000 * factor}
        assert grid["axes"][1] == x and grid["axes"][0]["spacing"] == -2000 * factor
        text = squall("info", path).out.splitlines()
        at = text.index(f"grid: transverse_mercator, {30 // factor} x {20 // factor}, EPSG:27700")
        assert text[at + 2].split() == f"x {first + half:.10g} to {last - half:.10g} by {2000 * factor} m".split()


@pytest.mark.parametrize(
    "name, grid",
    [
        ("hpa_and_pa.grib", "grid: regular_ll, 37 x 72|latitude 90 to -90 by -5 degrees_north|longitude 0 to 355 by 5 degrees_east"),
        ("regular_gg_ml.grib", "grid: regular_gg, 64 x 128|latitude 87.86379884 to -87.86379884 degrees_north"),
        ("iris_reduced_ll.grib1", "grid: reduced_ll, 3447 points|latitude -90 to 0 degrees_north|longitude -30 to 60 degrees_east"),
        ("lambert_grid.grib", "grid: lambert, 475 x 475, lambert_conformal_conic"),
    ],
)
def test_info_tells_the_grids_of_real_files(squall, shared, name, grid):
    lines = [" ".join(line.split()) for line in squall("info", shared / "data" / "grib" / name).out.splitlines()]
    at = lines.index(grid.split("|")[0])
    assert lines[at : at + grid.count("|") + 1] == grid.split("|")


def test_a_grid_whose_coordinate_is_damaged_is_still_told(squall, archive, tmp_path):
    squall("convert", archive, tmp_path / "s.zarr")
    (tmp_path / "s.zarr" / "y" / "c" / "0").write_bytes(b"nonsense")
    done = squall("info", tmp_path / "s.zarr", check=False)
    assert done.code == 3 and done.err.count("y/c/0") == 1 and "\ngrid: transverse_mercator, 30 x 20" in done.out
    done = squall("info", "--json", tmp_path / "s.zarr", check=False)
    info = json.loads(done.out)
    assert done.code == 3 and [axis["name"] for axis in info["grids"][0]["axes"]] == ["x"] and "y/c/0" in info["problems"][0]


def test_info_of_a_folder_shows_its_files_as_one_dataset(squall, archive):
    shapes = {a["name"]: a["shape"] for a in json.loads(squall("info", "--json", archive).out)["arrays"]}
    assert shapes["t"] == [2, 3, 30, 20]


def test_bench_reports_the_keys_that_programs_read(squall, archive):
    speed = json.loads(squall("bench", first_file(archive), "--threads", "1", "--json").out)
    assert {"bytes", "points", "seconds", "points_per_second", "bytes_per_second"} <= set(speed)
    fields = len(squall("ls", first_file(archive)).out.splitlines())
    assert speed["points"] == fields * 600
    assert speed["bytes"] == os.path.getsize(first_file(archive))


def test_bench_reads_folders_and_refuses_what_holds_nothing_to_read(squall, archive, tmp_path):
    speed = json.loads(squall("bench", archive, "--json").out)
    assert speed["points"] >= 2 * 3 * 4 * 600
    make_store(tmp_path / "s.zarr", v=np.zeros(2, "int8"))
    document = tmp_path / "s.zarr" / "v" / "zarr.json"
    document.write_text(document.read_text().replace('"int8"', '"float8_e4m3"'))
    done = squall("bench", tmp_path / "s.zarr", check=False)
    assert done.code == 1 and "nothing in it can be read" in done.err and done.out == ""


def test_verify_says_once_what_is_damaged(squall, tmp_path):
    make_store(tmp_path / "s.zarr", v=np.arange(3.0))
    array = zarr.open_array(tmp_path / "dmg.zarr", mode="w", shape=3, dtype="f8")
    array[:] = 1
    for store, name, inside in (("s.zarr", "v", "v/c/0"), ("dmg.zarr", "dmg.zarr", "c/0")):
        chunk = tmp_path / store / inside
        chunk.write_bytes(b"xx")
        line = squall("verify", tmp_path / store, check=False).out.splitlines()[0]
        assert line.startswith(f"{tmp_path / store}: {name}: chunk 0: {inside}: zstd: ")


def test_completion_is_valid_bash(squall):
    script = squall("completion", "bash").out
    assert subprocess.run(["bash", "-n"], input=script, text=True).returncode == 0
    words = subprocess.run(
        ["bash", "-c", script + "\nCOMP_WORDS=(squall convert --ch); COMP_CWORD=2; _squall; echo ${COMPREPLY[*]}"],
        capture_output=True,
        text=True,
    ).stdout
    assert words.strip() == "--chunks"


@pytest.mark.parametrize(
    "words, offered",
    [
        ("convert --drift ''", "error warn first"),
        ("convert ''", ""),  # bash's own completion of paths then
        ("completion ''", "bash zsh fish"),
        ("help ver", "verify"),
    ],
)
def test_bash_completes_values_and_paths(squall, words, offered):
    script = squall("completion", "bash").out
    command = f"{script}\nCOMP_WORDS=(squall {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _squall; echo ${{COMPREPLY[*]}}"
    assert subprocess.run(["bash", "-c", command], capture_output=True, text=True).stdout.strip() == offered


def test_zsh_completion_may_be_sourced(squall):
    if not shutil.which("zsh"):
        pytest.skip("no zsh")
    command = squall("completion", "zsh").out + "\necho ${_comps[squall]}"
    done = subprocess.run(["zsh", "-f", "-c", "autoload -Uz compinit; compinit -D -u\n" + command], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("_squall", "")


def test_fish_completes_values_and_paths(squall, tmp_path):
    if not shutil.which("fish"):
        pytest.skip("no fish")
    (tmp_path / "archive").mkdir()
    for line, offered in [
        ("convert --drift ", ["error", "first", "warn"]),
        ("completion ", ["bash", "fish", "zsh"]),
        ("convert arch", ["archive/"]),
    ]:
        command = squall("completion", "fish").out + f"\ncomplete -C 'squall {line}'"
        done = subprocess.run(["fish", "--no-config", "-c", command], capture_output=True, text=True, cwd=tmp_path)
        assert sorted(word.split("\t")[0] for word in done.stdout.splitlines()) == offered


@pytest.mark.parametrize("shell, quote", [("zsh", "'\\''"), ("fish", "\\'")])
def test_completion_quotes_apostrophes(squall, shell, quote):
    script = squall("completion", shell).out
    assert f"this text, or a command{quote}s" in script
    for line in script.replace(quote, "").splitlines():
        assert line.count("'") % 2 == 0, line


def test_the_manual_page_has_every_option(squall):
    page = squall("help", "--man").out
    for option in "chunks codec select coarsen overwrite threads".split():
        assert f"\\-\\-{option}" in page
    assert "\\fB\\-o\\fR, \\fB\\-\\-output\\fR FILE" in page


def test_a_full_stdout_is_an_error(squall, archive):
    with open("/dev/full", "w") as full:
        command = [os.environ.get("SQUALL", "build/squall"), "ls", first_file(archive)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "stdout" in done.stderr
