"""What squall.store does: xarray's datasets into Zarr stores, each region by the worker that has it.

What the store says of itself is made by xarray's own Zarr backend, so it is what Dataset.to_zarr makes. Values are not: each Dask task
writes its block through squall, into an array that is described by its document alone. So an append can be written before the store says
that it has grown, and what is published is there.
"""

import contextlib
import itertools
import json
import os
import shutil
import uuid

import numpy as np
import zarr
from xarray import DataArray, Dataset, DataTree

from squall import _squall, _store_times
from squall._array import Array
from squall._store_checks import check_alignment, check_coordinates, check_lengths, check_sources, outer_chunks
from squall._store_xarray import (
    DATAARRAY_NAME,
    DATAARRAY_VARIABLE,
    ArrayWriter,
    ZarrStore,
    choose_default_mode,
    dump_to_store,
    validate_dataset_names,
)


def _document(array):
    """What the store says of an array now."""
    name = "zarr.json" if array.metadata.zarr_format == 3 else ".zarray"
    with open(array.store.root / array.path / name, encoding="utf-8") as file:
        return json.load(file)


class _Target:
    """Where tasks write: an array as its document says, wherever they run. It travels as path and document."""

    __slots__ = ("document", "folder", "token", "version", "write_empty_chunks")

    def __init__(self, array, shape):
        self.folder, self.version = str(array.store.root / array.path), array.metadata.zarr_format
        self.write_empty_chunks = array.config.write_empty_chunks
        document = _document(array)
        document["shape"] = list(shape)
        if self.version == 3:
            document["attributes"] = {}
        self.document = json.dumps(document).encode()
        self.token = uuid.uuid4().hex  # a store is done whenever it is asked for, whatever Dask remembers of one like it

    def open(self):
        dataset = _squall.dataset_from_document(self.folder, self.version, self.document, self.write_empty_chunks)
        return Array(dataset, dataset.names[0])

    def __setitem__(self, key, values):
        self.open()[key] = values

    def __dask_tokenize__(self):
        return self.token


