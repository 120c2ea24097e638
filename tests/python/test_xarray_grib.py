"""engine="squall" on GRIB files against cfgrib: identical but for the files in docs/xarray.md's table, which says why."""

import inspect
import logging
import os
import pathlib
import pickle
import re
import warnings

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
pytest.importorskip("cfgrib")
import squall  # noqa: E402

HERE = pathlib.Path(__file__).parent
FILES = HERE.parents[2] / "shared" / "data" / "grib"
PAGE = HERE.parents[1] / "docs" / "xarray.md"
GRIDS = {"regular_ll", "regular_gg"}
SMALL_BYTES = 3_000  # those in the normal run

needs_files = pytest.mark.skipif(not FILES.is_dir(), reason=f"{FILES} is not there")


def rectangular_files():
    """GRIB files with latitudes and longitudes as dimensions."""
    table = FILES.parent / "peers" / "grib.tsv"
    if not table.exists():
        return []
    head, *rows = (line.split("\t") for line in table.read_text().splitlines())
    grids = head.index("gridTypes")
    return [FILES / row[0] for row in rows if GRIDS & set(row[grids].split(","))]


def listed():
    """File → reason, of the page's table."""
    page = PAGE.read_text()
    part = page[page.index("### What differs from cfgrib") :].partition("\n## ")[0]
    found = {}
    for names, reason in re.findall(r"^\| (`[^|]*) \| ([^|]*) \|$", part, re.M):
        found |= dict.fromkeys(re.findall(r"`([^`]*)`", names), reason)
    return found


def by_cfgrib(path, **options):
    logging.disable(logging.CRITICAL)
    try:
        return xr.open_dataset(path, engine="cfgrib", **({"indexpath": ""} | options))
    except Exception:
        return None
    finally:
        logging.disable(logging.NOTSET)


def without_history(ds):
    return ds.assign_attrs(history="").load()


def is_same(path, **options):
    warnings.simplefilter("ignore")
    theirs = by_cfgrib(path, **options)
    ours = xr.open_dataset(path, engine="squall", indexpath="", **options)
    try:
        return theirs is not None and without_history(ours).identical(without_history(theirs))
    except squall.Error:
        return False


def check(path):
    reason = listed().get(path.name)
    same = is_same(path)
    assert same or reason, f"{path.name} differs from what cfgrib gives, and docs/xarray.md does not say why"
    assert not (same and reason), f"{path.name} is what cfgrib gives; docs/xarray.md says that it is not: {reason}"


RECTANGULAR = rectangular_files()
SMALL = [path for path in RECTANGULAR if path.stat().st_size < SMALL_BYTES]


@needs_files
@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.name)
def test_a_small_file_is_what_cfgrib_gives(path):
    check(path)


@pytest.mark.long
@needs_files
@pytest.mark.parametrize("path", [path for path in RECTANGULAR if path not in SMALL], ids=lambda path: path.name)
def test_a_large_file_is_what_cfgrib_gives(path):
    check(path)


@needs_files
def test_the_table_of_differences_names_files_that_are_there():
    assert listed().keys() <= {path.name for path in RECTANGULAR}


MEMBERS = FILES / "era5-levels-members.grib"


# keyword of cfgrib's → values of it, each tried on all of KEYWORD_FILES
KEYWORDS = {
    "filter_by_keys": [{"shortName": "t", "level": 500}, {"number": [1, 2], "paramId": 129}, {"edition": 1}, {"typeOfLevel": "surface"}],
    "read_keys": [["edition"], ["Nx", "Ny"], ["dataDate", "level"], ["number", "subCentre"], ["bottomLevel", "tablesVersion"]],
    "ignore_keys": [["typeOfLevel"], ["stepType", "dataType"], ["subCentre"], ["centre", "edition"]],
    "encode_cf": [("time", "geography", "vertical"), ("parameter", "geography"), ("geography",), ("time", "geography")],
    "squeeze": [False],
    "time_dims": [("valid_time",), ("step",), ("time",), ("time", "valid_time"), ("valid_time", "step")],
    "errors": ["ignore", "raise", "warn"],
    "extra_coords": [{"valid_time": "time"}, {"dataDate": "time"}, {"endStep": "step"}],
    "coords_as_attributes": [["step"], ["surface"], ["number", "step"], ["isobaricInhPa"]],
    "values_dtype": [np.dtype("float64"), np.dtype("float32")],
    "indexpath": [""],
    "cache_geo_coords": [False],
    "lock": [None],
    "drop_variables": [["z"], "t"],
    "decode_times": [False],
    "decode_timedelta": [True, False],
    "mask_and_scale": [False],
    "decode_coords": [False],
    "concat_characters": [False],
    "use_cftime": [None],
}
KEYWORD_FILES = ["era5-levels-members.grib", "regular_ll_sfc.grib", "multi_param_on_multi_dims.grib", "step_60m.grib", "regular_gg_ml.grib"]


