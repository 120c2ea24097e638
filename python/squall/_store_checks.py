"""What squall.store refuses, since values would be lost or mean something else."""

import itertools
import os

import numpy as np
import pandas as pd

from squall._store_times import decoded
from squall._store_xarray import CFDatetimeCoder, extract_zarr_variable_encoding


def _lazy_arrays(variable):
    """What xarray reads a variable from, where it is not in memory: of dask's graph the parts that hold such an array."""
    data = variable._data
    graph = data.__dask_graph__() if variable.chunks is not None else None
    layers = getattr(graph, "layers", {}).values()
    found = [data] if graph is None else [part for layer in layers if len(layer) == 1 for part in layer.values()]
    for part in found:
        while hasattr(part, "array"):  # xarray's wrappers
            part = part.array
        yield part


def _paths_of(part):
    """Of an array of squall's engine, or of xarray's own for Zarr."""
    source = getattr(getattr(part, "_array", None), "_dataset", None)
    if source is not None:
        return list(map(os.fsdecode, source.many[0])) if source.many else [source.path]
    root = getattr(getattr(getattr(part, "_array", None), "store", None), "root", None)
    return [] if root is None else [os.fspath(root)]


def check_sources(ds, path):
    """A store that is begun anew is not what its values are yet to be read from."""
    place = os.path.realpath(path)
    for name, variable in ds.variables.items():
        for source in itertools.chain.from_iterable(map(_paths_of, _lazy_arrays(variable))):
            if os.path.commonpath([place, os.path.realpath(source)]) == place:
                raise ValueError(
                    f"variable {name!r} is read from {source}, which mode='w' removes first: load it, ds.load(), or store it elsewhere"
                )


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
        outer, shape = outer_chunks(existing), existing.shape
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


def outer_chunks(array):
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


def _both(store, name, variable):
    """A coordinate's values: the store's and the given ones."""
    given = decoded(name, variable)
    how = {"decode_timedelta": True} if given.dtype.kind == "m" else {}
    stored = decoded(name, store.open_store_variable(name), **how)
    if stored.dtype.kind == "O" and given.dtype.kind == "M":  # nanoseconds do not reach so far
        how = {"decode_times": CFDatetimeCoder(time_unit=np.datetime_data(given.dtype)[0])}
        stored = decoded(name, store.open_store_variable(name), **how)
    stored, given = pd.Index(stored), pd.Index(given)
    try:
        given.isin(stored)
    except pd.errors.OutOfBoundsDatetime:  # in the other's unit
        return stored.astype(object), given.astype(object)
    return stored, given


def check_lengths(store, variables):
    """A new array would have the length of what is appended, and those that are there another one: no reader could open them together."""
    dim = store._append_dim
    there = {name for name in store.array_keys() if dim in store.open_store_variable(name).dims}
    new = [name for name, variable in variables.items() if dim in variable.dims and name not in there]
    if there and new:
        raise ValueError(
            f"append_dim={dim!r}: the store has no {', '.join(map(repr, new))}, which would be shorter than what it has along {dim}: "
            "store it first, with mode='a' and all of its values"
        )


def check_coordinates(store, variables):
    """The values to append are new, and the other coordinates are the store's. Returns the length of the store's coordinate, or None."""
    dim = store._append_dim
    for name, variable in variables.items():
        if name == dim or variable.dims != (name,) or name not in store.members or store._mode == "a-":
            continue
        stored, given = _both(store, name, variable)
        if len(stored) == len(given) and not stored.equals(given):
            raise ValueError(
                f"coordinate {name!r} is not the store's, and all that is there already would be named by the new one: "
                f"reindex or sort the dataset as the store has it, or leave the store's coordinate with mode='a-'"
            )
    if dim not in variables or dim not in store.members or variables[dim].dims != (dim,):
        return None
    stored, given = _both(store, dim, variables[dim])
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
