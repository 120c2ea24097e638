"""zarr-python 3 with squall below it:

    zarr.config.set({"codec_pipeline.path": "squall.zarr.CodecPipeline"})

Whole batches of chunks that lie in a folder (zarr.storage.LocalStore) are read and written by squall. All else goes the way it does
without: other stores, codecs and types that squall does not have, memory that is not numpy's. The values are the same.
"""

import asyncio
import json
import math

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
TEMPORARY_BYTES = 64 << 20  # chunks that numpy selects from are read that many at a time
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
        shape = batch[0][1].shape
        one_chunk_bytes = max(1, math.prod(shape) * array.dtype.itemsize)
        if array.shards or not shape or one_chunk_bytes > TEMPORARY_BYTES:
            return False  # zarr reads what it needs of a chunk, this would read all
        at_a_time = TEMPORARY_BYTES // one_chunk_bytes
        for begin in range(0, len(items), at_a_time):
            await _select(array, shape, items[begin : begin + at_a_time], out, drop_axes)
        return True

    async def write(self, batch_info, value, drop_axes=()):
        batch = list(batch_info)
        if batch and not await self._write(batch, value.as_ndarray_like(), drop_axes):
            await super().write(batch, value, drop_axes)

    async def _write(self, batch, values, drop_axes):
        """False where squall does not do it."""
        array, items = self._array_and_items(batch)
        if array is None or type(values) is not np.ndarray or values.dtype != array.dtype or drop_axes or batch[0][0].store.read_only:
            return False
        return await _run(values.nbytes if values.ndim else math.inf, array._write_batch, items, as_plain(values))

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


async def _select(array, shape, items, out, drop_axes):
    """Read whole chunks, one behind the other, and let numpy take the selections out of them."""
    chunks = np.empty((len(items) * shape[0], *shape[1:]), array.dtype)
    whole = (slice(None),) * len(shape)
    inner = tuple(slice(0, n) for n in shape[1:])
    wanted = [(c, whole, (slice(i * shape[0], (i + 1) * shape[0]), *inner), False) for i, (c, *_) in enumerate(items)]
    if not await _run(chunks.nbytes, array._read_batch, wanted, as_plain(chunks)):
        raise AssertionError("whole chunks are slices")
    for i, (_, selection, place, _) in enumerate(items):
        values = chunks[i * shape[0] : (i + 1) * shape[0]][selection]
        out[place] = values.squeeze(axis=drop_axes) if drop_axes else values


register_pipeline(CodecPipeline)
