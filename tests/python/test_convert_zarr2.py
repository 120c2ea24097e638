"""squall convert --zarr-format 2: the same values, flags and promises as in a store of version 3.
The oracles are zarr-python and xarray."""

import json
import shutil

import numpy as np
import pytest
import small_archive as archive
import small_files as small
import xarray as xr
import zarr
from test_convert import files
from test_convert_faults import Sweep

OLD = ["--zarr-format", "2"]


@pytest.fixture
def stores(tmp_path):
    """A store of each version, of the same sources."""
    return {"2": tmp_path / "two.zarr", "3": tmp_path / "three.zarr"}


def loaded(store):
    """With no argument and no warning (pytest makes errors of them)."""
    with xr.open_zarr(store) as ds:
        ds = ds.load()
    assert "--zarr-format 2" in ds.attrs.pop("history") or store.name != "two.zarr"
    return ds


def identical(stores):
    xr.testing.assert_identical(loaded(stores["2"]), loaded(stores["3"]))


def in_both(squall, stores, *arguments, code=0):
    """What `squall convert` reports, the same of both but for the name of the store."""
    reports = []
    for version, store in stores.items():
        done = squall("convert", *arguments, store, "--json", *(OLD if version == "2" else []), check=False)
        assert done.code == code, done.err
        reports.append(json.loads(done.out.replace(store.name, "store")) | {"bytes_out": 0})
    assert reports[0] == reports[1]
    return reports[0]


def runs(squall, store):
    return [run["state"] for run in json.loads(squall("status", store, "--json").out)["runs"]]


