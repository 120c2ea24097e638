"""squall.create_many: many files behind one target, written by threads, processes and dask; read back by netCDF4 and xarray."""

import contextlib
import json
import multiprocessing
import os
import pickle
import random
import signal
import threading
import types

import numpy as np
import pytest
import squall
from squall._create_many import uncovered

netCDF4 = pytest.importorskip("netCDF4")
xr = pytest.importorskip("xarray")
SPAWN = multiprocessing.get_context("spawn")
FORMATS = ["NETCDF3_64BIT_DATA", "NETCDF4"]


def template(times=12):
    time = np.datetime64("2026-01-01", "ns") + np.arange(times) * np.timedelta64(6, "h")
    shape = (times, 4, 5)
    return xr.Dataset(
        {
            "t2m": (("time", "y", "x"), np.broadcast_to(np.float32(0), shape), {"units": "K", "valid_range": np.array([0, 400], "f4")}),
            "flag": (("time", "x"), np.broadcast_to(np.int16(0), (times, 5)), {"_FillValue": -1}),
            "mask": (("y", "x"), np.broadcast_to(np.int8(0), (4, 5))),
        },
        coords={"time": time, "y": np.arange(4.0), "lat": (("y", "x"), np.arange(20.0).reshape(4, 5))},
        attrs={"title": "many", "version": np.int32(3)},
    )


def names(folder, count):
    return [folder / f"f{k:02}.nc" for k in range(count)]


@pytest.mark.parametrize("format", FORMATS)
def test_values_land_in_the_files_that_they_belong_to(format, tmp_path):
    values = np.random.default_rng(1).standard_normal((12, 4, 5)).astype("f4")
    flags = np.arange(60, dtype="i2").reshape(12, 5)
    with squall.create_many(template(), names(tmp_path, 4), dim="time", format=format) as target:
        target["t2m"][1:11] = values[1:11]
        target["t2m"][0], target["t2m"][-1, ...] = values[0], values[-1]
        target["flag"][::-1] = flags[::-1]
        target["mask"][:] = 7
        assert not any(p.exists() for p in names(tmp_path, 4)) and len(list(tmp_path.glob(".*.partial"))) == 4
    assert sorted(p.name for p in tmp_path.iterdir()) == [p.name for p in names(tmp_path, 4)]
    with xr.open_mfdataset(
        names(tmp_path, 4), engine="netcdf4", combine="by_coords", data_vars="minimal", coords="minimal", compat="equals"
    ) as d:
        assert np.array_equal(d.t2m, values) and np.array_equal(d.flag, flags) and (d.mask == 7).all()
        assert np.array_equal(d.time, template().time) and np.array_equal(d.lat, template().lat)
        assert d.attrs["title"] == "many" and d.t2m.attrs["units"] == "K" and set(d.t2m.coords) == {"time", "y", "lat"}
    with netCDF4.Dataset(names(tmp_path, 4)[0]) as d:
        assert d.data_model == format and d["t2m"].valid_range.dtype == "f4" and d.version.dtype == "i4"
    assert np.array_equal(squall.open(names(tmp_path, 4)[2])["t2m"][...], values[6:9])


def test_what_nobody_wrote_is_named_and_becomes_the_fill_value(tmp_path):
    target = squall.create_many(template(), {tmp_path / "a.nc": 5, tmp_path / "b.nc": 7}, dim="time")
    target["t2m"][:5] = 1
    target["t2m"][5:12:2, 1:3] = 2
    target["mask"][...] = 0
    missing = target.missing()
    assert missing[str(tmp_path / "a.nc")] == {"flag": [((0, 5), (0, 5))]}
    assert ((0, 7), (0, 1), (0, 5)) in missing[str(tmp_path / "b.nc")]["t2m"]
    target.finish()
    assert target.missing() == {}
    with netCDF4.Dataset(tmp_path / "b.nc") as d:
        t2m = d["t2m"][:].filled(np.nan)
        assert (t2m[::2, 1:3] == 2).all() and np.isnan(t2m[1::2]).all() and np.isnan(t2m[:, 0]).all() and np.isnan(t2m[:, 3]).all()
        assert d["flag"][:].mask.all() and d["flag"]._FillValue == -1
    target.finish()  # what is finished stays


