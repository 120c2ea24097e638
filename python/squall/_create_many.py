"""squall.create_many: many files behind one target of assignments, from any number of threads and processes.

Each file is written as .NAME.partial, and who writes into it says so beside it: one line a region, in a file of its own for each process.
So finish() knows what nobody wrote, wherever the writers were.
"""

import bisect
import contextlib
import errno
import fcntl
import functools
import glob
import json
import math
import operator
import os
import socket
import sys
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from squall import _group, _squall, _values
from squall._paths import path_text

FORMATS = ("NETCDF3_64BIT_DATA", "NETCDF4")


class _Variable(NamedTuple):
    dims: tuple
    shape: tuple  # of all files together
    dtype: np.dtype
    attrs: dict
    encoding: dict  # of format NETCDF4
    values: object  # what is written at once; None: it is written by assignments


class _File(NamedTuple):
    path: str
    begin: int  # along the dimension
    count: int

    @property
    def partial(self):
        folder, name = os.path.split(self.path)
        return os.path.join(folder, f".{name}.partial")


# ---- the template


def _with_fill(attrs, dtype, fill):
    """_FillValue comes first, as other writers put it; floats that nobody writes are NaN."""
    attrs = dict(attrs)
    fill = attrs.pop("_FillValue", fill)
    if fill is None and dtype.kind == "f":
        fill = np.nan
    return attrs if fill is None else {"_FillValue": fill if dtype.kind == "S" else np.asarray(fill).astype(dtype)[()], **attrs}


def _storable(attrs, owner):
    """Attributes, truths as bytes; what NetCDF has not is refused by name."""
    found = {}
    for name, value in attrs.items():
        a = np.asarray(value)
        if a.dtype.kind == "b":
            value = a.astype("i1")[()]
        elif a.dtype.kind not in "iufSU" and not (a.dtype.kind == "O" and a.size and all(isinstance(e, str) for e in a.flat)):
            raise TypeError(f"{owner}: attribute {name} is {value!r}: NetCDF has texts, numbers and lists of them")
        found[name] = value
    return found


def _as_characters(name, dims, values):
    """Texts, which NetCDF-3 has not, as characters along a dimension more."""
    if values.dtype.kind in "OU":
        values = np.char.encode(values.astype(str), "utf-8")
    width = max(1, values.dtype.itemsize)
    values = np.ascontiguousarray(values.astype(f"S{width}"))
    return (*dims, f"string{width}"), values.view("S1").reshape(*values.shape, width)


def _coordinate(name, variable, format):
    """Of an xarray.Dataset: numbers as CF has them, which are written at once."""
    from xarray.conventions import encode_cf_variable

    encoded = encode_cf_variable(variable, name=name)
    dims, values = encoded.dims, np.asarray(encoded.values)
    if values.dtype.kind in "OUS" and (format != "NETCDF4" or values.dtype.kind == "S") and values.dtype != "S1":
        dims, values = _as_characters(name, dims, values)
    return _Variable(tuple(dims), values.shape, values.dtype, dict(encoded.attrs), {}, values)


def _stored(name, variable):
    """The encoding of a variable and its type: as it is assigned, which is not packed, where the encoding packs what is in memory."""
    encoding = dict(getattr(variable, "encoding", None) or {})
    memory, dtype = np.dtype(variable.dtype), np.dtype(encoding.get("dtype") or variable.dtype)
    if "units" in encoding and memory.kind in "mMO":
        raise TypeError(
            f"variable {name} holds times ({memory}), which are not encoded as they are assigned: "
            "open the template with decode_times=False, or make it a coordinate"
        )
    if dtype.kind == "S" and memory != dtype:
        raise TypeError(f"variable {name} holds {memory}, which does not fit {dtype}: open the template with concat_characters=False")
    is_masked = memory.kind == "f" and dtype.kind in "iu" and any(encoding.get(k) is not None for k in ("_FillValue", "missing_value"))
    if is_masked or any(k in encoding for k in ("scale_factor", "add_offset", "_Unsigned")):
        return {k: e for k, e in encoding.items() if k != "_FillValue"}, memory
    return encoding, dtype


