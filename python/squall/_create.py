"""New arrays and groups in Zarr stores."""

import json
import operator
import os
from collections.abc import Mapping

import numpy as np

from squall import _squall, _values
from squall._array import Array
from squall._attributes import as_json
from squall._paths import path_text

DURABILITY = {"none": 0, "data": 1, "full": 2}


def durability_number(durability):
    if durability not in DURABILITY:
        raise ValueError(f"durability {durability!r}: one of {', '.join(map(repr, DURABILITY))}")
    return DURABILITY[durability]


def _lengths(what, lengths, rank):
    if lengths is None:
        return None
    try:
        if not np.iterable(lengths):
            return (operator.index(lengths),) * (rank if what != "shape" else 1)
        lengths = tuple(map(operator.index, lengths))
    except TypeError:
        raise TypeError(f"{what}={lengths!r}: integers are wanted, one a dimension") from None
    if what != "shape" and len(lengths) != rank:
        raise ValueError(f"{what}={lengths!r}: {rank} lengths are wanted, one a dimension, or a number for all of them")
    return lengths


def _grid(chunks, shards):
    """The arguments → (chunks, shards, chunk_shapes), which are lists of lengths along dimensions: of shards, where these are given."""
    outer = chunks if shards is None else shards
    if isinstance(outer, str) or not np.iterable(outer) or not any(np.iterable(lengths) for lengths in outer):
        return chunks, shards, None
    try:
        shapes = [[*map(operator.index, n)] if np.iterable(n) else operator.index(n) for n in outer]
    except TypeError:
        raise TypeError(f"chunks {outer!r}: for each dimension a length, or the lengths of its chunks") from None
    return (None if shards is None else chunks), None, json.dumps(shapes)


def _json(value):
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _attributes(attributes, dtype=None):
    return None if attributes is None else as_json(dict(attributes), dtype)


def create_group(path, name="", *, attributes=None, zarr_format=None, consolidated=False, overwrite=False, durability="none"):
    """Make a group in the Zarr store at path, and the groups on the way where they are not there. Returns it, open for writing.

    name          within the store, "a/b"; "": the store itself
    attributes    a mapping of what JSON can say; numpy's scalars and arrays become numbers and lists, bytes texts
    zarr_format   3 or 2; None: the store's own, of a new one 3
    consolidated  begin with consolidated metadata, which is kept true from then on
    overwrite     delete what is there, and all below it

    Raises squall.Error where something is there already, ValueError where an argument makes no sense.
    """
    from squall._group import open

    path = os.path.abspath(path_text(path))
    _squall.create_group(path, name, zarr_format or 0, _attributes(attributes), consolidated, overwrite, durability_number(durability))
    root = open(path, mode="r+", durability=durability)
    return root[name] if name else root


def consolidate_metadata(path, name=""):
    """Consolidated metadata of a group of the Zarr store at path, made anew from all that is below it: one read then opens it all.

    name   of the group within the store; "": the store itself

    It is kept true by what squall writes from then on. Returns the group, open for reading. Raises FileNotFoundError where it is not
    there, ValueError where it is an array, squall.Error where nodes of the other Zarr version are below it.
    """
    from squall._group import open

    path = os.path.abspath(path_text(path))
    _squall.consolidate(path, name)
    return open(os.path.join(path, name))


