"""What squall.store refuses, since values would be lost or mean something else."""

import itertools

import numpy as np
import pandas as pd
from xarray import Variable, conventions
from xarray.backends.zarr import extract_zarr_variable_encoding
from xarray.coders import CFDatetimeCoder


def _grid_borders(chunk, begin, end):
    """Where chunks of the store begin between begin and end; chunk is a length, or the lengths of all."""
    if isinstance(chunk, tuple):
        borders = itertools.accumulate(chunk)
        return [b for b in borders if begin < b < end]
    return list(range((begin // chunk + 1) * chunk, end, chunk))


def _nearest(blocks, chunk, begin):
    """Lengths of blocks that cut no chunk, their borders moved to the nearest border of a chunk."""
    end = begin + sum(blocks)
    borders = _grid_borders(chunk, begin, end)
    wanted = [begin + n for n in itertools.accumulate(blocks)][:-1]
    found = sorted({min(borders, key=lambda b, w=w: abs(b - w)) for w in wanted}) if borders else []
    return tuple(b - a for a, b in itertools.pairwise([begin, *found, end]))


def _region_text(dim, begin, end):
    return f"{{{dim!r}: slice({begin}, {end})}}"


def check_alignment(store, name, variable, existing):
    """Two tasks never write into the same chunk (or shard); neither do two stores of regions, where mode "r+" says that there are some."""
    if variable.chunks is None:
        return
    if existing is None:
        version = store.zarr_group.metadata.zarr_format
        how = extract_zarr_variable_encoding(variable, name=name, zarr_format=version)
        outer, shape = how.get("shards") or how["chunks"], variable.shape
    else:
        outer, shape = _outer(existing), existing.shape
    if not isinstance(outer, tuple):
        return
    what = "shard" if existing is not None and existing.shards or existing is None and how.get("shards") else "chunk"
    for dim, blocks, chunk, length in zip(variable.dims, variable.chunks, outer, shape, strict=True):
        begin = (store._write_region or {}).get(dim, slice(None)).indices(length)[0]
        if dim == store._append_dim and existing is not None:
            begin = length if store.length is None else store.length
        end = begin + sum(blocks)
        starts = {begin, end, *_grid_borders(chunk, begin, end)}
        if any(begin + n not in starts for n in itertools.accumulate(blocks)):
            raise ValueError(
                f"variable {name!r}: Dask's chunks along {dim!r}, {_short(blocks)}, cut a {what} of the store, which is {chunk} long "
                f"there{f', from position {begin} on' if begin else ''}: two tasks would write into the same {what}. Nearest that "
                f"fits: .chunk({{{dim!r}: {_short(_nearest(blocks, chunk, begin))}}}); align_chunks=True does it, safe_chunks=False "
                "takes the risk"
            )
        if store._mode == "r+":
            _check_region(name, dim, begin, end, chunk, length, what)


def _outer(array):
    try:
        return tuple(array.shards or array.chunks)
    except NotImplementedError:  # zarr-python has these of rectilinear grids only
        return tuple(tuple(n) for n in array.write_chunk_sizes)


def _short(lengths):
    return str(tuple(lengths)) if len(lengths) <= 8 else f"({', '.join(map(str, lengths[:7]))}, …)"


def _check_region(name, dim, begin, end, chunk, length, what):
    borders = [0, *_grid_borders(chunk, 0, length), length]
    if begin in borders and (end in borders or end > length):
        return
    low = max(b for b in borders if b <= begin)
    high = min(b for b in borders if b >= end)
    raise ValueError(
        f"variable {name!r}: region {_region_text(dim, begin, end)} cuts a {what} of the store, which is {chunk} long there: another "
        f"store at the same time would lose values. Nearest that fits: {_region_text(dim, low, high)}; mode='a' allows it where nobody "
        "else writes, safe_chunks=False takes the risk"
    )


# ---- coordinates ----------------------------------------------------------------------------------------------------------------------


def _decoded(name, variable):
    return conventions.decode_cf_variable(name, variable, concat_characters=False).values


def _stored(store, name):
    return _decoded(name, store.open_store_variable(name))


def check_coordinates(store, variables):
    """The values to append are new, and the other coordinates are the store's. Returns the length of the store's coordinate, or None."""
    dim = store._append_dim
    for name, variable in variables.items():
        if name == dim or variable.dims != (name,) or name not in store.members or store._mode == "a-":
            continue
        stored, given = _stored(store, name), _decoded(name, variable)
        if len(stored) == len(given) and not pd.Index(stored).equals(pd.Index(given)):
            raise ValueError(
                f"coordinate {name!r} is not the store's, and all that is there already would be named by the new one: "
                f"reindex or sort the dataset as the store has it, or leave the store's coordinate with mode='a-'"
            )
    if dim not in variables or dim not in store.members or variables[dim].dims != (dim,):
        return None
    stored, given = pd.Index(_stored(store, dim)), pd.Index(_decoded(dim, variables[dim]))
    is_there = given.isin(stored)
    if is_there.any():
        raise ValueError(_repeated(dim, variables, stored, given, is_there))
    return len(stored)


def _repeated(dim, variables, stored, given, is_there):
    first = given[int(is_there.argmax())]
    where = np.flatnonzero(stored.isin(given))
    without = [name for name, v in variables.items() if dim not in v.dims]
    call = f"ds.drop_vars({without!r})" if without else "ds"
    head = f"coordinate {dim!r}: {first} is in the store already, at position {where[0]}; to write it again: "
    if is_there.all() and len(where) == len(given) and (stored[where] == given).all() and where[-1] - where[0] == len(where) - 1:
        return f"{head}squall.store({call}, dest, region={_region_text(dim, where[0], where[-1] + 1)})"
    new = np.flatnonzero(~is_there)
    rest = f"; to append what is new: ds.isel({dim}={_indices(new)})" if len(new) else ""
    return f"{head}squall.store({call}.isel({dim}={_indices(np.flatnonzero(is_there))}), dest, region='auto'){rest}"


def _indices(numbers):
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"slice({numbers[0]}, {numbers[-1] + 1})"
    return f"[{', '.join(map(str, numbers[:20]))}{', …' if len(numbers) > 20 else ''}]"


# ---- times ----------------------------------------------------------------------------------------------------------------------------


def check_times(name, given, encoded, array):
    """Times are counted as the store counts them, exactly."""
    attrs = array.metadata.attributes
    units = attrs.get("units")
    if not isinstance(units, str) or (" since " not in units and given.dtype.kind != "m"):
        return
    counting = {key: attrs[key] for key in ("units", "calendar", "dtype") if key in attrs}
    if given.dtype.kind not in "mMO":
        _check_counting(name, encoded, counting)
        return
    if encoded.chunks is not None:  # xarray's encoder, which is told the units, refuses what they cannot tell
        return
    numbers = Variable(encoded.dims, np.asarray(encoded.values).astype(array.dtype), encoded.attrs | counting)
    times = CFDatetimeCoder(use_cftime=True) if given.dtype.kind == "O" else True
    told = conventions.decode_cf_variable(name, numbers, decode_times=times, decode_timedelta=given.dtype.kind == "m").values
    if not pd.Index(np.ravel(told)).equals(pd.Index(np.ravel(given.values))):
        raise ValueError(
            f"variable {name!r}: the store counts in {units!r} as {array.dtype}, which cannot tell all of the new values exactly. Make "
            "the store with finer units: "
            f"encoding={{{name!r}: {{'units': {_finer(units, encoded.attrs.get('units'))!r}, 'dtype': 'int64'}}}}"
        )


def _finer(units, wanted):
    """What xarray would count in, or else a unit that tells all that numpy's nanoseconds do."""
    own = units.split(" ")[0]
    if isinstance(wanted, str) and wanted.split(" ")[0] != own:
        return wanted
    return units.replace(own, "nanoseconds", 1)


def _check_counting(name, encoded, counting):
    """Numbers of a dataset that was opened without decoding its times."""
    given = {key: encoded.attrs.get(key, counting.get(key)) for key in counting}
    both = [Variable(("n",), np.arange(2), attrs) for attrs in (given, counting)]
    if given != counting and not np.array_equal(*(_decoded(name, v) for v in both)):
        raise ValueError(
            f"variable {name!r}: its numbers count in {given['units']!r}, the store's in {counting['units']!r}: decode them first, "
            "xarray.decode_cf(ds)"
        )