def test_after_a_failure_partial_files_stay_and_are_not_begun_again_unasked(tmp_path):
    with pytest.raises(RuntimeError, match="stop"), squall.create_many(template(), names(tmp_path, 2), dim="time") as target:
        target["t2m"][:6] = 1
        raise RuntimeError("stop")
    assert not any(p.exists() for p in names(tmp_path, 2)) and list(target.missing()) == [str(p) for p in names(tmp_path, 2)]
    with pytest.raises(FileExistsError, match="was begun and never finished"):
        squall.create_many(template(), names(tmp_path, 2), dim="time")
    again = squall.create_many(template(), names(tmp_path, 2), dim="time", overwrite=True)
    assert "t2m" in again.missing()[str(names(tmp_path, 2)[0])]  # nothing of the first attempt counts
    again.finish()
    with pytest.raises(FileNotFoundError, match="is finished"):
        again["mask"][...] = 1
    with pytest.raises(FileExistsError, match="is there already"):
        squall.create_many(template(), names(tmp_path, 2), dim="time")


def one_variable(length):
    return {"a": types.SimpleNamespace(dims=("x",), shape=(length,), dtype=np.dtype("u2"), attrs={})}


DAMAGE = [
    b"\0" * 50,
    b'{"variable": "a", "reg',
    b"[1, 2]\n",
    b"5\n",
    b"\xff\xfe\n",
    b'{"variable": "a", "region": null}\n',
    b'{"variable": ["a"], "region": [[0, 1, 1]]}\n',
    b'{"variable": "a", "region": [["x", 1, 1]]}\n',
    b'{"variable": "a", "region": [[0, 1]]}\n',
    b'{"variable": "a", "region": [[0, 1.5, 1]]}\n',
    b"[" * 100000,
]


@pytest.mark.parametrize("damage", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_line_costs_no_other(tmp_path, damage):
    target = squall.create_many(one_variable(4), {tmp_path / "x.nc": 4}, "x")
    target["a"][0] = 1
    (notes,) = tmp_path.glob(".x.nc.partial.regions-*")
    with open(notes, "ab") as file:
        file.write(damage)
    target["a"][1:3] = 2
    assert target.missing() == {str(tmp_path / "x.nc"): {"a": [((3, 4),)]}}
    target.finish()
    assert squall.open(tmp_path / "x.nc")["a"][...].tolist() == [1, 2, 2, 65535]


def test_what_cannot_be_noted_is_an_error(tmp_path):
    resource = pytest.importorskip("resource")
    target = squall.create_many(one_variable(400), {tmp_path / "x.nc": 400}, "x")
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    done = []
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, limits[1]))
    try:
        with pytest.raises(OSError, match="note|large"):
            for i in range(400):
                target["a"][i] = i
                done.append(i)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    target["a"][len(done)] = 7
    assert target.missing() == {str(tmp_path / "x.nc"): {"a": [((len(done) + 1, 400),)]}}


