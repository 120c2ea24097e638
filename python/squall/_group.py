"""squall.open, squall.open_array, and the groups that a dataset's arrays lie in."""

import collections
import glob
import os
import weakref
from collections.abc import Mapping

from squall import _squall
from squall._array import Array, file_identity
from squall._attributes import Attributes
from squall._create import create_array, create_group, durability_number
from squall._errors import Error, InvalidError, NotFoundError, ReadOnlyError, Status, refuse_header
from squall._paths import path_text
from squall._text import group_text


class _Members(Mapping):
    """Names → members of one kind, made when they are asked for."""

    __slots__ = ("_make", "_names")

    def __init__(self, names, make):
        self._names, self._make = names, make

    def __getitem__(self, name):
        if name not in self._names:
            raise KeyError(name)
        return self._make(name)

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def __repr__(self):
        return f"[{', '.join(self._names)}]"


class _Tree:
    """The members of every group of a dataset: path of the group → names of its arrays, names of its groups."""

    def __init__(self, dataset):
        self.renew(dataset)

    def renew(self, dataset):
        self.dataset = dataset
        self.arrays, self.groups, self.attributes = {"": {}}, {"": {}}, dataset.groups
        self.attributes[""] = dataset.attributes
        for name in dataset.names:
            group, _, last = name.rpartition("/")
            self._add(group)
            self.arrays[group][last] = True
        for name in self.attributes:
            self._add(name)

    def _add(self, group):
        if group not in self.groups:
            parent, _, last = group.rpartition("/")
            self._add(parent)
            self.groups[parent][last] = True
            self.groups[group], self.arrays[group] = {}, {}


