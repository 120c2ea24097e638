"""squall.store never shifts times: readers get what was given, or the store is refused. xarray and cftime read."""

import datetime

import numpy as np
import pytest

xr = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")
cftime = pytest.importorskip("cftime")
pytest.importorskip("dask")
import pandas as pd  # noqa: E402
import squall  # noqa: E402
from test_xarray_store import contents  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
NANOSECONDS = {"D": 86400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
WORDS = ("days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds")
KINDS = ("M8[ns]", "M8[ns]", "M8[us]", "M8[s]", "m8", "m8", "noleap", "360_day", "standard", "julian")


def pick(random, choices):
    return choices[int(random.integers(len(choices)))]


def times(random, kind, count):
    """Ascending moments or durations, of a random step; sometimes one is missing."""
    steps = np.cumsum(random.integers(1, 5, count)) * pick(random, tuple(NANOSECONDS.values()))
    if kind[0] not in "mM":
        first = cftime.datetime(pick(random, (2000, 1900, 1500)), 1, 1, calendar=kind)
        return np.array([first + datetime.timedelta(microseconds=int(n)) for n in np.maximum(steps // 1000, np.arange(count))], object)
    unit = pick(random, ("s", "ms", "us", "ns")) if kind == "m8" else kind[3:-1]
    values = steps.astype("m8[ns]").astype(f"m8[{unit}]")
    if kind != "m8":
        starts = ("1970-01-01", "2000-01-01T00:35", "1900-01-01", "1500-03-01", "3000-01-01")
        values = values + np.datetime64(pick(random, starts[: 3 if unit == "ns" else 5]), unit)
    if random.random() < 0.2:
        values[int(random.integers(count))] = "NaT"
    return values


def encodings(random, kind):
    found = {}
    if random.random() < 0.8:
        found["units"] = pick(random, WORDS)
        if kind != "m8":
            found["units"] += " since " + pick(random, ("1970-01-01", "2000-01-01", "1900-01-01T00:00:30", "0001-01-01"))
    if random.random() < 0.7:
        found["dtype"] = pick(random, ("i2", "i4", "i8", "f4", "f8", "u4"))
    if random.random() < 0.2 and kind != "m8":
        found["calendar"] = pick(random, ("standard", "proleptic_gregorian", "noleap", "360_day", "julian"))
    if random.random() < 0.2:
        found["_FillValue"] = pick(random, (0, -1, 9))
    if random.random() < 0.1:
        found["scale_factor"] = pick(random, (0.5, 0.1))
    return found


def as_read(folder, given):
    """By xarray, and in the unit that was given where days lie beyond nanoseconds."""
    how = {"decode_timedelta": True, "chunks": None}
    with xr.open_zarr(folder, **how) as ds:
        found = ds["when"].values
    if found.dtype.kind == "O" and given.dtype.kind == "M":
        with xr.open_zarr(folder, decode_times=xr.coders.CFDatetimeCoder(time_unit=np.datetime_data(given.dtype)[0]), **how) as ds:
            found = ds["when"].values
    return found


def are_same(found, wanted):
    if found.dtype.kind == "M" and wanted.dtype.kind == "O":
        wanted = np.array([date.isoformat() for date in wanted], "M8[us]")
    assert found.dtype.kind == wanted.dtype.kind
    if found.dtype.kind == "O":
        return [(d.calendar, d.isoformat()) for d in found] == [(d.calendar, d.isoformat()) for d in wanted]
    return ((found == wanted) | (np.isnat(found) & np.isnat(wanted))).all()


@pytest.mark.parametrize("begin", [0, *[pytest.param(n, marks=pytest.mark.long) for n in range(50, 1000, 50)]])
def test_random_times_are_exact_or_refused(tmp_path, begin):
    counts = {"stored": 0, "changed": 0, "refused": 0}
    for seed in range(begin, begin + 50):
        random, folder = np.random.default_rng(seed), tmp_path / f"{seed}"
        kind = pick(random, KINDS)
        other = kind if random.random() < 0.85 else pick(random, KINDS)
        dim = pick(random, ("x", "when"))

        def dataset(values, random=random, dim=dim):
            ds = xr.Dataset({"when": ((dim,), values)})
            return ds.chunk(x=2) if dim == "x" and random.random() < 0.4 else ds

        first = times(random, kind, 4)
        try:
            squall.store(dataset(first), folder, encoding={"when": encodings(random, kind)}, zarr_format=pick(random, (2, 3)))
        except (ValueError, TypeError, OverflowError, KeyError):  # ours, or xarray's of what makes no sense
            continue
        assert are_same(as_read(folder, first), first), seed
        counts["stored"] += 1
        what = pick(random, ("append", "append", "region", "over"))
        if what == "append" or dim == "when":
            second, how, begin_of = times(random, other, 3), {"append_dim": dim}, 4
        elif what == "region":
            second, how, begin_of = times(random, other, 2), {"region": {dim: slice(2, 4)}}, 2
        else:
            second, how, begin_of = times(random, other, 4), {"mode": "a"}, 0
        ds, before = dataset(second), contents(folder)
        try:
            squall.store(ds, folder, safe_chunks=False, **how)
        except Exception as e:
            assert isinstance(e, ValueError | TypeError | KeyError | OverflowError), seed
            assert "'when'" in "".join([str(e), *getattr(e, "__notes__", [])]), seed
            assert ds.chunks or contents(folder) == before, seed
            counts["refused"] += 1
            continue
        assert are_same(as_read(folder, second)[begin_of:], second), seed
        assert are_same(as_read(folder, first)[:begin_of], first[:begin_of]), seed
        counts["changed"] += 1
    assert all(n > 2 for n in counts.values()), counts


def one(values, **encoding):
    ds = xr.Dataset({"when": (("x",), np.asarray(values))})
    ds["when"].encoding = encoding
    return ds


def days(*texts):
    return np.array(texts, "M8[ns]")


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize(
    ("encoding", "more"),
    [
        ({"units": "hours since 2000-01-01", "dtype": "i8"}, days("2000-01-01T00:20")),
        ({"units": "days since 1900-01-01", "dtype": "f8"}, days("2000-01-01T00:20:00.000000123")),
        ({"units": "hours since 2000-01-01", "dtype": "f4"}, days("2023-05-01T01:10")),
        ({"units": "seconds since 2000-01-01", "dtype": "i4"}, days("2100-01-01")),
        ({"units": "seconds since 2000-01-01", "dtype": "u4"}, days("1999-01-01")),
        ({"units": "hours since 2000-01-01", "dtype": "i2"}, days("NaT")),
        ({"units": "hours since 2000-01-01", "dtype": "i4", "_FillValue": 5}, days("2000-01-01T05")),
    ],
)
def test_an_encoding_that_holds_them_is_named(tmp_path, is_chunked, encoding, more):
    first = one(days("2000-01-01", "2000-01-02"), **encoding)
    second = one(more).chunk() if is_chunked else one(more)
    squall.store(first, tmp_path / "a")
    before = contents(tmp_path / "a")
    with pytest.raises(ValueError, match=r"'when': the store counts in .*encoding=") as e:
        squall.store(second, tmp_path / "a", append_dim="x", safe_chunks=False)
    assert contents(tmp_path / "a") == before or is_chunked
    assert (xr.open_zarr(tmp_path / "a").when.values == first.when.values).all()
    named = eval(str(e.value).split("encoding=")[1])
    if encoding["dtype"] != "i8":  # whose units xarray widens
        with pytest.raises(ValueError, match=r"'when': .* cannot tell all of its values exactly: give encoding="):
            squall.store(second, tmp_path / "b", encoding={"when": encoding}, mode="w")
    squall.store(first, tmp_path / "b", encoding=named, mode="w")
    squall.store(second, tmp_path / "b", append_dim="x", safe_chunks=False)
    found = xr.open_zarr(tmp_path / "b").when.values
    assert are_same(found, np.concatenate([first.when.values, more]))


def test_units_of_a_new_store_are_widened_as_xarray_does(tmp_path):
    ds = one(days("2000-01-01T00:20"), units="hours since 2000-01-01", dtype="i8")
    squall.store(ds, tmp_path / "a")
    ds.to_zarr(tmp_path / "b")
    assert contents(tmp_path / "a")["when/zarr.json"] == contents(tmp_path / "b")["when/zarr.json"]
    assert (xr.open_zarr(tmp_path / "a").when.values == ds.when.values).all()


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (np.arange(3), days("2000-01-01"), "moments, and the units of the store's are None"),
        (np.arange(3), np.array([1], "m8[h]").astype("m8[ns]"), "durations, and the units of the store's are None"),
        (np.array([1], "m8[h]").astype("m8[ns]"), days("2000-01-01"), "moments, and the units of the store's are 'hours'"),
        (days("2000-01-01"), np.array([1], "m8[h]").astype("m8[ns]"), "durations, and the units of the store's are 'days since"),
        (days("2000-01-01"), np.array([6]), "numbers without units"),
        (xr.date_range("2000-01-01", periods=2, calendar="noleap", use_cftime=True).values, days("2000-01-01"), "convert_calendar"),
        (days("2000-01-01"), xr.date_range("2000-01-01", periods=2, calendar="360_day", use_cftime=True).values, "convert_calendar"),
    ],
)
def test_another_kind_of_time_is_refused(tmp_path, is_chunked, first, second, says):
    squall.store(one(first), tmp_path / "a")
    before = contents(tmp_path / "a")
    with pytest.raises(ValueError, match=f"'when': .*{says}"):
        squall.store(one(second).chunk() if is_chunked else one(second), tmp_path / "a", append_dim="x", safe_chunks=False)
    assert {k: v for k, v in contents(tmp_path / "a").items() if "/c/" not in k} == {k: v for k, v in before.items() if "/c/" not in k}


def test_bounds_count_as_their_coordinate(tmp_path):
    """CF's bounds have no units of their own."""
    group = zarr.open_group(tmp_path / "a", mode="w")
    when = group.create_array("when", shape=(2,), dtype="i4", dimension_names=["when"])
    when[:] = [0, 1]
    when.attrs.update({"units": "hours since 2000-01-01", "bounds": "bounds"})
    bounds = group.create_array("bounds", shape=(2, 2), dtype="i4", dimension_names=["when", "edge"])
    bounds[:] = [[0, 1], [1, 2]]

    def more(*edges):
        ds = xr.Dataset({"bounds": (("when", "edge"), [days(*edges)])}, coords={"when": days(edges[0])})
        ds.when.attrs["bounds"] = "bounds"
        return ds

    with pytest.raises(ValueError, match="'bounds': the store counts in 'hours since 2000-01-01' as int32"):
        squall.store(more("2000-01-01T02", "2000-01-01T02:30"), tmp_path / "a", append_dim="when")
    squall.store(more("2000-01-01T02", "2000-01-01T03"), tmp_path / "a", append_dim="when")
    found = xr.open_zarr(tmp_path / "a")
    assert (found.bounds.values[2] == days("2000-01-01T02", "2000-01-01T03")).all() and len(found.when) == 3


def test_values_far_away_are_found_in_the_store(tmp_path):
    far = xr.Dataset({"v": (("when",), [1.0])}, coords={"when": np.array(["3000-01-01"], "M8[s]")})
    squall.store(far, tmp_path / "a")
    with pytest.raises(ValueError, match="3000-01-01.*is in the store already, at position 0"):
        squall.store(far, tmp_path / "a", append_dim="when")
    near = far.assign_coords(when=pd.to_datetime(["2000-01-01"]).as_unit("ns"))
    squall.store(near, tmp_path / "a", append_dim="when")
    assert xr.open_zarr(tmp_path / "a").sizes["when"] == 2