def create_array(
    path,
    name="",
    *,
    shape=None,
    dtype=None,
    data=None,
    chunks="auto",
    shards=None,
    dims=None,
    fill_value=None,
    attributes=None,
    codecs=None,
    filters=None,
    index_codecs=None,
    index_location="end",
    order="C",
    chunk_key_encoding=None,
    separator=None,
    zarr_format=None,
    overwrite=False,
    durability="none",
):
    """Make an array in the Zarr store at path, and the groups on the way. Returns it, open for writing.

    name         within the store, "group/t2m"; "": the store is this array
    shape        lengths of the dimensions
    dtype        numpy's, str, bytes (variable length), or as Zarr's metadata say it: "int4", {"name": …, "configuration": …}
    data         an array to store, in place of shape and dtype; what is masked becomes the fill value, which has to be given then
    chunks       lengths, or one number for all dimensions; "auto": some MiB; None: one chunk.
                 A list for a dimension: the lengths of its chunks, which make up the shape,
                 [[10, 20, 5], 100]: a rectilinear grid, which needs readers that know these (zarr-python 3.4)
    shards       of objects that hold several chunks each, multiples of chunks; None: each chunk is an object. Lists as for chunks
    dims         names of the dimensions, None for one without
    attributes   as of create_group; v3: a _FillValue of floats is stored as xarray does it, in base64
    fill_value   what elements read as that were never written; None: 0, "", no time
    codecs       the list of Zarr v3's metadata (of chunks within shards); v2: the compressor's metadata; or words as the command's:
                 "zstd:level=3", "blosc:cname=zstd,clevel=5,shuffle=shuffle", "none". None: zstd
    filters      v2's, a list
    index_codecs, index_location   of shards: a list, "start" or "end"
    order        "F": v2's column-major chunks
    chunk_key_encoding   v3's: "default" (c/0/1) or "v2" (0.1), or zarr-python's {"name": …, "separator": …}
    separator    of chunk keys, "/" or "."; v2's dimension_separator
    zarr_format  3 or 2; None: the store's own, of a new one 3
    overwrite    delete what is there
    durability   "none": as other programs write; "data": chunks and metadata are on the disk before their names are; "full": names, too

    Raises squall.Error where something is there already, ValueError where an argument makes no sense, NotImplementedError for what
    squall does not write.
    """
    from squall._group import open

    if data is not None:
        if not isinstance(data, np.ma.MaskedArray):
            data = np.asarray(data)
        elif fill_value is None and np.ma.is_masked(data):
            raise ValueError("data is masked: give the fill_value that is stored there, or data.filled(…)")
        shape = data.shape if shape is None else shape
        if dtype is None:
            dtype = data.dtype if data.dtype.kind != "O" else bytes if data.size and isinstance(data.flat[0], bytes) else str
    if shape is None or dtype is None:
        raise ValueError("shape and dtype are wanted, or data")
    if order not in ("C", "F") or index_location not in ("start", "end"):
        raise ValueError(f'order {order!r}, index_location {index_location!r}: "C" or "F", "start" or "end"')
    if isinstance(chunk_key_encoding, Mapping):
        separator = chunk_key_encoding.get("separator", separator)
        chunk_key_encoding = chunk_key_encoding.get("name")
    if chunk_key_encoding not in (None, "default", "v2"):
        raise ValueError(f'chunk_key_encoding {chunk_key_encoding!r}: "default" or "v2"')
    shape = _lengths("shape", shape, 0)
    text = _values.type_text(dtype)
    chunks, shards, chunk_shapes = _grid(chunks, shards)
    if chunk_shapes and isinstance(chunks, str):
        raise ValueError("shards of several shapes: chunks have to be said")
    if isinstance(chunks, str):
        if chunks != "auto":
            raise ValueError(f'chunks={chunks!r}: lengths, None or "auto"')
        itemsize = np.dtype(text).itemsize if text[0] in "<>|" else 8
        chunks = _values.chunks_for(shape, itemsize) if shards is None and shape else None
    path = os.path.abspath(path_text(path))
    is_v2 = zarr_format == 2 or (zarr_format is None and os.path.exists(os.path.join(path, ".zgroup")))
    _squall.create_array(
        path,
        name,
        zarr_format or 0,
        text,
        shape,
        _lengths("chunks", chunks, len(shape)),
        _lengths("shards", shards, len(shape)),
        chunk_shapes,
        None if dims is None else tuple(dims),
        _values.fill_text(fill_value, zarr_format or 3),
        _attributes(attributes, np.dtype(text) if text[0] in "<>|" and not is_v2 else None),
        _json(codecs),
        _json(filters),
        _json(index_codecs),
        index_location == "start",
        separator or " ",
        chunk_key_encoding == "v2",
        order == "F",
        overwrite,
        durability_number(durability),
    )
    found = open(path, mode="r+", durability=durability)
    array = found if isinstance(found, Array) else found[name]
    if data is not None:
        array[...] = data
    return array
