"""Limits, and what is installed."""

import os
import platform
import re
import sys
from typing import NamedTuple

from squall import _squall

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _bytes(memory):
    if isinstance(memory, int) and not isinstance(memory, bool):
        if memory < 0:
            raise ValueError(f"memory={memory}: bytes cannot be negative")
        return memory
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:iB|B)?\s*", memory, re.I) if isinstance(memory, str) else None
    if not found:
        raise ValueError(f"memory={memory!r}: bytes as a number, or a text such as '512M' or '4G'")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _threads(threads):
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or not 0 < threads < 1 << 16):
        raise ValueError(f"threads={threads!r}: a number from 1 on, or None")
    return threads


class Handles(NamedTuple):
    """The files that this process holds open; see squall.handles."""

    open: int
    limit: int
    hits: int
    opened: int
    evicted: int


def handles():
    """The files that squall holds open in this process, and how they were used: a tuple with names.

    open      files that are open now
    limit     at most so many stay open (squall.set_options(max_open_files=)); more only while they are being read
    hits      reads that found their file open
    opened    files opened, for the first time or again
    evicted   files closed to make room for others
    """
    return Handles(*_squall.handles())


def threads_of_workers(module):
    """How many threads the Dask workers of this process have together, 0 where none runs; module: distributed.worker."""
    worker_type = getattr(module, "Worker", None)  # another thread may be importing it
    running = getattr(module, "WORKER_ANY_RUNNING", ())
    try:
        workers = tuple(getattr(worker_type, "_instances", ()))
    except RuntimeError:  # another thread has just started one
        return threads_of_workers(module)
    return sum(worker.state.nthreads for worker in workers if worker.status in running)


_current = {"threads": None, "memory": None, "max_open_files": None, "cache_folder": None}
_folder = None  # what of it the extension has: one object for one text


def _cache_folder(wanted):
    """As bytes; None: nothing is kept."""
    global _folder
    if wanted is None and os.environ.get("SQUALL_INDEX_CACHE") != "0":
        home = os.environ.get("XDG_CACHE_HOME", "")
        home = home if os.path.isabs(home) else os.path.expanduser("~/.cache")  # a relative one is none, says the XDG specification
        wanted = os.path.join(home, "squall") if os.path.isabs(home) else None
    text = os.fsencode(wanted) if wanted else None
    if text != _folder:
        _folder = text
    return _folder


def set_options(*, threads=..., memory=..., max_open_files=..., cache_folder=...):
    """Limits for this process: threads and memory for what is opened from now on, open files at once. And where indexes are kept.

    threads   most threads that one read or write works with; None: as many as the process may use
    memory    most bytes of working memory, a number or "4G"; None: half of the machine's, or of the cgroup's limit

    max_open_files   most files that stay open between reads; None: half of what the system allows (ulimit -n), at most 4096.
                     More than the system allows counts as that less 16

    cache_folder     a folder in which squall.open_many keeps what it found in the headers of files, so that they open faster again; "":
                     nothing is kept. None: $XDG_CACHE_HOME/squall, else ~/.cache/squall; nothing where $SQUALL_INDEX_CACHE is 0

    Options that are not given stay. Returns the options as they were, to be given back: squall.set_options(**before).
    """
    wanted = dict(_current)
    if threads is not ...:
        wanted["threads"] = _threads(threads)
    if memory is not ...:
        if memory is not None and _bytes(memory) == 0:
            raise ValueError("memory=0: nothing can be done with no memory")
        wanted["memory"] = memory
    if max_open_files is not ...:
        if max_open_files is not None and (not isinstance(max_open_files, int) or isinstance(max_open_files, bool) or max_open_files < 1):
            raise ValueError(f"max_open_files={max_open_files!r}: a number from 1 on, or None")
        wanted["max_open_files"] = max_open_files
        _squall.set_open_files(min(max_open_files or 0, sys.maxsize))
    if cache_folder is not ...:
        wanted["cache_folder"] = None if cache_folder is None else os.fspath(cache_folder)
    before = dict(_current)
    memory_bytes = 0 if wanted["memory"] is None else _bytes(wanted["memory"])
    _squall.set_defaults(wanted["threads"] or 0, memory_bytes, _cache_folder(wanted["cache_folder"]))
    _current.update(wanted)
    return before


set_options()


# what squall works with, and what others compare it with
_PACKAGES = "numpy zarr numcodecs xarray dask distributed pandas cftime netCDF4 h5netcdf h5py cfgrib eccodes tqdm ml_dtypes torch".split()


def _installed(package):
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def show_versions(file=None):
    """Print what a report of a fault should tell: versions of squall, Python and the packages it works with, the system, the limits.

    file    where to; None: sys.stdout
    """
    from importlib import metadata

    engine = metadata.entry_points(group="xarray.backends", name="squall")
    limits = ", ".join(f"{name} {'default' if value is None else value}" for name, value in _current.items() if name != "cache_folder")
    lines = {
        "squall": _squall.version(),
        "squall library": os.path.dirname(_squall.__file__),
        "xarray's engine": "squall is registered" if engine else "squall is not registered: it was not installed, only put on the path",
        "python": f"{sys.version.split()[0]} {platform.python_implementation()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}, {' '.join(platform.libc_ver())}",
        "CPUs": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "limits": limits,
        "open files": f"{handles().open} of at most {handles().limit}",
        "cache folder": os.fsdecode(_folder) if _folder else "none",
    }
    lines |= {package: _installed(package) for package in _PACKAGES}
    print("\n".join(f"{name + ':':<17}{value}" for name, value in lines.items()), file=file or sys.stdout)
