"""GRIB files opened as datasets: every slab of every variable is a field of the file as ecCodes decodes it, none is invented, and
coordinates say where it lies."""

import collections

import eccodes
import numpy as np
import pytest
import squall
from oracle import doubles, handles


def eccodes_fields(path):
    """The values of each field, as float32 with NaN where there is none."""
    return (doubles(handle).astype(np.float32) for handle in handles(path))


def fingerprint(values):
    """The same whatever the order of the points."""
    return np.sort(np.ascontiguousarray(values, dtype=np.float32).ravel().view(np.uint32)).tobytes()


def slabs(array):
    """Every field of a variable: its last two dimensions, or the last where points lie on no rectangle."""
    values = array[...].astype(np.float32)
    points = 1 if array.dims[-1] == "values" else 2
    return values.reshape(-1, *values.shape[values.ndim - points :])


def variables(ds):
    return [a for a in ds.arrays.values() if a.codecs.startswith("grid_")]


FILES = "era5-levels-members.grib gfs.complex.grib2 hpa_and_pa.grib reduced_gg.grib regular_gg_pl.grib lambert_grid.grib".split()
FILES += "fields_with_missing_values.grib hrrr.t06z.wrfsfcf01-UGRD.grib2 multi_param_on_multi_dims.grib".split()
FILES += "gfs.png.grib2 gfs.jpeg.grib2".split()


@pytest.mark.parametrize("name", FILES)
def test_every_field_is_a_slab_and_every_slab_a_field(shared, name):
    path = shared / "data" / "grib" / name
    wanted = collections.Counter(fingerprint(v) for v in eccodes_fields(path))
    ds = squall.open(path)
    assert ds.format == "grib" and not ds.problems
    found = collections.Counter()
    for array in variables(ds):
        assert array.chunks[: -len(slabs(array).shape) + 1] == (1,) * (len(array.shape) - len(slabs(array).shape) + 1)
        for slab in slabs(array):
            if np.isnan(slab).all() and fingerprint(slab) not in wanted:
                continue  # a place that no field fills
            found[fingerprint(slab)] += 1
    assert set(found) == set(wanted)
    assert all(found[k] <= n for k, n in wanted.items())  # a field that is there twice fills one place


def test_boxes_of_a_variable_are_its_parts(shared):
    ds = squall.open(shared / "data" / "grib" / "era5-levels-members.grib")
    array = ds["t"]
    whole = array[...]
    assert whole.shape == (4, 1, 10, 2, 61, 120)
    box = np.s_[1:4:2, 0:1, 3:9:3, 1:2, 5:50:7, 100:120]
    assert np.array_equal(array[box], whole[box])


def test_coordinates_are_those_of_the_fields(shared):
    path = shared / "data" / "grib" / "era5-levels-members.grib"
    times, levels, members = set(), set(), set()
    with open(path, "rb") as f:
        while (handle := eccodes.codes_grib_new_from_file(f)) is not None:
            day = f"{eccodes.codes_get(handle, 'dataDate')}"
            hour = eccodes.codes_get(handle, "dataTime") // 100
            times.add(int(np.datetime64(f"{day[:4]}-{day[4:6]}-{day[6:]}T{hour:02}", "s").astype(np.int64)))
            levels.add(float(eccodes.codes_get(handle, "level")))
            members.add(eccodes.codes_get(handle, "number"))
            eccodes.codes_release(handle)
    ds = squall.open(path)
    read = {name: ds[name][...].ravel() for name in ("init_time", "isobaricInhPa", "number", "latitude", "longitude")}
    assert read["init_time"].tolist() == sorted(times)
    assert set(read["isobaricInhPa"].tolist()) == levels
    assert read["number"].tolist() == sorted(members)
    assert np.allclose(read["latitude"], np.linspace(90, -90, 61)) and np.allclose(read["longitude"], np.arange(120) * 3)
    assert ds["init_time"].attrs["units"] == "seconds since 1970-01-01T00:00:00"
    assert ds.attrs["Conventions"].startswith("CF-")


def test_a_folder_is_one_dataset(shared, tmp_path):
    """A file of all members and levels, cut into a file a message, with what else lies in such folders."""
    whole = shared / "data" / "grib" / "era5-levels-members.grib"
    with open(whole, "rb") as f:
        for number in range(10**6):
            if (handle := eccodes.codes_grib_new_from_file(f)) is None:
                break
            day = tmp_path / f"day{number % 3}"
            day.mkdir(exist_ok=True)
            (day / f"{number}.grib").write_bytes(eccodes.codes_get_message(handle))
            eccodes.codes_release(handle)
    (tmp_path / "day0" / "0.grib.idx").write_text("1:0:d=2017")
    (tmp_path / "day1" / "notes").write_text("no GRIB")
    one, many = squall.open(whole), squall.open(tmp_path)
    assert list(one.arrays) == list(many.arrays) and one.groups.keys() == many.groups.keys()
    for name, array in one.arrays.items():
        assert np.array_equal(array[...], many[name][...]), name
    assert len(many.problems) == 1 and "notes" in many.problems[0]


def test_damage_is_told_and_the_rest_is_read(shared, tmp_path):
    whole = (shared / "data" / "grib" / "era5-levels-members.grib").read_bytes()
    cut = tmp_path / "cut.grib"
    cut.write_bytes(whole[: len(whole) // 2 + 100])
    ds = squall.open(cut)
    assert len(ds.problems) == 1 and str(cut) in ds.problems[0] and "byte" in ds.problems[0]
    assert any(np.isfinite(slab).all() for slab in slabs(ds["t"]))


def test_a_file_that_changes_is_refused(shared, tmp_path):
    path = tmp_path / "x.grib"
    content = (shared / "data" / "grib" / "gfs.complex.grib2").read_bytes()
    path.write_bytes(content)
    ds = squall.open(path)
    assert variables(ds)[0][...].size
    path.write_bytes(content + b"\0")
    with pytest.raises(squall.Error, match="changed since it was opened"):
        variables(ds)[0][...]


def test_files_without_a_field_are_refused_with_the_reason(shared, tmp_path):
    cut = tmp_path / "cut.grib"
    cut.write_bytes((shared / "data" / "grib" / "gfs.complex.grib2").read_bytes()[:500])
    empty = tmp_path / "empty.grib"
    empty.write_bytes(b"")
    for path, words in {cut: "at byte 0", empty: "empty"}.items():
        with pytest.raises(squall.Error, match=words) as failure:
            squall.open(path)
        assert str(path) in str(failure.value)


def test_more_files_than_may_stay_open_are_read_as_one(shared, tmp_path):
    path = shared / "data" / "grib" / "era5-levels-members.grib"
    for number, handle in enumerate(handles(path)):
        (tmp_path / f"{number}.grib").write_bytes(eccodes.codes_get_message(handle))
    before, options = squall.handles(), squall.set_options(max_open_files=3)
    try:
        one, many = squall.open(path), squall.open(tmp_path)
        assert np.array_equal(one["t"][...], many["t"][...])
        assert squall.handles().open <= 3 == squall.handles().limit
        assert squall.handles().opened - before.opened > 40
    finally:
        squall.set_options(**options)
