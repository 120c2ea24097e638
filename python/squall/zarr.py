"""zarr-python 3 with squall below it:

    zarr.config.set({"codec_pipeline.path": "squall.zarr.CodecPipeline"})

Whole batches of chunks that lie in a folder (zarr.storage.LocalStore) are read and written by squall. All else goes the way it does
without: other stores, codecs and types that squall does not have, memory that is not numpy's. The values are the same.
"""

import asyncio
import itertools
import json
import math
import os

import numpy as np
from zarr.core.array import create_codec_pipeline
from zarr.core.buffer import default_buffer_prototype
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.registry import register_pipeline
from zarr.storage import LocalStore, StorePath

from squall import _squall
from squall._array import Array, as_plain
from squall._errors import Error

MANY_CHUNKS = 1 << 40  # the array that squall reads from has no end: the one that zarr sees may be resized
TEMPORARY_BYTES = 16 << 20  # chunks that index arrays select from are read that many at a time, or one a processor
WORTH_A_THREAD_BYTES = 64 << 10  # less is read before another thread is awake


class _Native:
    """A zarr array's metadata for squall, and the squall arrays made of it, one for each folder that its chunks were asked for in."""

    def __init__(self, metadata):
        name = "zarr.json" if metadata.zarr_format == 3 else ".zarray"
        document = json.loads(metadata.to_buffer_dict(default_buffer_prototype())[name].to_bytes())
        self.version, self.rank, self.arrays = metadata.zarr_format, len(metadata.shape), {}
        if self.version == 3:
            encoding, grid = document["chunk_key_encoding"], document["chunk_grid"]
            self.known = encoding["name"] in ("default", "v2") and grid["name"] == "regular"
            self.prefixed = encoding["name"] == "default"
            self.separator = encoding.get("configuration", {}).get("separator", "/" if self.prefixed else ".")
            chunks = grid["configuration"]["chunk_shape"] if self.known else ()
            document["attributes"] = {}
            document.pop("dimension_names", None)
        else:
            self.known, self.prefixed, self.separator = True, False, document.get("dimension_separator", ".")
            chunks = document["chunks"]
        document["shape"] = [c * min(MANY_CHUNKS, (1 << 61) // max(1, c)) for c in chunks]
        self.document = json.dumps(document).encode()

    def __getstate__(self):
        return self.__dict__ | {"arrays": {}}

    def split(self, path):
        """A chunk's key in its store → the array's path, the chunk's coordinates."""
        slash = self.separator == "/"
        folder = path.split("/")
        names = max(1, self.rank * slash + self.prefixed * (slash or not self.rank))
        folder, key = folder[:-names], folder[-names:]
        if not slash:
            key = key[0].split(self.separator)
        return "/".join(folder), tuple(map(int, key[self.prefixed :])) if self.rank else ()

    def array(self, store, folder, write_empty_chunks):
        """None where squall cannot read it."""
        place = f"{store.root}/{folder}" if folder else str(store.root), write_empty_chunks
        if place not in self.arrays:
            try:
                dataset = _squall.dataset_from_document(place[0], self.version, self.document, write_empty_chunks)
                array = Array(dataset, dataset.names[0])
                self.arrays[place] = None if array.unsupported or array.dtype.hasobject else array
            except (Error, TypeError):
                self.arrays[place] = None
        return self.arrays[place]


class CodecPipeline(BatchedCodecPipeline):
    """Made by zarr-python where its configuration names it; see the module."""

    _native = None  # what came from from_codecs alone, as inside of shards, has none

    @classmethod
    def from_array_metadata_and_store(cls, array_metadata, store):
        pipeline = create_codec_pipeline(array_metadata)
        if type(store) is LocalStore and isinstance(pipeline, cls):
            native = _Native(array_metadata)
            if native.known:
                object.__setattr__(pipeline, "_native", native)
        return pipeline

    async def read(self, batch_info, out, drop_axes=()):
        batch = list(batch_info)
        if await self._read(batch, out.as_ndarray_like(), drop_axes):
            return ({"status": "present"},) * len(batch)
        return await super().read(batch, out, drop_axes)

    async def _read(self, batch, out, drop_axes):
        """False where squall does not do it."""
        array, items = self._array_and_items(batch)
        if array is None or type(out) is not np.ndarray or out.dtype != array.dtype or not out.flags.writeable:
            return False
        if not getattr(batch[0][1].config, "read_missing_chunks", True):
            return False
        if not drop_axes and await _run(out.nbytes, array._read_batch, items, as_plain(out)):
            return True
        if not array.shape or array.shards and not _are_arrays(items):
            return False
        parts = _by_chunk(array, items, drop_axes)
        while group := list(itertools.islice(parts, _at_a_time(array))):
            await _select(array, group, out, drop_axes)
        return True

    async def write(self, batch_info, value, drop_axes=()):
        batch = list(batch_info)
        if batch and not await self._write(batch, value.as_ndarray_like(), drop_axes):
            await super().write(batch, value, drop_axes)

    async def _write(self, batch, values, drop_axes):
        """False where squall does not do it."""
        array, items = self._array_and_items(batch)
        if array is None or type(values) is not np.ndarray or values.dtype != array.dtype or batch[0][0].store.read_only:
            return False
        if not drop_axes and await _run(values.nbytes if values.ndim else math.inf, array._write_batch, items, as_plain(values)):
            return True
        if not array.shape or not _are_arrays(items):
            return False
        if array.shards and _are_points(items[0]):
            return False  # zarr makes anew what chunks of a shard they touch, this would make all between them
        if array.shards:
            for item in items:
                await asyncio.to_thread(_change_shard, array, item, values, drop_axes)
            return True
        for begin in range(0, len(items), _at_a_time(array)):
            await _change(array, items[begin : begin + _at_a_time(array)], values, drop_axes)
        return True

    def _array_and_items(self, batch):
        """The array that all chunks of the batch are of, and for each chunk its coordinates, what of it, where that goes, and whether it
        is all of the chunk that lies in the array."""
        native = self._native
        if native is None or not batch:
            return None, ()
        array, items = None, []
        for getter, spec, selection, place, *complete in batch:
            if type(getter) is not StorePath or type(getter.store) is not LocalStore:
                return None, ()
            folder, coordinates = native.split(getter.path)
            if array is None:
                array = native.array(getter.store, folder, bool(getattr(spec.config, "write_empty_chunks", True)))
                if array is None:
                    return None, ()
            items.append((coordinates, selection, place, any(complete)))
        return array, items


async def _run(size_bytes, function, *args):
    if size_bytes < WORTH_A_THREAD_BYTES:
        return function(*args)
    return await asyncio.to_thread(function, *args)


# ---- index arrays: chunks are read whole, one behind the other, and numpy takes the elements out of them ------------------------------


def _are_arrays(items):
    return all(isinstance(s, np.ndarray) for _, selection, *_ in items for s in selection)


def _are_points(item):
    return all(s.ndim == 1 for s in item[1])


def _at_a_time(array):
    return max(os.cpu_count() or 1, TEMPORARY_BYTES // (math.prod(array.chunks) * array.itemsize))


def _by_chunk(array, items, drop_axes):
    """For each chunk: coordinates of the object that it is stored in, its place there, what of it, and where that goes."""
    if not array.shards:
        yield from ((coordinates, (0,) * array.ndim, selection, place) for coordinates, selection, place, _ in items)
        return
    split = _points_by_chunk if _are_points(items[0]) else _mesh_by_chunk
    for coordinates, selection, place, _ in items:
        for chunk, *rest in split(array, selection, place if isinstance(place, tuple) else (place,), drop_axes):
            yield coordinates, chunk, *rest


def _groups(numbers):
    """Each distinct number, and where it stands."""
    order = np.argsort(numbers, kind="stable")
    for which in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        yield int(numbers[which[0]]), which


def _positions(place):
    return np.arange(place.start, place.stop) if isinstance(place, slice) else place.reshape(-1)


def _points_by_chunk(array, selection, places, drop_axes):
    counts = [n // c for n, c in zip(array.shards, array.chunks, strict=True)]
    numbers = np.ravel_multi_index(tuple(s // c for s, c in zip(selection, array.chunks, strict=True)), counts)
    where = _positions(*places)
    for number, which in _groups(numbers):
        yield np.unravel_index(number, counts), tuple(s[which] % c for s, c in zip(selection, array.chunks, strict=True)), where[which]


def _mesh_by_chunk(array, selection, places, drop_axes):
    """Of what numpy.ix_ makes."""
    flat = [s.reshape(-1) for s in selection]
    where = map(_positions, places)
    where = [None if d in drop_axes else next(where) for d in range(array.ndim)]
    for axes in itertools.product(*(_groups(s // c) for s, c in zip(flat, array.chunks, strict=True))):
        chunk, which = zip(*axes, strict=True)
        place = np.ix_(*(w[i] for w, i in zip(where, which, strict=True) if w is not None))
        yield chunk, np.ix_(*(s[i] % c for s, i, c in zip(flat, which, array.chunks, strict=True))), place


def _stack(array, parts):
    """Memory for the chunks, one behind the other; as items of a batch; and each one's part of the memory."""
    length, *inner = array.chunks
    memory = np.empty((len(parts) * length, *inner), array.dtype)
    batch = []
    for i, (coordinates, chunk, *_) in enumerate(parts):
        box = tuple(slice(int(k) * c, (int(k) + 1) * c) for k, c in zip(chunk, array.chunks, strict=True))
        batch.append((coordinates, box, (slice(i * length, (i + 1) * length), *(slice(0, c) for c in inner)), False))
    return memory, batch, memory.reshape(len(parts), *array.chunks)


async def _batch(function, batch, memory):
    if not await _run(memory.nbytes, function, batch, as_plain(memory)):
        raise AssertionError("whole chunks are slices")


async def _select(array, parts, out, drop_axes):
    memory, batch, chunks = _stack(array, parts)
    await _batch(array._read_batch, batch, memory)
    for (_, _, selection, place), chunk in zip(parts, chunks, strict=True):
        values = chunk[selection]
        out[place] = values.squeeze(axis=drop_axes) if drop_axes else values


def _values_of(values, place, rank, drop_axes):
    """What goes to a chunk: with all of its dimensions, or one value."""
    if values.ndim == 0:
        return values
    return values[place][tuple(None if d in drop_axes else slice(None) for d in range(rank))] if drop_axes else values[place]


async def _change(array, items, values, drop_axes):
    memory, batch, chunks = _stack(array, [(coordinates, (0,) * array.ndim) for coordinates, *_ in items])
    await _batch(array._read_batch, batch, memory)
    for (_, selection, place, _), chunk in zip(items, chunks, strict=True):
        chunk[selection] = _values_of(values, place, array.ndim, drop_axes)
    await _batch(array._write_batch, batch, memory)


def _change_shard(array, item, values, drop_axes):
    """Read and write the chunks of a shard from the first to the last one that is touched."""
    coordinates, selection, place, _ = item
    begin = [int(s.min()) // c * c for s, c in zip(selection, array.chunks, strict=True)]
    end = [(int(s.max()) // c + 1) * c for s, c in zip(selection, array.chunks, strict=True)]
    key = tuple(slice(k * n + b, k * n + e) for k, n, b, e in zip(coordinates, array.shards, begin, end, strict=True))
    local = tuple(s - b for s, b in zip(selection, begin, strict=True))
    array._update(key, local, _values_of(values, place, array.ndim, drop_axes))


register_pipeline(CodecPipeline)