def test_every_keyword_of_cfgrib_is_tried():
    from cfgrib.xarray_plugin import CfGribBackend

    parameters = inspect.signature(CfGribBackend.open_dataset).parameters
    assert KEYWORDS.keys() == parameters.keys() - {"self", "filename_or_obj"}


def lost_by(path, **options):
    """What cfgrib gives and squall does not, or not the same; squall may have more: what cfgrib drops."""
    warnings.simplefilter("ignore")
    theirs = by_cfgrib(path, **options)
    if theirs is None:
        return None
    if not theirs.data_vars:  # an empty dataset there, an error here
        with pytest.raises(squall.Error, match="no field has"):
            xr.open_dataset(path, engine="squall", **options)
        return []
    ours = xr.open_dataset(path, engine="squall", **options).assign_attrs(history=theirs.history)
    lost = [] if ours.attrs == theirs.attrs else ["attributes"]
    return lost + [str(name) for name in theirs.variables if name not in ours.variables or not ours[name].identical(theirs[name])]


@needs_files
@pytest.mark.parametrize("keyword, value", [(keyword, value) for keyword, values in KEYWORDS.items() for value in values], ids=str)
def test_a_keyword_of_cfgrib_means_what_it_means_there(keyword, value):
    found = [lost_by(FILES / name, **({"indexpath": ""} | {keyword: value})) for name in KEYWORD_FILES]
    assert [lost for lost in found if lost] == []
    assert found.count(None) < len(found)  # not all were refused there


@needs_files
@pytest.mark.parametrize("keyword, key", [("read_keys", "bitsPerValue"), ("read_keys", "endStep"), ("extra_coords", "bitsPerValue")])
def test_a_key_that_squall_does_not_know_is_refused_by_name(keyword, key):
    with pytest.raises(NotImplementedError, match=f"{keyword}: squall does not know the key '{key}'; it knows DxInMetres, "):
        xr.open_dataset(MEMBERS, engine="squall", **{keyword: {key: "time"}})


@needs_files
def test_what_is_unpickled_is_the_same():
    ds = xr.open_dataset(MEMBERS, engine="squall", filter_by_keys={"level": 500})
    packed = pickle.dumps(ds["t"].variable._data)
    assert len(packed) < 1000
    assert pickle.loads(pickle.dumps(ds)).identical(ds)


@needs_files
def test_a_file_that_changed_is_refused(tmp_path):
    path = tmp_path / "members.grib"
    path.write_bytes(MEMBERS.read_bytes())
    packed = pickle.dumps(xr.open_dataset(path, engine="squall"))
    path.write_bytes(MEMBERS.read_bytes() + MEMBERS.read_bytes())
    with pytest.raises(squall.Error, match="changed since it was opened"):
        pickle.loads(packed).load()


@needs_files
def test_a_selection_reads_what_numpy_would_select():
    ds, whole = xr.open_dataset(MEMBERS, engine="squall"), xr.open_dataset(MEMBERS, engine="squall").load()
    for select in (
        lambda t: t.isel(number=[3, 1], time=2, latitude=slice(None, None, -7)),
        lambda t: t.sel(isobaricInhPa=500).isel(longitude=[5, 90, 3]),
        lambda t: t.isel(number=xr.DataArray([0, 4], dims="p"), time=xr.DataArray([1, 3], dims="p")),
        lambda t: t.transpose("longitude", ..., "number").isel(time=0),
    ):
        assert select(ds["t"]).identical(select(whole["t"]))


@needs_files
def test_bytes_and_file_objects_are_read_from_memory():
    ds = xr.open_dataset(MEMBERS, engine="squall")
    for source in (MEMBERS.read_bytes(), open(MEMBERS, "rb")):  # noqa: SIM115
        found = xr.open_dataset(source, engine="squall")
        assert found.equals(ds)
        assert pickle.loads(pickle.dumps(found)).equals(ds)


@needs_files
def test_files_of_a_list_and_of_a_pattern_are_one_dataset(tmp_path):
    import eccodes as ec
    from oracle import handles  # messages of a file, one by one

    for i, handle in enumerate(handles(MEMBERS)):
        with open(tmp_path / f"{i % 3}.grib", "ab") as file:
            ec.codes_write(handle, file)
    whole = xr.open_dataset(MEMBERS, engine="squall")
    for source in (str(tmp_path / "*.grib"), [tmp_path / f"{i}.grib" for i in range(3)]):
        found = xr.open_dataset(source, engine="squall", chunks={})
        assert without_history(found).identical(without_history(whole))


