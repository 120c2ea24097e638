"""squall convert --group: the arrays of one group of HDF5, NetCDF-4 and Zarr sources, with what they inherit; xarray says what is in it."""

import json

import netCDF4
import numpy as np
import pytest
import xarray as xr


def make_file(path, index, times=4):
    """time and lat belong to the root; model has lev, t and a group of its own."""
    rng = np.random.default_rng(index)
    with netCDF4.Dataset(path, "w") as f:
        f.title = "of the root"
        for name, length in (("time", None), ("lat", 5), ("lon", 3)):
            f.createDimension(name, length)
        f.createVariable("lat", "f8", ("lat",))[:] = np.linspace(50, 54, 5)
        f.createVariable("lon", "f8", ("lon",))[:] = [0, 1, 2]
        time = f.createVariable("time", "f8", ("time",))
        time.units = "hours since 2020-01-01"
        time[:] = np.arange(times) + times * index
        f.createVariable("root", "f4", ("time", "lon"))[:] = 7
        model = f.createGroup("model")
        model.source = "a model"
        model.createDimension("lev", 2)
        model.createVariable("lev", "f4", ("lev",))[:] = [1000, 850]
        model.createVariable("t", "f4", ("time", "lev", "lat"), zlib=True)[:] = rng.random((times, 2, 5))
        own = model.createGroup("own")  # a dimension time of its own, of another length than the root's
        own.createDimension("time", 2)
        own.createVariable("x", "i4", ("time", "lev"))[:] = rng.integers(0, 9, (2, 2))
    return path


@pytest.fixture
def sources(tmp_path):
    return [make_file(tmp_path / f"day{i}.nc", i) for i in range(3)]


def opened(path, **options):
    return xr.open_dataset(path, engine="zarr", consolidated=False, decode_times=False, **options).load()


def wanted_of(paths, group="model", inherited=("time", "lat")):
    parts = []
    for path in paths:
        root = xr.open_dataset(path, engine="netcdf4", decode_times=False)
        part = xr.open_dataset(path, engine="netcdf4", decode_times=False, group=group)
        parts.append(part.assign_coords({name: root[name] for name in inherited}).load())
    return xr.concat(parts, "time", data_vars="minimal", coords="minimal", compat="override") if len(parts) > 1 else parts[0]


def assert_holds(store, wanted):
    found = opened(store)
    assert set(found.variables) == set(wanted.variables) | {"chunk_exists", "field_count"}
    for name in wanted.variables:
        assert found[name].dims == wanted[name].dims and found[name].dtype == wanted[name].dtype
        np.testing.assert_array_equal(found[name], wanted[name])
    assert found.chunk_exists.all()


def test_a_group_becomes_a_store_with_the_coordinates_above_it(squall, sources, tmp_path):
    store = tmp_path / "out.zarr"
    done = squall("convert", "--group", "/model/", *sources, store, check=False)
    assert done.code == 3 and "own/x is left out: it lies in a group; --group NAME" in done.err  # what lies below
    assert_holds(store, wanted_of(sources))
    assert opened(store).attrs["source"] == "a model" and "title" not in opened(store).attrs
    assert squall("verify", store).code == 0


def test_dimensions_of_their_own_hide_those_above(squall, sources, tmp_path):
    store = tmp_path / "out.zarr"
    squall("convert", "--group", "model/own", sources[1], store)
    assert_holds(store, wanted_of(sources[1:2], "model/own", ()).assign_coords(lev=("lev", np.float32([1000, 850]))))


def test_the_store_goes_on_with_its_group(squall, sources, tmp_path):
    store = tmp_path / "out.zarr"
    squall("convert", "--group", "model", *sources[:2], store, "--chunks", "time=4", check=False)
    assert "--group model" in squall("status", store).out
    assert squall("convert", sources[2], store, "--chunks", "time=4").code == 0  # no need to say it again
    assert_holds(store, wanted_of(sources))
    refused = squall("convert", "--group", "model/own", sources[2], store, check=False)
    assert refused.code == 4 and "made of the group model of its sources" in refused.err
    root = tmp_path / "root.zarr"
    squall("convert", *sources, root, check=False)
    refused = squall("convert", "--group", "model", *sources, root, check=False)
    assert refused.code == 4 and "made of the root of its sources" in refused.err


def test_groups_of_zarr_stores_are_converted(squall, sources, tmp_path):
    source, store = tmp_path / "in.zarr", tmp_path / "out.zarr"
    wanted = wanted_of(sources)
    wanted.drop_vars("lat").to_zarr(source, group="a/b", zarr_format=3, consolidated=False)
    wanted[["lat"]].to_zarr(source, group="a", mode="a", zarr_format=3, consolidated=False)
    squall("convert", "--group", "a/b", source, store)
    assert_holds(store, wanted)


def test_a_file_without_the_group_costs_only_itself(squall, sources, tmp_path):
    store = tmp_path / "out.zarr"
    with netCDF4.Dataset(sources[1], "w") as f:
        f.createDimension("time", 2)
        f.createVariable("root", "f4", ("time",))[:] = 1
    done = squall("convert", "--group", "model", *sources, store, check=False)
    assert done.code == 3 and f'{sources[1]}: no group "model" with arrays in it; it has no groups with arrays' in done.err
    assert_holds(store, wanted_of([sources[0], sources[2]]))


def test_a_group_that_is_nowhere_is_refused_with_those_that_are(squall, sources, tmp_path):
    done = squall("convert", "--group", "modell", sources[0], tmp_path / "out.zarr", check=False)
    assert done.code == 1 and 'no group "modell" with arrays in it; there are model, model/own' in done.err
    assert not (tmp_path / "out.zarr").exists()


def test_files_with_groups_only_name_one(squall, tmp_path):
    with netCDF4.Dataset(tmp_path / "x.nc", "w") as f:
        group = f.createGroup("sea").createGroup("ice")
        group.createDimension("time", 2)
        group.createVariable("age", "f4", ("time",))[:] = 1
    done = squall("convert", tmp_path / "x.nc", tmp_path / "out.zarr", check=False)
    assert done.code == 1 and "--group sea/ice converts those of one" in done.err


def test_python_takes_the_group(sources, tmp_path):
    import squall as package

    with pytest.warns(UserWarning, match="own/x"):
        report = package.convert(sources, tmp_path / "out.zarr", group="model", progress=False)
    assert json.loads(json.dumps(dict(report)))["ignored"]
    assert_holds(tmp_path / "out.zarr", wanted_of(sources))