class Group(Mapping):
    """Arrays and groups by name, as squall.open gives them: a mapping. group["t2m"], group["a/b/t2m"].

    .attrs             attributes, a mapping in the store's order
    .dims              dimension → length, of the arrays in it; dimensions without a name are left out
    .arrays, .groups   the members of either kind, mappings
    .problems          what could not be read, a line each (of the whole dataset)
    .path, .name       of the dataset; within the dataset, "" for its root
    .format            "zarr v3", "zarr v2", "hdf5", "netcdf3 (CDF-5)", "grib"
    """

    __slots__ = ("__weakref__", "_attrs", "_name", "_tree")

    def __init__(self, tree, name=""):
        self._tree, self._name = tree, name

    name = property(lambda self: self._name)
    path = property(lambda self: self._tree.dataset.path)
    format = property(lambda self: self._tree.dataset.format)
    problems = property(lambda self: self._tree.dataset.problems)
    arrays = property(lambda self: _Members(self._tree.arrays[self._name], lambda last: Array(self._tree.dataset, self._below(last))))
    groups = property(lambda self: _Members(self._tree.groups[self._name], lambda last: Group(self._tree, self._below(last))))

    @property
    def attrs(self):
        """The attributes, a mapping."""
        try:
            return self._attrs
        except AttributeError:
            self._attrs = Attributes(self._tree.attributes.get(self._name, ("{}", None)), self._tree.dataset, self._name)
            return self._attrs

    @property
    def dims(self):
        """Dimension → length."""
        return {d: n for a in self.arrays.values() for d, n in zip(a.dims, a.shape, strict=True) if d}

    def __getitem__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"members are named by texts; got {name!r}")
        path = self._within(name)
        parent, _, last = path.rpartition("/")
        if last and last in self._tree.arrays.get(parent, ()):
            return Array(self._tree.dataset, path)
        if path in self._tree.groups and path != self._name:
            return Group(self._tree, path)
        there = [*self.arrays, *self.groups]
        known = f"there is {', '.join(there[:20]) or 'nothing'}{' …' if len(there) > 20 else ''}"
        raise KeyError("; ".join([f"no {name} in {self.path}", known, *[p for p in self.problems if path in p][:1]]))

    def _below(self, last):
        return f"{self._name}/{last}" if self._name else last

    def _within(self, name):
        return "/".join(part for part in (self._name, *name.split("/")) if part)

    def _renew(self):
        """See what has been made or deleted in the store."""
        dataset = self._tree.dataset
        self._tree.renew(_squall.Dataset(dataset.path, *dataset.options))

    def _check_changeable(self, what):
        if not self._tree.dataset.writable:
            raise ReadOnlyError(f'{self.path} was opened for reading; open it with mode="r+"', path=self.path)
        refuse_header(self._tree.dataset, what)

    def create_array(self, name, **how):
        """Make an array in this group and return it; arguments as of squall.create_array."""
        self._check_changeable(f"array {name} is to be made")
        create_array(self.path, self._within(name), durability=self._tree.dataset.durability, **how)
        self._renew()
        return self[name]

    def create_group(self, name, **how):
        """Make a group in this group and return it; arguments as of squall.create_group."""
        self._check_changeable(f"group {name} is to be made")
        create_group(self.path, self._within(name), durability=self._tree.dataset.durability, **how)
        self._renew()
        return self[name]

    def __delitem__(self, name):
        """Delete an array, or a group and all in it, from the store."""
        self._check_changeable(f"{name} is to be deleted")
        self[name]  # a KeyError
        _squall.delete_node(self.path, self._within(name))
        self._renew()

    def close(self):
        """Nothing needs it: squall closes files by itself. For code that closes what it opened; what was read and made stays usable."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __iter__(self):
        yield from self._tree.arrays[self._name]
        yield from self._tree.groups[self._name]

    def __len__(self):
        return len(self.arrays) + len(self.groups)

    def __eq__(self, other):
        return isinstance(other, Group) and self._tree is other._tree and self._name == other._name

    def __hash__(self):
        return hash((id(self._tree), self._name))

    def __repr__(self):
        return group_text(self)

    def __reduce__(self):
        path, identity, options = source_of(self._tree.dataset)
        return reopen_group, (path, self._name, identity, options)


def source_of(dataset):
    """What finds a dataset again in another process: its path, what was there, and how it was opened."""
    if dataset.many:
        from squall._many import manifest

        return manifest(dataset)
    return os.path.abspath(dataset.path), file_identity(dataset), dataset.options


def _split_at_file(path):
    """("x.nc", "obs/t2m") of "x.nc/obs/t2m" where x.nc is a file; else the path and ""."""
    head, name = os.path.split(path)
    while name and not os.path.exists(path):
        if os.path.isfile(head):
            return head, path[len(head) + 1 :]
        head, name = os.path.split(head)
    return path, ""


def _open_dataset(path, mode, durability, write_empty_chunks=False, aligned_only=False):
    if mode not in ("r", "r+"):
        raise ValueError(f"mode {mode!r}: possible are 'r' and 'r+'; create_array and create_group make what is not there")
    options = (mode == "r+", durability_number(durability), bool(write_empty_chunks), bool(aligned_only))
    # from the root on: what is open stays open when the process goes to another folder
    return _squall.Dataset(os.path.abspath(path), *options)


def open(path, mode="r", *, durability="none", write_empty_chunks=False, aligned_only=False):
    """Open a Zarr store, an HDF5, NetCDF or GRIB file, a folder of GRIB files, or a pattern ("era5/*.nc"; squall.open_many).

    A group or array within a store or a file may be named behind it: "x.nc/obs/t2m". Of the data nothing is read.

    mode                "r", or "r+": a Zarr store in a folder, or a NetCDF-3 file, for reading and writing
    durability          of what is written. "none": as other programs write; "data": chunks are on the disk before their names are; "full":
                        names, too, when the assignment is done
    write_empty_chunks  chunks that hold nothing but the fill value are written, too
    aligned_only        refuse assignments that cut chunks: what several processes need that write one array at the same time

    Returns a Group, or an Array where the path is one array. Raises FileNotFoundError, PermissionError, squall.Error (damaged,
    or in a format that squall does not know).
    """
    text = path_text(path)
    if mode == "r" and glob.has_magic(text) and not os.path.exists(text):
        from squall._many import open_many

        return open_many(text)
    try:
        dataset = _open_dataset(text, mode, durability, write_empty_chunks, aligned_only)
    except NotFoundError:
        file, name = _split_at_file(text)
        if not name:
            raise
    else:
        return Array(dataset, dataset.names[0]) if dataset.is_array else Group(_Tree(dataset))
    found = open(file, mode, durability=durability, write_empty_chunks=write_empty_chunks, aligned_only=aligned_only)
    try:
        return found[name]
    except KeyError as error:
        raise NotFoundError(f"{text}: {error.args[0]}", Status.ENOTFOUND, text) from None


def open_array(path, mode="r", **options):
    """Open a path that is one array: a Zarr store that is one, or an array within a store or a file ("x.zarr/t2m", "x.nc/t2m").

    mode, options   as of squall.open

    Raises as squall.open; ValueError where the path is a group.
    """
    found = open(path, mode, **options)
    if isinstance(found, Array):
        return found
    names = list(found.arrays)
    example = f"squall.open({os.fspath(path)!r})[{names[0]!r}]" if names else "squall.open"
    raise InvalidError(f"{found.path} is a group, not an array: {example}", Status.EINVAL, found.path)


# (path, identity, options) → dataset: what is unpickled in one process is opened once
_unpickled: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
_latest: collections.deque = collections.deque(maxlen=8)  # a task of Dask's drops what it unpickled, and the next one wants it again


def _reopen(path, identity, options):
    dataset = _unpickled.get((path, identity, options))
    if dataset is None:
        if options[0] == "many":
            from squall._many import reopen

            dataset, changed = reopen(path, identity, options)
        else:
            dataset = _squall.Dataset(path, *options)
            changed = None if file_identity(dataset) == identity else dataset.path
        if changed:
            raise Error(f"{changed} changed since it was opened; open it again", Status.EIO, changed)
        _unpickled[path, identity, options] = dataset
        if identity is not None:  # a file, of which each read sees that it is the same
            _latest.append(dataset)
    return dataset


def reopen_group(path, name, identity, options):
    """Unpickle a Group."""
    group = Group(_Tree(_reopen(path, identity, options)))
    return group[name] if name else group


def reopen_array(path, name, identity, of_file, options):
    """Unpickle an Array."""
    array = Array(_reopen(path, of_file, options), name)
    if array._identity() != identity:
        where = array.path
        raise Error(f"array {name} of {where} is another than it was when it was opened; open it again", Status.EIO, where)
    return array