def no_flag_is_unknown(store):
    """An absent chunk has no value in version 2 (zarr-python 2 gives whatever memory holds)."""
    for name in ("chunk_exists", "field_count"):
        array = zarr.open_array(store / name, mode="r")
        assert array.metadata.zarr_format == 2 and array.metadata.fill_value is None
        assert all((store / name / str(n)).exists() for n in range(-(-array.shape[0] // array.chunks[0])))


CHUNKS = ["--chunks", "latitude=6", "--every", "6h"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("options", [[], ["--chunks", "init_time=4,longitude=7"], ["--dtype", "float16", "--coarsen", "y=2,x=2"]], ids=str)
def test_a_store_that_lives_is_as_one_of_version_3(squall, tmp_path, stores, options):
    source, options = tmp_path / "in", [*options, "--every", "6h"]
    for n in (1, 2, 5):  # 3 and 4 are gaps
        archive.write(archive.path_of(source, n, "a"), archive.run(n, ("t", "u")))
    in_both(squall, stores, source, *options)
    identical(stores)
    no_flag_is_unknown(stores["2"])
    flags = loaded(stores["2"]).chunk_exists
    assert flags.dtype == bool and list(flags.values) == [True, True, False, False, True]

    archive.write(archive.path_of(source, 4, "a"), archive.run(4, ("t", "u")))  # late
    archive.write(archive.path_of(source, 6, "a"), archive.run(6, ("t",)))  # new, and u is missing
    archive.write(archive.path_of(source, 1, "b"), [archive.field("t", archive.init(1), 0, seed=9)])  # replaces a field
    archive.path_of(source, 2, "a").unlink()  # gone
    archive.path_of(source, 1, "a").unlink()  # gone, and carried over
    report = in_both(squall, stores, source, *options, code=0)
    assert report["units"]["done"] >= 2 and report["fields_carried"] > 0
    identical(stores)
    no_flag_is_unknown(stores["2"])

    archive.write(archive.path_of(source, 7, "a"), archive.run(7, ("t", "u", "r")))
    in_both(squall, stores, source, *options, "--schema", "grow")
    identical(stores)
    assert runs(squall, stores["2"]) == runs(squall, stores["3"])
    squall("verify", stores["2"])
    assert in_both(squall, stores, source, *options)["units"]["done"] == 0
    with xr.open_dataset(stores["2"], engine="squall") as ds:
        xr.testing.assert_identical(ds.load().drop_attrs(deep=False), loaded(stores["2"]).drop_attrs(deep=False))


def test_runs_before_the_first_are_added(squall, tmp_path, stores):
    source = tmp_path / "in"
    for n in (3, 4):
        archive.write(archive.path_of(source, n), archive.run(n, ("t",)))
    in_both(squall, stores, source, *CHUNKS)
    archive.write(archive.path_of(source, 1), archive.run(1, ("t",)))
    in_both(squall, stores, source, *CHUNKS, "--prepend")
    identical(stores)
    no_flag_is_unknown(stores["2"])
    squall("verify", stores["2"])
    assert [p.name for p in tmp_path.iterdir() if "squall" in p.name] == []


def test_parts_and_a_store_that_replaces_one(squall, tmp_path, stores):
    source = archive.make(tmp_path / "in", 5)
    for part in ("2/2", "1/2"):
        in_both(squall, stores, source, *CHUNKS, "--part", part)
    identical(stores)
    for store in stores.values():
        assert "all of them written" in squall("convert", "--finish", store).out
    identical(stores)
    in_both(squall, stores, source, "--chunks", "latitude=4", "--overwrite")
    identical(stores)
    squall("convert", source, stores["2"], "--overwrite")  # by one of version 3
    assert (stores["2"] / "zarr.json").exists() and not (stores["2"] / ".zgroup").exists()


def test_damage_is_found_noted_and_mended(squall, tmp_path, stores):
    source, store = archive.make(tmp_path / "in", 3), stores["2"]
    squall("convert", source, store, *CHUNKS, *OLD)
    before = files(store)
    (store / "t2m/1/0/0/0").write_bytes(b"x" * (store / "t2m/1/0/0/0").stat().st_size)
    done = squall("verify", store, check=False)
    assert done.code == 5 and str(store / "t2m/1/0/0/0") in done.out
    assert runs(squall, store) == ["complete", "damaged", "complete"]
    with xr.open_zarr(store) as ds:
        assert list(ds.chunk_exists.values) == [True, False, True]
    no_flag_is_unknown(store)
    squall("convert", source, store, *CHUNKS, *OLD)
    assert files(store) == before
    document = store / "t2m/.zarray"
    document.write_text(document.read_text().replace('"<f4"', '"<f8"'))
    done = squall("verify", store, check=False)
    assert done.code == 5 and f"{document}: its dtype is not what {store}/.zmetadata says of it" in done.out
    (store / ".zmetadata").unlink()
    done = squall("verify", store, check=False)
    assert done.code == 5 and f"{store}/.zmetadata: missing" in done.out
    squall("convert", source, store, *CHUNKS, *OLD)
    assert files(store) == before


@pytest.mark.filterwarnings("error")
def test_files_of_netcdf(squall, tmp_path, stores):
    """Numbers with and without fill values, packed and not, texts, statics; the store grows within a chunk."""
    paths = small.make(tmp_path / "in", 4)
    options = ["--chunks", "time=6"]
    in_both(squall, stores, *paths[:2], *options)
    identical(stores)
    in_both(squall, stores, *paths, *options)
    ds = loaded(stores["2"])
    identical(stores)
    assert ds["count"].dtype == np.int32 and ds.flag.dtype == np.int8  # no fill value: nothing is masked
    no_flag_is_unknown(stores["2"])
    squall("verify", stores["2"])
    assert in_both(squall, stores, *paths, *options)["units"]["done"] == 0


def test_zeros_of_numbers_without_a_fill_value_are_stored(squall, tmp_path, stores):
    """Where nothing is stored, readers of version 2 see anything at all."""
    ds = xr.Dataset({"n": (("time", "x"), np.zeros((4, 3), "i4")), "f": (("time", "x"), np.full((4, 3), np.nan))}, {"time": np.arange(4)})
    ds.to_zarr(tmp_path / "zeros.zarr", zarr_format=3, encoding={"f": {"_FillValue": None}})
    for _ in range(2):
        in_both(squall, stores, tmp_path / "zeros.zarr", "--append-dim", "time")
        assert not list(stores["3"].glob("n/c")) and list(stores["2"].glob("n/0/*"))
        assert not list(stores["2"].glob("f/0/*"))  # NaN is told
        identical(stores)
        ds.assign_coords(time=np.arange(4, 8)).to_zarr(tmp_path / "zeros.zarr", append_dim="time")  # and then it grows


def test_texts_and_a_stack(squall, tmp_path, stores):
    source = archive.make(tmp_path / "in", 2)
    in_both(squall, stores, source, "--stack", "variable")
    identical(stores)
    assert zarr.open_array(stores["2"] / "variable", mode="r").metadata.filters[0].codec_id == "vlen-utf8"


@pytest.mark.parametrize(
    "codec",
    ["none", "zstd:level=3", "gzip:level=5", "zlib:level=5", "lz4", "bz2:level=3", "blosc:cname=lz4,shuffle=bitshuffle", "zstd+crc32c"],
)
def test_every_codec_is_read_by_others(squall, tmp_path, stores, codec):
    source = archive.make(tmp_path / "in", 2)
    in_both(squall, stores, source, "--codec", codec, "--bitround", "9")
    identical(stores)
    squall("verify", stores["2"])


def test_another_version_is_another_layout(squall, tmp_path, stores):
    source = archive.make(tmp_path / "in", 2)
    in_both(squall, stores, source)
    for store, options in ((stores["2"], []), (stores["3"], OLD)):
        done = squall("convert", source, store, *options, check=False)
        assert done.code == 4 and "--zarr-format" in done.err
    for options, words in (
        (["--zarr-format", "4"], "--zarr-format"),
        ([*OLD, "--shards", "init_time=2"], "Zarr v2 has none"),
    ):
        done = squall("convert", source, tmp_path / "new.zarr", *options, check=False)
        assert done.code == 2 and words in done.err and not (tmp_path / "new.zarr").exists()


class OfVersion2(Sweep):
    def __init__(self, support, before, source, store, options):
        super().__init__(support, before, source, store, [*options, *OLD])

    def flags_are_not_ahead(self):
        """As of version 3: every chunk of a run that chunk_exists tells of is one that an undisturbed run wrote."""
        now = files(self.store) if self.store.is_dir() else {}
        then = files(self.before) if self.before else {}
        flags = [p for p in now if p.startswith("chunk_exists/") and p.rsplit("/", 1)[1].isdigit() and 1 in now[p]]
        for flag in flags:
            chunks = {p for p in self.after | then if p.startswith(f"t2m/{flag.rsplit('/', 1)[1]}/")}
            assert chunks and any(all(now.get(p) == whole.get(p) for p in chunks) for whole in (self.after, then)), flag


@pytest.fixture(params=["new", "late file", "prepend"])
def sweep(request, squall, support, tmp_path):
    source, before, store = tmp_path / "in", tmp_path / "before.zarr", tmp_path / "s" / "out.zarr"
    options = ["--chunks", "latitude=6", "--threads", "2"]
    for n in range(3):
        archive.write(archive.path_of(source, n, "a"), archive.run(n, ("t",), range(1)))
    if request.param == "new":
        return OfVersion2(support, None, source, store, options)
    if request.param == "prepend":
        archive.path_of(source, 0, "a").rename(tmp_path / "early.grib2")
    squall("convert", source, before, *options, *OLD)
    if request.param == "prepend":
        shutil.move(tmp_path / "early.grib2", archive.path_of(source, 0, "a"))
        return OfVersion2(support, before, source, store, [*options, "--prepend"])
    archive.write(archive.path_of(source, 1, "b"), [archive.field("t", archive.init(1), 0, seed=5)])  # replaces a field
    archive.write(archive.path_of(source, 3, "a"), archive.run(3, ("t",), range(1)))
    return OfVersion2(support, before, source, store, options)


@pytest.mark.parametrize("stride", [53, pytest.param(1, marks=pytest.mark.long)])
def test_killed_at_every_call(sweep, stride):
    sweep.kill_at_every_call(stride)


@pytest.mark.parametrize("stride", [53, pytest.param(1, marks=pytest.mark.long)])
def test_failed_at_every_call(sweep, stride):
    sweep.fail_every_call(stride, "ENOSPC", "No space left")


@pytest.mark.parametrize("stride", [71, pytest.param(1, marks=pytest.mark.long)])
def test_power_lost_behind_every_call(sweep, stride):
    sweep.lose_power_at_every_call(stride)