def _data(name, variable, coordinates):
    encoding, dtype = _stored(name, variable)
    if dtype.kind not in "iufS" or (dtype.kind == "S" and dtype.itemsize != 1):
        raise TypeError(
            f"variable {name} holds {dtype}: NetCDF stores numbers and characters; give its encoding a dtype, and assign such values"
        )
    attrs = _with_fill(variable.attrs, dtype, encoding.get("_FillValue"))
    if coordinates:
        attrs.setdefault("coordinates", " ".join(coordinates))
    return _Variable(tuple(variable.dims), tuple(variable.shape), dtype.newbyteorder("="), attrs, encoding, None)


def _variables(template, format):
    """An xarray.Dataset, a squall.Group, or any mapping of names to what has dims, shape, dtype and attrs."""
    found = {}
    if hasattr(template, "data_vars"):
        for name, variable in template.variables.items():
            if name in template.coords:
                found[name] = _coordinate(name, variable, format)
                continue
            beside = [c for c, v in template.coords.items() if c not in template.dims and set(v.dims) <= set(variable.dims)]
            found[name] = _data(name, variable, beside)
        return found
    members = template.arrays if isinstance(template, _group.Group) else template
    return {name: _data(name, array, ()) for name, array in members.items()}


def _lengths(variables):
    lengths = {}
    for name, v in variables.items():
        for d, n in zip(v.dims, v.shape, strict=True):
            if lengths.setdefault(d, n) != n:
                raise ValueError(f"dimension {d} has length {lengths[d]}, but {n} in variable {name}")
    return lengths