def _write(packed, share):
    target = pickle.loads(packed)

    def some(first):
        for i in range(first, 40, 4):
            target["t2m"][i] = i
            target["flag"][i] = i

    threads = [threading.Thread(target=some, args=(2 * share + k,)) for k in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


@pytest.mark.parametrize("format", FORMATS)
def test_threads_of_two_processes_write_at_once(format, tmp_path):
    target = squall.create_many(template(40), names(tmp_path, 8), dim="time", format=format, unlimited_dims=["time"])
    processes = [SPAWN.Process(target=_write, args=(pickle.dumps(target), k)) for k in range(2)]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    assert [p.exitcode for p in processes] == [0, 0]
    assert target.missing() == {str(p): {"mask": [((0, 4), (0, 5))]} for p in names(tmp_path, 8)}
    target.finish()
    for k, path in enumerate(names(tmp_path, 8)):
        with netCDF4.Dataset(path) as d:
            assert d.dimensions["time"].isunlimited()
            assert (d["t2m"][:] == np.arange(5 * k, 5 * k + 5)[:, None, None]).all() and (
                d["flag"][:] == np.arange(5 * k, 5 * k + 5)[:, None]
            ).all()


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask_stores_into_it_without_a_lock(scheduler, tmp_path):
    da = pytest.importorskip("dask.array")
    values = np.arange(240.0, dtype="f4").reshape(12, 4, 5)
    with squall.create_many(template(), names(tmp_path, 3), dim="time") as target:
        lazy = da.store(da.from_array(values, chunks=(5, 2, 3)), target["t2m"], lock=False, compute=False)
        lazy.compute(scheduler=scheduler, num_workers=2)
        target["flag"][...] = 0
        target["mask"][...] = 0
        assert target.missing() == {}
    assert np.array_equal(np.concatenate([squall.open(p)["t2m"][...] for p in names(tmp_path, 3)]), values)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("format", FORMATS)
def test_workers_of_a_cluster_store_many_regions_of_one_file(format, client, tmp_path):
    da = pytest.importorskip("dask.array")
    values = np.arange(240.0, dtype="f4").reshape(12, 4, 5)
    with squall.create_many(template(), names(tmp_path, 1), dim="time", format=format) as target:
        client.compute(da.store(da.from_array(values, chunks=(1, 2, 3)), target["t2m"], lock=False, compute=False)).result()
        target["flag"][...], target["mask"][...] = 3, 4
        writers = {p.name.rsplit("-", 1)[1] for p in tmp_path.glob("*.regions-*")}
        assert len(writers) == 3 and target.missing() == {}
    assert [p.name for p in tmp_path.iterdir()] == ["f00.nc"]
    with netCDF4.Dataset(names(tmp_path, 1)[0]) as d:
        assert np.array_equal(d["t2m"][...], values) and (d["flag"][...] == 3).all() and (d["mask"][...] == 4).all()


def _die_once(block, marker, block_info=None):
    """In the midst of it all, the worker of one block is killed, with what it holds."""
    if block_info[0]["chunk-location"] == (5, 1, 0):
        with contextlib.suppress(FileExistsError):
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_a_worker_that_is_killed_leaves_nothing_out(client, tmp_path):
    da = pytest.importorskip("dask.array")
    values = np.arange(240.0, dtype="f4").reshape(12, 4, 5)
    (tmp_path / "out").mkdir()
    blocks = da.from_array(values, chunks=(1, 2, 3)).map_blocks(_die_once, str(tmp_path / "marker"), dtype="f4", meta=values[:0])
    with squall.create_many(template(), names(tmp_path / "out", 3), dim="time") as target:
        client.compute(da.store(blocks, target["t2m"], lock=False, compute=False)).result()
        assert all("t2m" not in boxes for boxes in target.missing().values())
    assert (tmp_path / "marker").exists()
    assert np.array_equal(np.concatenate([netCDF4.Dataset(p)["t2m"][...] for p in names(tmp_path / "out", 3)]), values)


def _finish(packed, barrier):
    target = pickle.loads(packed)
    barrier.wait()
    target.finish()


def test_several_processes_finish_at_once(tmp_path):
    values = np.arange(240.0, dtype="f4").reshape(12, 4, 5)
    for k in range(3):
        paths = names(tmp_path, 12)
        target = squall.create_many(template(), paths, dim="time", overwrite=True)
        target["t2m"][::2] = values[::2]
        barrier = SPAWN.Barrier(3)
        processes = [SPAWN.Process(target=_finish, args=(pickle.dumps(target), barrier)) for _ in range(3)]
        for p in processes:
            p.start()
        for p in processes:
            p.join()
        assert [p.exitcode for p in processes] == [0, 0, 0], k
        assert sorted(tmp_path.iterdir()) == paths
        found = np.concatenate([squall.open(p)["t2m"][...] for p in paths])
        assert np.array_equal(found[::2], values[::2]) and np.isnan(found[1::2]).all()


def test_any_assignment_is_numpys(tmp_path):
    rng, draws = random.Random(4), np.random.default_rng(4)
    wanted = np.full((12, 4, 5), np.nan, "f4")
    target = squall.create_many(template(), {tmp_path / "a.nc": 1, tmp_path / "b.nc": 7, tmp_path / "c.nc": 4}, dim="time")
    for _ in range(150):
        key = []
        for n in wanted.shape[: rng.randint(1, 3)]:
            start, stop = sorted((rng.randint(0, n), rng.randint(0, n)))
            step = rng.randint(1, 3)
            key.append(rng.choice([rng.randrange(-n, n), slice(start, stop, step), slice(stop, start or None, -step), slice(None)]))
        if rng.random() < 0.3:
            key.insert(rng.randint(0, len(key)), ...)
        key = tuple(key)
        try:
            shape = wanted[key].shape
        except IndexError:
            continue
        new = draws.standard_normal(shape[rng.randint(0, len(shape)) :])
        wanted[key] = new
        target["t2m"][key] = new
    target.finish()
    got = np.concatenate([squall.open(p)["t2m"][...] for p in target.paths])
    assert np.array_equal(got, wanted, equal_nan=True)


def test_the_command_names_what_is_missing(squall, tmp_path):
    from squall import create_many

    target = create_many(template(), names(tmp_path, 3), dim="time")
    target["t2m"][1:9:3] = 0
    target["mask"][...] = 0
    target["flag"][:8] = 0
    told = squall("status", names(tmp_path, 3)[2], check=False)
    assert told.code == 3 and "f02.nc.partial: begun, and not finished" in told.out and "flag: nobody has written [0:4, 0:5]" in told.out
    report = json.loads(squall("status", "--json", tmp_path, check=False).out)["unfinished"]
    assert {f["path"]: f["missing"] for f in report} == {
        str(tmp_path / f".{p.name}.partial"): json.loads(json.dumps(target.missing()[str(p)])) for p in names(tmp_path, 3)
    }
    for k in range(3):  # lines that are cut off, or make no sense, count for nothing
        with open(f"{tmp_path}/.f0{k}.nc.partial.regions-elsewhere-1", "w") as f:
            f.write('{"variable": "t2m", "region": [[0, 99, 1], [0, 4, 1], [0, 5, 1]]}\n{"variable": "flag"}\nnonsense\n')
            f.write('{"variable": "t2m", "region": [[0, 4, 1], [0, 4, 1], [0, 5')
    assert json.loads(squall("status", "--json", tmp_path, check=False).out)["unfinished"] == report
    assert {f["path"]: f["missing"] for f in report} == {
        str(tmp_path / f".{p.name}.partial"): json.loads(json.dumps(target.missing()[str(p)])) for p in names(tmp_path, 3)
    }
    for name in ("t2m", "flag"):
        target[name][...] = 1
    told = squall("status", names(tmp_path, 3)[0], check=False)
    assert told.code == 3 and told.out.endswith("gives it its name\n")
    target.finish()
    for path in (tmp_path, names(tmp_path, 3)[0]):
        assert json.loads(squall("status", "--json", path).out) == {"unfinished": []}
        assert squall("status", path).out == f"{path}: nothing of squall.create_many is unfinished\n"
    (tmp_path / "none").mkdir()
    told = squall("status", tmp_path / "none", check=False)
    assert told.code == 2 and "neither a store that squall convert made" in told.err


def random_regions(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 9, rng.integers(0, 4)).tolist())
    regions = []
    for _ in range(rng.integers(0, 5)):
        region = []
        for n in shape:
            start, step = int(rng.integers(n)), int(rng.integers(1, 4))
            region.append((start, int(rng.integers(1, (n - start - 1) // step + 2)), step))
        regions.append(region)
    return shape, regions


@pytest.mark.parametrize("seed", range(20))
def test_what_no_region_covers_is_found(seed):
    shape, regions = random_regions(seed)
    covered = np.zeros(shape, bool)
    for region in regions:
        covered[tuple(slice(s, s + c * t, t) for s, c, t in region)] = True
    for box in uncovered(shape, regions):
        inside = tuple(slice(*b) for b in box)
        assert not covered[inside].any()
        covered[inside] = True  # and no two boxes share anything
    assert covered.all()


def test_templates_need_no_xarray(tmp_path):
    with netCDF4.Dataset(tmp_path / "t.nc", "w", format="NETCDF3_64BIT_DATA") as d:
        d.createDimension("n", 6)
        d.createVariable("a", "u2", ("n",)).units = "m"
    target = squall.create_many(squall.open(tmp_path / "t.nc"), [tmp_path / "x.nc", tmp_path / "y.nc"], dim="n")
    target["a"][2:5] = [1, 2, 3]
    target.finish()
    assert squall.open(tmp_path / "x.nc")["a"][...].tolist() == [65535, 65535, 1]
    assert squall.open(tmp_path / "y.nc")["a"][...].tolist() == [2, 3, 65535] and squall.open(tmp_path / "y.nc")["a"].attrs["units"] == "m"


def packed(path):
    """A file with packed, masked and unsigned integers."""
    d = xr.Dataset({n: ("x", np.array([250.25, np.nan, 300.5, 273.0])) for n in ("t", "flag")})
    d["flag"][...] = [1, np.nan, 3, 4]
    d["byte"] = "x", np.array([0, -56, -1, 7], "i1"), {"_Unsigned": "true"}
    encoding = {
        "t": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.0, "_FillValue": -32768},
        "flag": {"dtype": "i2", "_FillValue": -1},
    }
    d.to_netcdf(path, format="NETCDF3_CLASSIC", encoding=encoding)
    return xr.open_dataset(path)


@pytest.mark.parametrize("format", FORMATS)
def test_a_packed_template_is_stored_unpacked(format, tmp_path):
    with packed(tmp_path / "packed.nc") as ds:
        with squall.create_many(ds, names(tmp_path, 2), dim="x", format=format) as target:
            for name in ds:
                target[name][...] = ds[name].values
        with xr.open_mfdataset(names(tmp_path, 2), engine="netcdf4", combine="nested", concat_dim="x") as d:
            for name in ds:
                assert d[name].dtype == ds[name].dtype and np.array_equal(d[name], ds[name], equal_nan=True), name


def test_what_an_integer_type_has_not_is_refused(tmp_path):
    target = squall.create_many(one_variable(4), {tmp_path / "x.nc": 4}, "x")
    for value in (-1, 65536, [1, 2, 3, 1e9], np.full(4, np.inf), np.full(4, -1, "i1"), 2**64):
        with pytest.raises(OverflowError):
            target["a"][...] = value
    with pytest.raises(ValueError, match="variable a holds uint16, which has no NaN"):
        target["a"][...] = [1, 2, np.nan, 4]
    with pytest.raises(TypeError, match="variable a holds uint16, not times"):
        target["a"][0] = np.datetime64("2026-01-01")
    target["a"][...] = np.array([0, 1, 2, 65535], "f8")
    target.finish()
    assert squall.open(tmp_path / "x.nc")["a"][...].tolist() == [0, 1, 2, 65535]


def test_what_is_masked_becomes_the_fill_value(tmp_path):
    target = pickle.loads(pickle.dumps(squall.create_many(template(), names(tmp_path, 2), dim="time")))
    target["t2m"][...] = np.ma.masked_greater(np.broadcast_to(np.arange(5.0), (12, 4, 5)), 3)
    target["flag"][...] = np.ma.masked_greater(np.broadcast_to(np.array([1, 2, 3, 4, 1e9]), (12, 5)), 9)
    target["flag"][0, 0] = np.ma.masked
    with pytest.raises(ValueError, match="mask has no fill value"):
        target["mask"][...] = np.ma.masked_equal(np.eye(4, 5), 1)
    target["mask"][...] = np.ma.array(np.ones((4, 5)))
    target.finish()
    a, b = (squall.open(p) for p in names(tmp_path, 2))
    assert np.isnan(a["t2m"][..., 4]).all() and (b["t2m"][..., :4] == np.arange(4)).all()
    assert a["flag"][0].tolist() == [-1, 2, 3, 4, -1] and (b["flag"][...] == [1, 2, 3, 4, -1]).all() and (b["mask"][...] == 1).all()


@pytest.mark.parametrize("format", FORMATS)
def test_attributes_that_netcdf_has_not(format, tmp_path):
    made = {"a": types.SimpleNamespace(dims=("x",), shape=(4,), dtype=np.dtype("u2"), attrs={"yes": True, "both": [True, False]})}
    with squall.create_many(made, {tmp_path / "x.nc": 4}, "x", format=format) as target:
        with pytest.raises(KeyError, match="no variable nope; there is a"):
            target["nope"]
    with netCDF4.Dataset(tmp_path / "x.nc") as d:
        assert d["a"].yes == 1 and d["a"].yes.dtype == "i1" and d["a"].both.tolist() == [1, 0]
    for value in (None, {"a": 1}, 1j, np.datetime64("2026-01-01")):
        made["a"].attrs = {"strange": value}
        with pytest.raises(TypeError, match="variable a: attribute strange is .*: NetCDF has"):
            squall.create_many(made, {tmp_path / "y.nc": 4}, "x", format=format)
    made["a"].attrs = {}
    with pytest.raises(FileNotFoundError, match="no such folder: .*nowhere'"):
        squall.create_many(made, {tmp_path / "nowhere" / "x.nc": 4}, "x", format=format)


def test_decoded_times_and_texts_are_refused_by_name(tmp_path):
    for values, what in ((np.array(["2026-01-01"] * 4, "M8[ns]"), "variable v holds times"), (np.array([b"abc"] * 4), "variable v holds")):
        xr.Dataset({"v": ("x", values)}).to_netcdf(tmp_path / "t.nc", format="NETCDF3_CLASSIC")
        with xr.open_dataset(tmp_path / "t.nc") as ds, pytest.raises(TypeError, match=what):
            squall.create_many(ds, names(tmp_path, 2), dim="x")


def test_what_makes_no_sense_is_refused(tmp_path):
    with pytest.raises(ValueError, match="12 of time do not fall into 5 files"):
        squall.create_many(template(), names(tmp_path, 5), dim="time")
    (tmp_path / "folder.nc").mkdir()
    with pytest.raises(IsADirectoryError, match="a folder cannot be replaced"):
        squall.create_many(template(), [tmp_path / "x.nc", tmp_path / "folder.nc"], dim="time", overwrite=True)
    assert not (tmp_path / ".x.nc.partial").exists()
    with pytest.raises(ValueError, match="no variable has dimension 'level'"):
        squall.create_many(template(), names(tmp_path, 2), dim="level")
    with pytest.raises(TypeError, match="variable when holds datetime64"):
        squall.create_many(template().assign(when=("time", template().time.values)), names(tmp_path, 2), dim="time")
    with pytest.raises(ValueError, match="possible are 'NETCDF3_64BIT_DATA', 'NETCDF4'"):
        squall.create_many(template(), names(tmp_path, 2), dim="time", format="NETCDF3_CLASSIC")
    target = squall.create_many(template(), names(tmp_path, 2), dim="time")
    with pytest.raises(TypeError, match="integers and slices"):
        target["t2m"][[1, 2]] = 0
    with pytest.raises(IndexError):
        target["t2m"][12] = 0
    with pytest.raises(ValueError, match="could not broadcast"):
        target["t2m"][0] = np.zeros(3)