@needs_files
def test_variables_on_other_levels_are_there_with_coordinates_of_their_own():
    path = FILES / "uv_on_different_levels.grib"
    theirs, ours = by_cfgrib(path), xr.open_dataset(path, engine="squall")
    assert "v" not in theirs and ours["v"].dims == ("step", "isobaricInhPa_v", "latitude", "longitude")
    alone = xr.open_dataset(path, engine="cfgrib", indexpath="", filter_by_keys={"shortName": "v"})
    np.testing.assert_array_equal(ours["v"].values, alone["v"].values)
    np.testing.assert_array_equal(ours["isobaricInhPa_v"], alone["isobaricInhPa"])


@needs_files
def test_what_cfgrib_refuses_is_there_under_names_that_say_what_differs():
    ds = xr.open_dataset(FILES / "cfrzr_and_cprat.grib", engine="squall")
    assert {"cfrzr", "cfrzr_avg", "cpr", "cpr_avg"} == set(ds.data_vars)
    assert ds["cfrzr_avg"].attrs["GRIB_stepType"] == "avg"


@needs_files
def test_a_group_of_a_tree_is_a_hypercube():
    path = FILES / "uv_on_different_levels.grib"
    tree = xr.open_datatree(path, engine="squall")
    assert {node.path: set(node.data_vars) for node in tree.subtree} == {"/": set(), "/isobaricInhPa": {"u"}, "/isobaricInhPa_v": {"v"}}
    one = xr.open_dataset(path, engine="squall", group="isobaricInhPa_v")
    alone = by_cfgrib(path, filter_by_keys={"shortName": "v"})
    assert without_history(one).identical(without_history(alone))


@needs_files
def test_every_field_of_every_file_has_one_place():
    from squall import _cfgrib

    known = 0
    for path in filter(pathlib.Path.is_file, FILES.iterdir()):
        try:
            fields = _cfgrib.Fields((str(path),))
        except squall.Error:  # no GRIB, or nothing in it that can be read
            continue
        cubes = _cfgrib.hypercubes(fields, fields.selected({}), _cfgrib.Settings.taken({}))
        rows = np.concatenate([cube.fields.ravel() for cube in cubes])
        assert sorted(rows[rows >= 0]) == list(range(len(fields.rows))), path.name
        known += len(fields.rows)
    assert known > 1800


def written(path, fields):
    """Fields of a small grid: dictionaries of keys and a value that all points have."""
    import eccodes as ec

    with open(path, "wb") as file:
        for keys, value in fields:
            handle = ec.codes_grib_new_from_samples("regular_ll_pl_grib2")
            for key, of_key in {"bitsPerValue": 16, **keys}.items():
                ec.codes_set(handle, key, of_key)
            values = np.arange(ec.codes_get_size(handle, "values")) / 8.0 + value
            ec.codes_set_values(handle, values)
            ec.codes_write(handle, file)
            ec.codes_release(handle)
    return path