def _files(paths, dim, length):
    if isinstance(paths, Mapping):
        parts = [(os.path.abspath(path_text(p)), operator.index(n)) for p, n in paths.items()]
    else:
        names = [os.path.abspath(path_text(p)) for p in paths]
        if not names or length % len(names):
            raise ValueError(
                f"{length} of {dim} do not fall into {len(names)} files of one length: paths={{path: length, …}} says how many each has"
            )
        parts = [(p, length // len(names)) for p in names]
    if sum(n for _, n in parts) != length or any(n < 1 for _, n in parts):
        raise ValueError(f"the files have {sum(n for _, n in parts)} of {dim}, the template {length}; each has at least one")
    if len({p for p, _ in parts}) != len(parts):
        raise ValueError("a path is there twice")
    files, begin = [], 0
    for path, count in parts:
        files.append(_File(path, begin, count))
        begin += count
    return tuple(files)


# ---- files


def _attributes(attrs):
    """Attributes as JSON, and what JSON does not say of their types."""
    values, types = {}, {}
    for name, value in attrs.items():
        a = np.asarray(value.decode() if isinstance(value, bytes) else value)
        values[name] = a.tolist()
        if a.dtype.kind in "iuf" and isinstance(value, (np.generic, np.ndarray)):
            types[name] = a.dtype.newbyteorder("<").str
    return json.dumps(values), json.dumps(types)


def _make_netcdf3(path, variables, lengths, unlimited, attrs):
    _squall.create_netcdf(
        path,
        tuple((d, n, d in unlimited) for d, n in lengths.items()),
        tuple((name, v.dtype.newbyteorder("<").str, v.dims, *_attributes(v.attrs)) for name, v in variables.items()),
        *_attributes(attrs),
    )


def _make_netcdf4(path, variables, lengths, unlimited, attrs):
    import netCDF4

    kept = ("zlib", "complevel", "shuffle", "fletcher32", "chunksizes", "compression", "contiguous")
    with _netcdf4_lock(path), netCDF4.Dataset(path, "x", format="NETCDF4") as d:
        d.setncatts(attrs)
        for name, n in lengths.items():
            d.createDimension(name, None if name in unlimited else n)
        for name, v in variables.items():
            own = {k: e for k, e in v.encoding.items() if k in kept and e is not None}
            made = d.createVariable(name, str if v.dtype.kind in "OU" else v.dtype, v.dims, fill_value=v.attrs.get("_FillValue"), **own)
            made.setncatts({k: a for k, a in v.attrs.items() if k != "_FillValue"})


@contextlib.contextmanager
def _netcdf4_lock(path):
    """netCDF4's libraries take one thread of a process at a time, whatever the file, and one process a file."""
    from xarray.backends.locks import HDF5_LOCK, NETCDFC_LOCK

    with contextlib.ExitStack() as held:
        held.enter_context(_process_lock(path))
        held.enter_context(NETCDFC_LOCK)
        held.enter_context(HDF5_LOCK)
        yield


@contextlib.contextmanager
def _process_lock(path):
    """Dask's lock where this process has a client of a cluster, else one on a file beside."""
    distributed = sys.modules.get("distributed")  # who has a client has imported it
    try:
        client = distributed and distributed.get_client()
    except ValueError:
        client = None
    if client:
        with distributed.Lock(path):
            yield
        return
    fd = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    with _closing(fd, path):
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield


@functools.lru_cache(maxsize=64)
def _opened(path, inode):
    return _group.open(path, mode="r+")


def _put(format, file, name, region, values):
    """region: (start, count, step) for each dimension; values of that shape."""
    key = tuple(slice(start, start + (count - 1) * step + 1, step) for start, count, step in region)
    try:
        inode = os.stat(file.partial).st_ino
    except FileNotFoundError:
        raise FileNotFoundError(f"{file.partial} is not there: {file.path} is finished, or was never begun") from None
    if format == "NETCDF4":
        import netCDF4

        with _netcdf4_lock(file.partial), netCDF4.Dataset(file.partial, "a") as d:
            d[name].set_auto_maskandscale(False)
            d[name].set_auto_chartostring(False)
            d[name][key] = values
    else:
        _opened(file.partial, inode)[name][key] = values
    _record(file, name, region)


# ---- which regions there are


def _record(file, name, region):
    """A line in this process's own list; it says no more than what has been written. Nothing that was cut off before can spoil it."""
    path = f"{file.partial}.regions-{socket.gethostname()}-{os.getpid()}"
    line = f"\n{json.dumps({'variable': name, 'region': region})}\n".encode()
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    with _closing(fd, path):
        if os.write(fd, line) < len(line):
            raise OSError(errno.ENOSPC, "no room to note what has been written", path)


def _lists(file):
    return sorted(glob.glob(glob.escape(file.partial) + ".regions-*"))


def _parse_line(line):
    """(variable, region); None where that is not what the line says."""
    try:
        one = json.loads(line)
        name, region = one["variable"], [tuple(r) for r in one["region"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    is_sound = isinstance(name, str) and all(len(r) == 3 and all(type(n) is int for n in r) for r in region)
    return (name, region) if is_sound else None


def _recorded(file):
    """Variable → regions. A line that was cut off or damaged is a region that counts as not written."""
    found = {}
    for path in _lists(file):
        with open(path, encoding="utf-8", errors="replace") as lines:
            for name, region in filter(None, map(_parse_line, lines)):
                found.setdefault(name, []).append(region)
    return found


def _is_inside(span, length):
    start, count, step = span
    return start >= 0 and count > 0 and step > 0 and start + (count - 1) * step < length


def uncovered(shape, regions):
    """What of an array no region has: boxes, ((start, stop), …) each. A region is (start, count, step) for each dimension."""
    if 0 in shape:
        return []
    regions = [r for r in regions if len(r) == len(shape) and all(map(_is_inside, r, shape))]
    if not shape:
        return [] if regions else [()]
    edges = [{0, n} for n in shape]
    for region in regions:
        for d, (start, count, step) in enumerate(region):
            steps = range(start, start + count * step, step) if step > 1 else (start, start + count)
            edges[d].update(i for e in steps for i in ((e, e + 1) if step > 1 else (e,)))
    edges = [np.array(sorted(e)) for e in edges]
    covered = np.zeros([len(e) - 1 for e in edges], bool)
    for region in regions:
        cells = []
        for e, (start, count, step) in zip(edges, region, strict=True):
            if step > 1:
                cells.append(np.searchsorted(e, np.arange(start, start + count * step, step)))
            else:
                cells.append(np.arange(np.searchsorted(e, start), np.searchsorted(e, start + count)))
        covered[np.ix_(*cells)] = True
    return _boxes(covered, edges)


def _boxes(covered, edges):
    found = []
    while not covered.all():
        first = np.unravel_index(covered.argmin(), covered.shape)
        box = [slice(i, i + 1) for i in first]
        for d in reversed(range(len(box))):  # as long as all of it is free
            while box[d].stop < covered.shape[d]:
                further = [*box[:d], slice(box[d].stop, box[d].stop + 1), *box[d + 1 :]]
                if covered[tuple(further)].any():
                    break
                box[d] = slice(box[d].start, box[d].stop + 1)
        covered[tuple(box)] = True
        found.append(tuple((int(e[b.start]), int(e[b.stop])) for e, b in zip(edges, box, strict=True)))
    return found


# ---- the target


def _parse(key, shape, name):
    """(start, count, step) for each dimension, the shape assigned to, and dimensions that an index dropped or a step turned round."""
    parts = list(key) if isinstance(key, tuple) else [key]
    holes = [i for i, k in enumerate(parts) if k is Ellipsis]
    if len(holes) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    at = holes[0] if holes else len(parts)
    parts[at : at + len(holes)] = [slice(None)] * (len(shape) - len(parts) + len(holes))
    if len(parts) != len(shape):
        raise IndexError(f"variable {name} has {len(shape)} dimensions, the key {len(parts)}")
    region, dropped, turned = [], [], []
    for d, (k, n) in enumerate(zip(parts, shape, strict=True)):
        if isinstance(k, slice):
            found = range(*k.indices(n))
            if len(found) and found.step < 0:
                turned.append(d)
                found = found[::-1]
            region.append((found.start, len(found), found.step if len(found) > 1 else 1))
            continue
        try:
            index = operator.index(k)
        except TypeError:
            raise TypeError(f"variable {name}: regions are made of integers and slices; got {k!r}") from None
        if not -n <= index < n:
            raise IndexError(f"index {index} is out of bounds for dimension {d} with size {n}")
        region.append((index % n, 1, 1))
        dropped.append(d)
    return region, tuple(r[1] for d, r in enumerate(region) if d not in dropped), tuple(dropped), tuple(turned)


def _check_fits(name, value, dtype):
    """Refuse what numpy would cast to something else: times to numbers, and numbers that an integer type has not."""
    values = np.asarray(value.compressed() if isinstance(value, np.ma.MaskedArray) else value)
    if values.dtype.kind in "mM" and dtype.kind in "iuf":
        raise TypeError(f"variable {name} holds {dtype}, not times: assign numbers in its units")
    if dtype.kind not in "iu" or values.dtype.kind not in "iuf" or not values.size or np.can_cast(values.dtype, dtype):
        return
    least, most, limits = values.min().item(), values.max().item(), np.iinfo(dtype)
    if least != least:
        raise ValueError(f"variable {name} holds {dtype}, which has no NaN: assign its fill value")
    if least < limits.min or most > limits.max:
        raise OverflowError(f"variable {name} holds {dtype}, {limits.min} to {limits.max}; got {least if least < limits.min else most}")


class ManyVariable:
    """A variable of all files together: target[name][key] = values, with integers and slices. Has a
    .shape, .dtype, .dims, .fill_value, .ndim and .size."""

    def __init__(self, target, name, dims, shape, dtype, fill_value):
        self._target, self.name, self.dims, self.shape, self.dtype, self.fill_value = target, name, dims, shape, dtype, fill_value

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    def __setitem__(self, key, value):
        region, shape, dropped, turned = _parse(key, self.shape, self.name)
        _check_fits(self.name, value, self.dtype)
        values = _values.values_for(value, self.dtype, shape, self)
        if dropped:
            values = np.expand_dims(values, dropped)
        if turned:
            values = np.flip(values, turned)
        if values.size:
            self._target._write(self, region, values)

    def __repr__(self):
        return f"<squall.ManyVariable {self.name!r} {dict(zip(self.dims, self.shape, strict=True))} {self.dtype}>"


class ManyFiles(Mapping):
    """What squall.create_many returns: names → variables that are assigned to. Pickles; any number of threads and processes may use it.

    .paths      of the files
    .missing()  what nobody has written yet: path → variable → boxes, ((start, stop), …) each
    .finish()   write fill values there, make all durable, and give the files their names
    """

    def __init__(self, files, dim, format, variables):
        self._files, self._dim, self._format = files, dim, format
        self._variables = variables  # name → (dims, shape, dtype text, fill value)
        self._begins = [f.begin for f in files]

    paths = property(lambda self: [f.path for f in self._files])

    def __getitem__(self, name):
        if name not in self._variables:
            raise KeyError(f"no variable {name}; there is {', '.join(self._variables)}")
        dims, shape, dtype, fill = self._variables[name]
        return ManyVariable(self, name, dims, shape, np.dtype(dtype), fill)

    def __iter__(self):
        return iter(self._variables)

    def __len__(self):
        return len(self._variables)

    def __reduce__(self):
        return ManyFiles, (self._files, self._dim, self._format, self._variables)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self.finish()

    def _write(self, variable, region, values):
        if self._dim not in variable.dims:
            for file in self._files:
                _put(self._format, file, variable.name, region, values)
            return
        axis = variable.dims.index(self._dim)
        start, count, step = region[axis]
        for file in self._files[bisect.bisect_right(self._begins, start) - 1 :]:
            first = max(0, -((start - file.begin) // step))
            behind = min(count, -((start - file.begin - file.count) // step))
            if file.begin > start + (count - 1) * step:
                break
            if first >= behind:
                continue
            part = list(region)
            part[axis] = (start + first * step - file.begin, behind - first, step if behind - first > 1 else 1)
            inside = (slice(None),) * axis + (slice(first, behind),)
            _put(self._format, file, variable.name, part, values[inside])

    def _shape_in(self, file, dims, shape):
        return tuple(file.count if d == self._dim else n for d, n in zip(dims, shape, strict=True))

    def _missing_in(self, file):
        recorded = _recorded(file)
        boxes = {
            name: uncovered(self._shape_in(file, dims, shape), recorded.get(name, []))
            for name, (dims, shape, *_) in self._variables.items()
        }
        return {name: found for name, found in boxes.items() if found}

    def missing(self):
        """What nobody has written yet: path → variable → boxes in that file, ((start, stop), …) each."""
        found = {f.path: self._missing_in(f) for f in self._files if os.path.exists(f.partial)}
        return {path: boxes for path, boxes in found.items() if boxes}

    def finish(self):
        """Write fill values where nobody wrote, make all files durable, and give them their names. Nobody writes meanwhile.

        Files that are finished stay as they are: a call that failed may be made again, and several processes may call it.
        """
        for file in self._files:
            with _finishing(file) as is_there:
                if is_there:
                    self._finish(file)
                elif not os.path.exists(file.path):
                    raise FileNotFoundError(f"{file.partial} is not there, nor is {file.path}")
                for path in [*_lists(file), *glob.glob(glob.escape(file.partial) + ".lock")]:
                    _unlink(path)

    def _finish(self, file):
        if self._format != "NETCDF4":  # which fills by itself
            ds = _group.open(file.partial, mode="r+")
            for name, boxes in self._missing_in(file).items():
                fill = ds[name].fill_value
                for box in boxes:
                    ds[name][tuple(slice(*b) for b in box)] = fill
        _sync(file.partial)
        os.rename(file.partial, file.path)
        _sync(os.path.dirname(file.path))

    def __repr__(self):
        return f"<squall.ManyFiles of {len(self._files)} files along {self._dim}: {', '.join(self._variables)}>"


@contextlib.contextmanager
def _finishing(file):
    """Whether the file is still to be finished; nobody else finishes it meanwhile."""
    try:
        fd = os.open(file.partial, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    with _closing(fd, file.partial):
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield os.path.exists(file.partial) and os.path.samestat(os.fstat(fd), os.stat(file.partial))


@contextlib.contextmanager
def _closing(fd, path):
    """Errors that come of the descriptor name its file."""
    try:
        yield
    except OSError as e:
        e.filename = e.filename or path
        raise
    finally:
        os.close(fd)


def _sync(path):
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with _closing(fd, path):
        os.fsync(fd)


def _unlink(path):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def create_many(template, paths, dim, *, format="NETCDF3_64BIT_DATA", unlimited_dims=None, overwrite=False):
    """Make many NetCDF files, and one target to assign to: target["t2m"][key] = values puts each part into the right file.

    template   what all files hold together: an xarray.Dataset (its data variables may be lazy and are not computed: assignments write them;
               coordinates are written at once), a squall.Group, or a mapping of names to what has dims, shape, dtype and attrs
    paths      of the files, in the order of dim, each with as many of dim as the others; or {path: how many}
    dim        the dimension along which the files follow each other; what has not this dimension is in every file
    format     "NETCDF3_64BIT_DATA": CDF-5, written by any number of threads and processes at once. "NETCDF4": through the netCDF4 package,
               one region of a file at a time
    unlimited_dims  names; None: the template's encoding says it
    overwrite  files that are there are replaced, when finish() is called; what was begun and never finished is begun anew

    A context manager: at its end finish() is called. Until then each file is .NAME.partial in its folder, and it stays so where something
    failed. Works as the target of dask.array.store(…, lock=False, compute=False). Values are stored as they are assigned, cast to the
    variable's type: nothing is scaled, what is masked becomes the _FillValue.
    A variable whose encoding packs it (scale_factor, add_offset, _Unsigned; integers with a _FillValue
    that are floats in memory) is stored unpacked, in the type that it has in memory. Raises FileExistsError, TypeError for types that
    NetCDF has not and for times that xarray decoded, OverflowError for values that an integer type has not, ValueError.
    """
    if format not in FORMATS:
        raise ValueError(f"format {format!r}: possible are {', '.join(map(repr, FORMATS))}")
    variables = {name: v._replace(attrs=_storable(v.attrs, f"variable {name}")) for name, v in _variables(template, format).items()}
    attrs = _storable(getattr(template, "attrs", None) or {}, "the template")
    lengths = _lengths(variables)
    if dim not in lengths:
        raise ValueError(f"no variable has dimension {dim!r}; there are {', '.join(map(repr, lengths))}")
    files = _files(paths, dim, lengths[dim])
    unlimited = set((getattr(template, "encoding", {}) or {}).get("unlimited_dims") or () if unlimited_dims is None else unlimited_dims)
    _clear(files, overwrite)
    spec = {name: (v.dims, v.shape, v.dtype.str, v.attrs.get("_FillValue")) for name, v in variables.items()}
    target = ManyFiles(files, dim, format, spec)
    make = _make_netcdf4 if format == "NETCDF4" else _make_netcdf3
    for file in files:
        make(file.partial, variables, {**lengths, dim: file.count}, unlimited, attrs)
    for name, v in variables.items():
        if v.values is not None:
            target[name][...] = v.values
    return target


def _clear(files, overwrite):
    for file in files:
        if not os.path.isdir(os.path.dirname(file.path)):
            raise FileNotFoundError(errno.ENOENT, "no such folder", os.path.dirname(file.path))
        for path in (file.path, file.partial):
            if os.path.isdir(path):
                raise IsADirectoryError(errno.EISDIR, "a folder cannot be replaced by a file", path)
            if os.path.lexists(path) and not overwrite:
                what = "was begun and never finished" if path == file.partial else "is there already"
                raise FileExistsError(f"{path} {what}; overwrite=True replaces it")
    for file in files:
        for path in (file.partial, *_lists(file)):
            _unlink(path)
