"""squall.open_many: many files as one dataset."""

import glob
import hashlib
import os
import warnings
import weakref
import zlib

from squall import _squall
from squall._group import Group, _Tree
from squall._paths import path_text

_ORDERS = {"coordinates": 0, "given": 1}
_DRIFTS = {"error": 0, "warn": 1, "first": 2}


def _names(paths):
    if isinstance(paths, (str, bytes, os.PathLike)):
        text = path_text(paths)
        if not glob.has_magic(text) or os.path.exists(text):
            return (text,)
        found = tuple(sorted(glob.glob(text, recursive=True)))
        if not found:
            raise FileNotFoundError(f"{text}: no file has such a name")
        return found
    found = tuple(map(path_text, paths))
    if not found:
        raise ValueError("paths is empty: no file to open")
    return found


def _number(what, value, numbers):
    try:
        return numbers[value]
    except (KeyError, TypeError):
        raise ValueError(f"{what}={value!r}: possible are {', '.join(map(repr, numbers))}") from None


def check_words(order, drift):
    """ValueError where one of them has no meaning. Returns what the library calls them."""
    return _number("order", order, _ORDERS), _number("drift", drift, _DRIFTS)


def open_many(paths, concat_dim=None, *, order="coordinates", drift="error"):
    """Open many files, of any format that squall reads, as one dataset; their headers and coordinates are read, nothing else.

    paths        a list of paths, or a pattern ("era5/*.nc", with ** for any folders), whose matches are sorted
    concat_dim   the dimension along which the files follow each other; where no file has it, it is a new first dimension of every
                 variable. None: the dimension in which the first two files differ
    order        "coordinates": by the values of the dimension's coordinate, where there is one; "given": as the paths come
    drift        what becomes of files that do not agree with the first: a variable is missing, or one too many; units, scale_factor,
                 _FillValue and other attributes that say what the numbers mean differ; coordinates differ; files overlap.
                 "error": an error that names file and difference; "warn": a warning each, and the first file's word holds, variables
                 that are missing read as their fill value; "first": the same in silence. Types and shapes must always agree

    Times that are counted from different moments or in different units are counted alike, exactly. Returns a Group; .problems lists what
    differs under "warn". Raises as squall.open.
    """
    names = tuple(map(os.path.abspath, _names(paths)))
    if not isinstance(concat_dim, (str, type(None))):
        raise TypeError(f"concat_dim={concat_dim!r}: a dimension's name, or None")
    settings = concat_dim, *check_words(order, drift)
    dataset = _open(names, settings)
    if drift == "warn":
        for line in dataset.problems:
            warnings.warn(line, stacklevel=2)
    return Group(_Tree(dataset))


def _open(names, settings):
    if len(settings) == 1:  # GRIB fields, which are arranged as these say
        from squall._cfgrib import arrange

        return arrange(names, *settings)
    label = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    return _squall.open_many(label, tuple(os.fsencode(name) for name in names), *settings)


_manifests: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def manifest(dataset):
    """What a dataset of many files pickles as: its names, what they were, and how they were opened. One for all its arrays."""
    if dataset not in _manifests:
        _manifests[dataset] = _manifest(dataset)
    return _manifests[dataset]


def _manifest(dataset):
    paths, *settings = dataset.many
    names = [os.fsdecode(path) for path in paths]
    return zlib.compress("\0".join(names).encode("utf-8", "surrogateescape")), identities(dataset), ("many", *settings)


def identities(dataset):
    """What its files were when it was opened, eight bytes a file."""
    known, count = dataset.identity, len(dataset.many[0])
    each = len(known) // count
    return b"".join(hashlib.blake2b(known[i * each : (i + 1) * each], digest_size=8).digest() for i in range(count))


def reopen(names, before, settings):
    """The dataset of a manifest, and the first of its files that is another than it was; None: none is."""
    paths = zlib.decompress(names).decode("utf-8", "surrogateescape").split("\0")
    dataset = _open(paths, settings[1:])
    now = identities(dataset)
    each = len(now) // len(paths)
    changed = (path for i, path in enumerate(paths) if before[i * each : (i + 1) * each] != now[i * each : (i + 1) * each])
    return dataset, next(changed, None)
