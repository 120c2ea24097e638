"""How an array is stored, in the words of xarray's encodings, so that to_zarr and to_netcdf store it that way again."""

import base64
import itertools
import json
import struct

import numpy as np

# HDF5's filters by their numbers
_DEFLATE, _SHUFFLE, _FLETCHER32, _SZIP, _BZIP2, _LZF, _BLOSC, _ZSTD = 1, 2, 3, 4, 307, 32000, 32001, 32015
_BLOSC_COMPRESSORS = ("blosc_lz", "blosc_lz4", "blosc_lz4hc", "blosc_snappy", "blosc_zlib", "blosc_zstd")


def dimension_names(arrays):
    """Name of an array → its dimensions' names. Those without one are called phony_dim_N as in netCDF: one for each length, and another
    where an array has that length twice."""
    taken = {dim for a in arrays.values() for dim in a.dims}
    free = (name for name in map("phony_dim_{}".format, itertools.count()) if name not in taken)
    phony, found = {}, {}
    for name, a in arrays.items():
        seen, dims = {}, []
        for dim, length in zip(a.dims, a.shape, strict=True):
            if dim is None:
                number = seen[length] = seen.get(length, 0) + 1
                if (length, number) not in phony:
                    phony[length, number] = next(free)
                dim = phony[length, number]
            dims.append(dim)
        found[name] = tuple(dims)
    return found


def enumerations(arrays):
    """Name of an array of an enumeration → its type as xarray's encodings have it.

    Squall keeps no names of types: enumerations that are the same are called by the first array that has them, with _t behind it."""
    found, types = {}, {}
    for name, a in arrays.items():
        if a._enum_names and a.dtype.kind in "iu":
            key = a.dtype, a._enum_names
            if key not in types:
                types[key] = np.dtype(a.dtype, metadata={"enum": json.loads(a._enum_names), "enum_name": f"{name}_t"})
            found[name] = types[key]
    return found


def whole_files(arrays, storages, least_bytes=4 << 20):
    """Where dask should cut the dimension along which files follow each other: between files, the largest array into so much or more."""
    joined = [(a, storages[name]) for name, a in arrays.items() if "axis" in storages[name]]
    if not joined:
        return ()
    largest, storage = max(joined, key=lambda pair: pair[0].nbytes)
    length = largest.shape[storage["axis"]]
    lengths = [[1, length]] if storage.get("new") else storage["lengths"]
    index_bytes = largest.nbytes // max(1, length)
    found, held = [], 0
    for each, times in lengths:
        for _ in range(times):
            held += each
            if held * index_bytes >= least_bytes:
                found.append(held)
                held = 0
    if held and found and held * index_bytes < least_bytes // 2:
        found[-1] += held
    elif held:
        found.append(held)
    return tuple(found)


def describe(array, storage, dims, kind, fill_is_mask):
    """attributes, encoding of an array in a dataset of this format."""
    attrs = array.attrs.asdict()
    storage = storage.get("of", storage)
    if kind == "zarr v3":
        return _of_zarr(array, attrs, dims, _codecs_v3(storage, array), bool(fill_is_mask), 3)
    if kind == "zarr v2":
        attrs = {name: value for name, value in attrs.items() if not name.lower().startswith("_nc")}
        return _of_zarr(array, attrs, dims, _codecs_v2(storage), fill_is_mask is not False, 2)
    if array.dtype.kind == "S" and "_FillValue" in attrs:
        attrs["_FillValue"] = np.bytes_(attrs["_FillValue"])
    encoding = {"dtype": array.dtype, "original_shape": array.shape}
    if kind == "hdf5":
        encoding |= _filters(storage.get("filters", ()))
        if storage.get("layout") == "chunked":
            chunks = array.chunks
            encoding |= {"contiguous": False, "chunksizes": chunks, "preferred_chunks": dict(zip(dims, chunks, strict=True))}
        else:
            encoding |= {"contiguous": True, "chunksizes": None}
    return attrs, encoding


def _filters(filters):
    """As netCDF4's Variable.filters tells them, and h5netcdf's names for what netCDF4 has not."""
    found = {name: False for name in ("zlib", "szip", "zstd", "bzip2", "blosc", "shuffle", "fletcher32")} | {"complevel": 0}
    for number, values in filters:
        level = values[0] if values else 0
        if number == _DEFLATE:
            found |= {"zlib": True, "complevel": level}
        elif number == _SHUFFLE:
            found["shuffle"] = True
        elif number == _FLETCHER32:
            found["fletcher32"] = True
        elif number == _BZIP2:
            found |= {"bzip2": True, "complevel": level}
        elif number == _ZSTD:
            found |= {"zstd": True, "complevel": level}
        elif number == _SZIP:
            found["szip"] = {"coding": "nn" if level & 32 else "ec", "pixels_per_block": values[1] if len(values) > 1 else 0}
        elif number == _BLOSC and len(values) > 6 and values[6] < len(_BLOSC_COMPRESSORS):
            found |= {"blosc": {"compressor": _BLOSC_COMPRESSORS[values[6]], "shuffle": values[5]}, "complevel": values[4]}
        elif number == _LZF:
            found |= {"compression": "lzf", "compression_opts": None}
    return found


def _of_zarr(array, attrs, dims, codecs, fill_is_mask, version):
    chunks = array.chunks
    encoding = {"chunks": chunks, "preferred_chunks": dict(zip(dims, chunks, strict=True)), "shards": array.shards, **codecs}
    fill = array.fill_value if not array.unsupported else None
    if fill_is_mask:
        if fill is not None:
            attrs["_FillValue"] = fill
        return attrs, encoding
    if version == 3:
        encoding["fill_value"] = fill
    if "_FillValue" in attrs:
        attrs["_FillValue"] = _decoded_fill(attrs["_FillValue"], array)
    return attrs, encoding


def _decoded_fill(value, array):
    """What xarray made of a _FillValue for JSON."""
    kind = array.dtype.kind
    if kind == "f" and isinstance(value, str):
        return struct.unpack("<d", base64.b64decode(value))[0]
    if kind == "c" and isinstance(value, list):
        return complex(*(struct.unpack("<d", base64.b64decode(part))[0] for part in value))
    if kind == "S" and isinstance(value, str):
        return base64.b64decode(value)
    return value


def _codecs_v3(storage, array):
    """As zarr-python's objects; without zarr-python, which to_zarr needs anyway, none are told."""
    try:
        from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec
        from zarr.codecs import BytesCodec, ShardingCodec
        from zarr.core.metadata.v3 import parse_codecs

        codecs = parse_codecs(storage["codecs"])
        if isinstance(codecs[0], ShardingCodec):
            codecs = codecs[0].codecs
    except (ImportError, KeyError, ValueError, TypeError):  # or it does not know them
        return {}
    serializer = next(c for c in codecs if isinstance(c, ArrayBytesCodec))
    if isinstance(serializer, BytesCodec) and array.itemsize == 1:
        serializer = BytesCodec(endian=None)
    return {
        "compressors": tuple(c for c in codecs if isinstance(c, BytesBytesCodec)),
        "filters": tuple(c for c in codecs if isinstance(c, ArrayArrayCodec)),
        "serializer": serializer,
    }


def _codecs_v2(storage):
    try:
        from numcodecs import get_codec

        compressor, filters = storage.get("compressor"), storage.get("filters")
        return {
            "compressors": (get_codec(compressor),) if compressor else (),
            "filters": tuple(map(get_codec, filters or ())),
        }
    except (ImportError, ValueError, TypeError):
        return {}