def test_a_field_that_is_there_twice_alike_is_there_once(tmp_path):
    t, z = {"shortName": "t", "level": 500}, {"shortName": "z", "level": 500}
    path = written(tmp_path / "twice.grib2", [(t, 1), (z, 7), (t, 1), (t, 1)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = xr.open_dataset(path, engine="squall", errors="raise")
    assert without_history(found).identical(without_history(by_cfgrib(path)))


def test_a_file_and_its_copy_are_what_the_file_is(tmp_path):
    """Steps begin at other times, which tells none of the fields of one place apart."""
    fields = [({"shortName": "t", "level": level, "endStep": step}, level + step) for level in (850, 500) for step in (0, 6, 12)]
    paths = [written(tmp_path / name, fields) for name in ("a.grib2", "b.grib2")]
    one, both = xr.open_dataset(paths[0], engine="squall"), xr.open_dataset(paths, engine="squall")
    assert one["t"].shape[:2] == (3, 2)
    assert without_history(both).identical(without_history(one))


def test_a_field_that_is_there_again_with_other_values_is_a_variable_of_its_own(tmp_path):
    levels = [({"shortName": "t", "level": level}, level) for level in (1000, 850, 500)]
    other = [({"shortName": "t", "level": level}, value) for level, value in ((850, -1), (850, 850), (500, -2), (850, -3), (850, -1))]
    path = written(tmp_path / "again.grib2", levels + other)
    with pytest.warns(UserWarning, match=r"t_2 \(t\), t_3 \(t\)"):
        found = xr.open_dataset(path, engine="squall")
    first = {name: found[name].isel(latitude=0, longitude=0).values.round().tolist() for name in found.data_vars}
    assert first == {"t": [1000, 850, 500], "t_2": [-1, -2], "t_3": -3}
    assert found["isobaricInhPa_t_2"].values.tolist() == [850, 500]
    assert pickle.loads(pickle.dumps(found["t_3"].variable._data)).get_duck_array().flat[0].round() == -3
    theirs = by_cfgrib(path)
    np.testing.assert_array_equal(found["t"].values, theirs["t"].values)


def corner(array):
    """The first point's values, which are those of the fields."""
    return array.isel(latitude=0, longitude=0).values.round().tolist()


def test_the_first_of_fields_that_differ_counts_and_convert_takes_the_last(tmp_path):
    """As docs/xarray.md and docs/cubes.md say."""
    path = written(tmp_path / "again.grib2", [({"shortName": "t", "level": 500}, value) for value in (1, 2, 3)])
    with pytest.warns(UserWarning, match=r"t_2 \(t\)"):
        assert corner(xr.open_dataset(path, engine="squall")["t"]) == 1
    assert corner(by_cfgrib(path)["t"]) == 1
    with pytest.warns(UserWarning, match="conflicting duplicate"):
        squall.convert(path, tmp_path / "last.zarr")
    stored = xr.open_zarr(tmp_path / "last.zarr")["t"].squeeze()
    assert corner(stored) == 3


@pytest.mark.parametrize(
    "days, counts",
    [([2, 3, 3, 1], 3), ([2, 3, 1, 1], 2), ([2, 3, 3, 2], 1)],
    ids=["order of the file, not of time", "the first of the last", "a time again"],
)
def test_the_time_that_a_file_brings_last_counts_where_time_is_no_dimension(days, counts, tmp_path):
    fields = [({"shortName": "t", "level": 500, "dataDate": 20240100 + day}, number) for number, day in enumerate(days)]
    path = written(tmp_path / "times.grib2", fields)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the others are variables of their own
        found = xr.open_dataset(path, engine="squall", time_dims=("step",))
    assert corner(found["t"]) == counts
    np.testing.assert_array_equal(found["t"].values, by_cfgrib(path, time_dims=("step",))["t"].values)


def test_layers_with_one_top_are_all_there(tmp_path):
    keys = {"typeOfFirstFixedSurface": 104, "typeOfSecondFixedSurface": 104, "parameterCategory": 1, "parameterNumber": 1}
    keys |= {"scaleFactorOfFirstFixedSurface": 2, "scaledValueOfFirstFixedSurface": 44, "scaleFactorOfSecondFixedSurface": 2}
    layers = [({**keys, "scaledValueOfSecondFixedSurface": bottom}, 50) for bottom in (100, 72)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = xr.open_dataset(written(tmp_path / "layers.grib2", layers), engine="squall", read_keys=["bottomLevel"])
    assert {name: v.attrs["GRIB_bottomLevel"] for name, v in found.data_vars.items()} == {"r": 1.0, "r_2": 0.72}


@needs_files
def test_opening_reads_no_values(tmp_path):
    """Data sections may be damaged as long as nothing is asked for."""
    content = bytearray(MEMBERS.read_bytes())
    content[200:7000] = bytes(6800)
    path = tmp_path / "damaged.grib"
    path.write_bytes(content)
    assert "t" in repr(xr.open_dataset(path, engine="squall"))


@needs_files
def test_a_key_that_no_field_has_is_refused_by_name():
    with pytest.raises(ValueError, match="levelist"):
        xr.open_dataset(MEMBERS, engine="squall", filter_by_keys={"levelist": 500})
    with pytest.raises(OSError, match="no field has"):
        xr.open_dataset(MEMBERS, engine="squall", filter_by_keys={"level": 1})
    with pytest.raises(squall.Error, match="time_dims='forecastMonth': .* take time, step, valid_time"):
        xr.open_dataset(MEMBERS, engine="squall", time_dims=("forecastMonth", "indexing_time"))


@needs_files
def test_damage_is_told_as_errors_says():
    path = FILES / "era5-levels-corrupted.grib"
    with pytest.warns(UserWarning, match="corrupted"):
        xr.open_dataset(path, engine="squall")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xr.open_dataset(path, engine="squall", errors="ignore")
    with pytest.raises(squall.Error, match=os.path.basename(path)):
        xr.open_dataset(path, engine="squall", errors="raise")


@needs_files
def test_values_of_keywords_that_make_no_sense_are_told():
    for wrong in ("bogus", "i4", int, np.dtype("f2")):
        with pytest.raises(ValueError, match="values_dtype=.*possible are float32 and float64"):
            xr.open_dataset(MEMBERS, engine="squall", values_dtype=wrong)
    for right in ("float64", np.float64, np.dtype("f8"), "<f8"):
        assert xr.open_dataset(MEMBERS, engine="squall", values_dtype=right)["t"].dtype == "f8"
    with pytest.raises(TypeError, match="filter_by_keys='t': a mapping of keys to values"):
        xr.open_dataset(MEMBERS, engine="squall", filter_by_keys="t")