class _Growing:
    """In place of an array of zarr-python that is appended to: it grows when publish() is called."""

    def __init__(self, array, axis, length, is_at_once):
        self.array, self.axis, self.length, self.is_at_once = array, axis, length, is_at_once
        self.shape = (*array.shape[:axis], length, *array.shape[axis + 1 :])

    def resize(self, shape):
        self.shape = tuple(shape)
        if self.is_at_once:
            self.publish_empty()

    def publish(self):
        now = tuple(_document(self.array)["shape"])
        if now != self.array.shape:
            raise RuntimeError(
                f"array {self.array.path!r} of {self.array.store.root} had shape {self.array.shape} when this append began, and has "
                f"{now} now: another append went to the same place meanwhile, and values of either may be lost. Store both again, one "
                "after the other"
            )
        self.array.resize(self.shape)

    def publish_empty(self):
        """Without what an append that was killed left behind the end: there, readers see the fill value until values are written."""
        chunk = outer_chunks(self.array)[self.axis]
        whole = -(-self.length // chunk) * chunk
        self.remove_chunks(whole // chunk)
        tail = slice(self.length, min(whole, self.shape[self.axis]))
        place, key = _Target(self.array, self.shape).open(), (*[slice(None)] * self.axis, tail)
        fill = np.zeros((), self.array.dtype)[()] if self.array.fill_value is None else self.array.fill_value
        if tail.start < tail.stop and not place.unsupported:
            place[key] = fill
        self.publish()
        if tail.start < tail.stop and place.unsupported:
            self.array[key] = fill

    def remove_chunks(self, first):
        chunks = outer_chunks(self.array)
        counts = [range(-(-length // chunk)) for length, chunk in zip(self.shape, chunks, strict=True)]
        counts[self.axis] = counts[self.axis][first:]
        folder = os.path.join(self.array.store.root, self.array.path)
        for place in itertools.product(*counts):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, self.array.metadata.encode_chunk_key(place)))


class _Writer(ArrayWriter):
    def __init__(self):
        super().__init__(lock=False)

    def add(self, source, target, region=None):
        array = target.array if isinstance(target, _Growing) else target
        place = _Target(array, target.shape)
        if place.open().unsupported:  # as zarr-python's codecs write it
            if isinstance(target, _Growing) and not target.is_at_once:
                target.publish_empty()
            place = array
        super().add(source, place, region)


class _Store(ZarrStore):
    """xarray's, with checks of what would be lost, and appends that are published at the end."""

    is_published_last = is_consolidated = False

    def store(self, variables, attributes, check_encoding_set=frozenset(), writer=None, unlimited_dims=None):
        self.growing, self.new_attributes = {}, None
        if self._append_dim is not None:
            check_lengths(self, variables)
        self.length = check_coordinates(self, variables) if self._append_dim is not None else None
        super().store(variables, attributes, check_encoding_set, writer, unlimited_dims=unlimited_dims)

    def set_attributes(self, attributes):
        """Not before all has been checked, nor before an append is there: the document that they are written to, where they are others,
        loses consolidated metadata, which are made anew after that; or not, where they would not tell what is stored now."""
        if not self.is_consolidated or dict(self.zarr_group.attrs) != attributes:
            self.new_attributes = attributes

    def encode(self, variables, attributes):
        for name, variable in variables.items():
            _store_times.check(self, name, variable)
        encoded, attributes = super().encode(variables, attributes)
        return {name: _store_times.exact(self, name, variables[name], variable) for name, variable in encoded.items()}, attributes

    def set_variables(self, variables, check_encoding_set, writer, unlimited_dims=None):
        for name, variable in variables.items():
            if self._safe_chunks:
                check_alignment(self, name, variable, self.members.get(name) if self._mode != "w" else None)
        safe, self._safe_chunks = self._safe_chunks, False
        try:
            super().set_variables(variables, check_encoding_set, writer, unlimited_dims=unlimited_dims)
        finally:
            self._safe_chunks = safe
        if not self.growing:
            self.publish()

    def _open_existing_array(self, *, name):
        array = super()._open_existing_array(name=name)
        axis = self.append_axis(array)
        if axis is None:
            return array
        length = array.shape[axis]
        if self.length is not None:
            if length < self.length:
                raise ValueError(
                    f"variable {name!r} has {length} values along {self._append_dim!r}, of which the store's coordinate has "
                    f"{self.length}: append to it alone, without the coordinate, until they are as many"
                )
            length = self.length  # what lies behind is of an append that was not finished
        growing = _Growing(array, axis, length, is_at_once=not self.is_published_last)
        if self.is_published_last:
            self.growing[name] = growing
        return growing

    def append_axis(self, array):
        dims = self.dims_of(array)
        return dims.index(self._append_dim) if self._append_dim in dims else None

    @staticmethod
    def dims_of(array):
        metadata = array.metadata
        names = metadata.dimension_names if metadata.zarr_format == 3 else metadata.attributes.get("_ARRAY_DIMENSIONS")
        return tuple(names or ())

    def publish(self):
        """The coordinate last: until then the store has no more than it had."""
        for name in sorted(self.growing, key=lambda name: name == self._append_dim):
            self.growing[name].publish()
        if self.new_attributes is not None:
            super().set_attributes(self.new_attributes)


def _folder(dest):
    if not isinstance(dest, str | os.PathLike):
        raise TypeError(f"squall.store writes to a folder, given by its path; got {type(dest).__name__}: Dataset.to_zarr writes to it")
    path = os.path.expanduser(os.fspath(dest))
    if "://" in path or path.endswith(".zip"):
        raise ValueError(f"squall.store writes to a folder on a file system; {path} is none: Dataset.to_zarr writes to it")
    return os.path.abspath(path)


def _as_dataset(ds):
    """As DataArray.to_zarr does it."""
    if isinstance(ds, Dataset):
        return ds
    if not isinstance(ds, DataArray):
        raise TypeError(f"an xarray.Dataset, DataArray or DataTree is wanted; got {type(ds).__name__}")
    if ds.name is None:
        return ds.to_dataset(name=DATAARRAY_VARIABLE)
    if ds.name in ds.coords or ds.name in ds.dims:
        named = ds.to_dataset(name=DATAARRAY_VARIABLE)
        named.attrs[DATAARRAY_NAME] = ds.name
        return named
    return ds.to_dataset()


def _nodes(ds, root, encoding):
    """(dataset, store, encoding) of each group."""
    if not isinstance(ds, DataTree):
        yield _as_dataset(ds), root, encoding
        return
    if root._append_dim is not None:
        raise NotImplementedError("append_dim is not there for a DataTree, as in xarray: store its groups one by one, with group=")
    if unknown := set(encoding) - set(ds.groups):
        raise ValueError(f"encoding names groups that the tree has not: {sorted(unknown)}; it has {list(ds.groups)}")
    for path, node in ds.subtree_with_keys:
        store = root if node is ds else root.get_child_store(path)
        yield node.to_dataset(inherit=node is ds), store, encoding.get(node.path) or {}


def _done(*results):
    return None


def _describe(dataset, node, encoding, writer):
    """Metadata, and what is in memory; the writer keeps the rest for later."""
    for variable in dataset.variables.values():
        if not variable.size:
            variable.load()  # chunks without length are none of a store's
    dataset = node._validate_and_autodetect_region(dataset)
    node._validate_encoding(encoding)
    dump_to_store(dataset, node, writer, encoding=encoding)


def write(
    ds,
    dest,
    *,
    mode,
    group,
    encoding,
    region,
    append_dim,
    compute,
    consolidated,
    safe_chunks,
    align_chunks,
    zarr_format,
    write_empty_chunks,
):
    path = _folder(dest)
    if isinstance(ds, DataTree) and group is not None:
        raise NotImplementedError("group is not there for a DataTree, as in xarray")
    if not isinstance(ds, DataTree):
        ds = _as_dataset(ds)
        validate_dataset_names(ds)
    mode = choose_default_mode(mode=mode, append_dim=append_dim, region=region)
    if mode == "w":
        for node in ds.subtree if isinstance(ds, DataTree) else [ds]:
            check_sources(node, path if group is None else os.path.join(path, group))
    is_new = not os.path.lexists(path)
    try:
        root = _Store.open_group(
            store=path,
            mode=mode,
            group=group,
            consolidated=consolidated if mode == "r+" else False,
            append_dim=append_dim,
            write_region=region,
            safe_chunks=safe_chunks,
            align_chunks=align_chunks,
            zarr_format=zarr_format,
            write_empty=write_empty_chunks,
        )
    except FileExistsError as e:
        place = path if group is None else f"{path}, group {group},"
        e.add_note(f"{place} is there already; mode='w' replaces it, mode='a', append_dim= and region= add to it")
        raise
    root.is_published_last, root.is_consolidated = compute, consolidated in (None, True)
    writer = _Writer()
    try:
        for dataset, node, how in _nodes(ds, root, dict(encoding or {})):
            _describe(dataset.copy(deep=False), node, how, writer)
    except BaseException:
        if is_new:  # nothing but metadata are in it
            shutil.rmtree(path, ignore_errors=True)
        raise

    def consolidate():
        if mode != "r+" and consolidated in (None, True):
            zarr.consolidate_metadata(root.zarr_group.store, zarr_format=root.zarr_group.metadata.zarr_format)

    if not compute:
        import dask

        consolidate()
        return dask.delayed(_done)(writer.sync(compute=False))
    if not root.growing:
        consolidate()
    writer.sync()
    if root.growing:
        root.publish()
        consolidate()
    return None
