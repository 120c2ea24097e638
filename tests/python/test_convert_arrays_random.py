"""squall convert of arrays that chance makes: values are what zarr-python wrote, and a store that grew is one that was made at once."""

import json
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr
from test_convert import files

KINDS = ["i1", "u2", "i4", "u8", "f2", "f4", "f8", "?"]


def seeds(all_of_them, usual):
    return pytest.mark.parametrize(
        "seed", [*all_of_them[:usual], *(pytest.param(seed, marks=pytest.mark.long) for seed in all_of_them[usual:])]
    )


def values_of(rng, shape, kind):
    values = rng.integers(-100, 100, shape).astype(kind)
    if values.dtype.kind == "f":
        values.ravel()[rng.random(values.size) < 0.1] = np.nan
    return values


def dims_of(name, values):
    return ["time", f"y_{name}", f"x_{name}", f"z_{name}"][: values.ndim]


def write(path, arrays, coordinate, rng, fill=0):
    """Arrays whose first dimension is time, in chunks, or shards, of any size."""
    group = zarr.open_group(path, mode="w", zarr_format=int(rng.choice([2, 3])))
    names = {"dimension_names": ["time"]} if group.metadata.zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["time"]}}
    group.create_array("time", data=coordinate, **names)
    for name, values in arrays.items():
        dims = dims_of(name, values)
        names = {"dimension_names": dims} if group.metadata.zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": dims}}
        chunks = [int(rng.integers(1, max(2, n + 1))) for n in values.shape]
        how = {"shards": tuple(2 * n for n in chunks)} if group.metadata.zarr_format == 3 and rng.random() < 0.3 else {}
        group.create_array(name, data=values, chunks=chunks, fill_value=values.dtype.type(fill), **names, **how)


def random_arrays(rng, length):
    arrays = {}
    for k in range(int(rng.integers(1, 4))):
        shape = (length, *(int(n) for n in rng.integers(1, 40, rng.integers(0 if k else 1, 4))))
        while np.prod(shape) > 100_000:
            shape = shape[:-1]
        arrays[f"v{k}"] = values_of(rng, shape, rng.choice(KINDS))
    return arrays


def random_chunks(rng, arrays):
    lengths = {}
    for name, values in arrays.items():
        lengths |= dict(zip(dims_of(name, values), values.shape, strict=True))
    dims = [dim for dim in lengths if rng.random() < 0.7]
    return [",".join(f"{dim}={rng.integers(1, lengths[dim] + 3)}" for dim in dims)] if dims else []


def same(store, arrays, coordinate):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group = zarr.open_group(store, mode="r")
        ds = xr.open_zarr(store, decode_cf=False)
    for name, values in {**arrays, "time": coordinate}.items():
        for found in (np.asarray(group[name][...]), ds[name].values):
            assert found.dtype == values.dtype and found.shape == values.shape, name
            np.testing.assert_array_equal(found, values, err_msg=name)
    assert group["chunk_exists"][...].all() and group["chunk_exists"].shape == coordinate.shape


@seeds(range(0, 40), 16)
def test_a_store_in_other_chunks(squall, tmp_path, seed):
    rng = np.random.default_rng(seed)
    length = int(rng.integers(1, 30))
    arrays, coordinate = random_arrays(rng, length), np.arange(length) * 3.0
    write(tmp_path / "in.zarr", arrays, coordinate, rng, seed % 2)
    chunks = random_chunks(rng, arrays)
    options = ["--append-dim", "time", *(["--chunks", *chunks] if chunks else [])]
    squall("convert", tmp_path / "in.zarr", tmp_path / "out.zarr", *options, "--threads", rng.integers(1, 5))
    same(tmp_path / "out.zarr", arrays, coordinate)
    found = zarr.open_group(tmp_path / "out.zarr", mode="r")
    for part in chunks[0].split(",") if chunks else []:
        dim, n = part.split("=")
        for name, values in arrays.items():
            if dim in dims_of(name, values)[1:] and np.prod(values.shape[1:]) > 16:
                at = dims_of(name, values).index(dim)
                assert found[name].chunks[at] == min(int(n), values.shape[at]), (name, part)
    assert squall("verify", tmp_path / "out.zarr").code == 0
    report = squall("convert", tmp_path / "in.zarr", tmp_path / "out.zarr", *options, "--json", "-q")
    assert json.loads(report.out)["units"]["done"] == 0


@seeds(range(100, 130), 12)
def test_a_store_that_grows(squall, tmp_path, seed):
    """Files of any length, given in any portions, all of them or the new ones alone."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.integers(1, 8, rng.integers(2, 7)))
    arrays, coordinate = random_arrays(rng, int(ends[-1])), np.cumsum(rng.integers(1, 5, ends[-1])).astype(rng.choice(["i4", "f8"]))
    paths = []
    for i, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        paths.append(tmp_path / f"{i}.zarr")
        made = np.random.default_rng(seed)  # the same kinds of arrays in each
        made_arrays = {name: values[begin:end] for name, values in arrays.items()}
        write(paths[-1], made_arrays, coordinate[begin:end], made)
    chunks = ["--chunks", f"time={rng.integers(1, 9)}"]
    squall("convert", *paths, tmp_path / "whole.zarr", *chunks, "--append-dim", "time")
    same(tmp_path / "whole.zarr", arrays, coordinate)
    done = 0
    while done < len(paths):
        more = int(rng.integers(done + 1, len(paths) + 1))
        some = paths[:more] if rng.random() < 0.5 else paths[done:more]
        squall("convert", *some, tmp_path / "out.zarr", *chunks, "--append-dim", "time")
        done = more
    assert files(tmp_path / "out.zarr") == files(tmp_path / "whole.zarr")
