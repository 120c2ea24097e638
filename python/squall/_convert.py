"""squall.convert, status and verify: the command's main job, on a thread of its own, while the thread that asked shows how far it is."""

import os
import threading
import time
import warnings
from collections.abc import Iterable

from squall import _squall
from squall._convert_options import _seconds, in_python, in_words
from squall._errors import Error, Status
from squall._many import _names
from squall._paths import path_text
from squall._progress import Progress, listener
from squall._report import Report, printable
from squall._settings import _bytes, _threads

LOOK_S = 0.1  # between looks at how far the work is


def _carry_out(method, *args, shown, **keywords):
    """What a method of _squall.Work returns, and the seconds that it took. Whatever ends the waiting ends the work, too."""
    work, outcome, finished, start = _squall.Work(), [], threading.Event(), time.monotonic()

    def body():
        try:
            outcome.append(getattr(work, method)(*args, **keywords))
        except BaseException as e:
            outcome.append(e)
        finished.set()

    def look():
        shown.show(Progress(*work.progress(), time.monotonic() - start))

    thread = threading.Thread(target=body, name=f"squall {method}")
    try:
        thread.start()
        while not finished.wait(LOOK_S):
            look()
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        look()
    except BaseException as e:
        work.cancel()
        if thread.ident:
            thread.join()
        if outcome and isinstance(outcome[0], Error) and outcome[0].status == Status.ECANCELLED:
            e.add_note(in_python(str(outcome[0])))  # that the store goes on from there
        raise
    finally:
        shown.close()
    return outcome[0], time.monotonic() - start


def _in_python(error):
    """The same error, with keywords for options."""
    if error.args and isinstance(error.args[0], str):
        error.args = (in_python(error.args[0]), *error.args[1:])
    return error


def _as_bytes(path):
    return os.fsencode(path_text(path))


def _sources(sources):
    """Paths and patterns, one or several, as bytes."""
    if not isinstance(sources, (str, bytes, os.PathLike, Iterable)):
        raise TypeError(f"sources: {sources!r} is a {type(sources).__name__}; wanted is a path, a pattern, or several")
    several = [sources] if isinstance(sources, (str, bytes, os.PathLike)) else list(sources)
    if not several:
        raise ValueError("sources is empty: nothing to convert")
    return tuple(os.fsencode(name) for one in several for name in _names(one))


def convert(
    sources,
    dest,
    *,
    client=None,
    progress=True,
    chunks=None,
    shards=None,
    dtype=None,
    bitround=None,
    on_overflow=None,
    codec=None,
    select=None,
    rename=None,
    coarsen=None,
    y_order=None,
    schema=None,
    every=None,
    stack=None,
    stack_name=None,
    append_dim=None,
    concat_dim=None,
    drift=None,
    group=None,
    zarr_format=None,
    part=None,
    dry_run=False,
    prepend=False,
    overwrite=False,
    strict=False,
    lock_timeout=None,
    threads=None,
    memory=None,
):
    """Convert an archive of GRIB, HDF5 or NetCDF files, or a store, into one Zarr store: `squall convert` with threads of this process.

    Doing the same again writes only what is missing or has changed, so it can follow an archive that grows, and goes on after an
    interruption. Options are the command's, by the same names; values are Python's, or texts as the command takes them. What it promises is
    in docs/convert.md.

    sources      a path, a pattern ("era5/*.nc", with ** for any folders), or several: GRIB, HDF5 and NetCDF files, folders of GRIB files,
                 Zarr stores
    dest         the store, a folder
    client       a distributed.Client: its workers, which see sources and dest by the same paths, write the store; threads= (default 1) and
                 memory= (default: a worker's share) are then those of one task
    progress     True: a bar (of tqdm's where it is installed); False: nothing; a function: it is called with a squall.Progress
    chunks       lengths, {"init_time": 1, "step": "all"}; -1 is "all", too; of one variable {"t2m": {"y": 100}}
    shards       the same, of what holds several chunks in one file: multiples of the chunks'; None: a file a chunk
    dtype        float16, float32 or float64, or {"t2m": "float32", None: "float16"}, where None is all others
    bitround     bits that mantissas keep, of all floats or {"t2m": 9, None: 7}: the rest is rounded, and compresses better
    on_overflow  "error", "inf" or "clip": what becomes of values that the type cannot hold
    codec        "zstd:level=3", or Zarr's {"name": "zstd", "configuration": {"level": 3}}, or a list of them; "none" or []: no compression;
                 {"t2m": …, None: …}, where None is all others
    select       {"name": ["t2m", "d2m"], "level": 850}, or a list of such: fields that match any
    rename       {"t2m": "temperature"}
    coarsen      {"y": 2, "x": 2}: means of blocks (GRIB)
    y_order      "ascending" (rows from south to north) or "descending"; None: as in the first field (GRIB)
    schema       what the store was made without: "ignore" (None, too) leaves it out, "grow" adds new variables, steps, levels and members
                 (GRIB), "strict" raises, and nothing is written
    every        the cadence of the runs, timedelta(hours=6) or "6h" (GRIB)
    stack, stack_name   stack="variable": one array of all variables, and its name (GRIB)
    append_dim, concat_dim, drift   of HDF5, NetCDF and Zarr sources: as squall.open_many takes them
    group        of HDF5, NetCDF-4 and Zarr sources: "forecast/surface"; None: the root
    zarr_format  3 (None, too) or 2, for readers that know no other
    part         (2, 5) or "2/5": only the units of this part, beside processes, here and on other machines, that write the others
    dry_run      only plan: the report says what would be done; .exit_code is 1 and .meaning the reason where it cannot
    prepend      add runs before the store's first, too: init_time then begins earlier (GRIB)
    overwrite    replace a store that squall made
    strict       write no unit that has a bad input, and raise when there is any bad or ignored input
    lock_timeout seconds, a number or a timedelta, to wait for another run that holds the store; then squall.Error with .status EREFUSED.
                 None: do not wait
    threads, memory   limits; None: those of squall.set_options

    Returns a Report. Inputs that are unreadable or ignored are in its .bad and .ignored, and told by one warning when they are new to the
    store; strict=True makes them a squall.Error, raised when all that is good is written, with the report as .report.
    Raises ValueError and TypeError for what makes no sense, with the keyword's name; FileNotFoundError for sources that are not there;
    MemoryError when memory= is too little, before anything is written; squall.Error with .status EREFUSED where the store is in use or was
    made with other options; KeyboardInterrupt as soon as no chunk is half done.
    """
    keywords = {key: value for key, value in locals().items() if key not in ("sources", "dest", "client", "progress")}
    shown = listener(progress, "units")
    call = {
        "threads": _threads(threads) or 0,
        "memory_bytes": _bytes(memory) if memory is not None else 0,
        "lock_timeout_s": _seconds("lock_timeout", lock_timeout),
        "prepend": bool(prepend),
        "overwrite": bool(overwrite),
        "strict": bool(strict),
    } | in_words(keywords)
    try:
        if client is not None and not dry_run:
            from squall._convert_dask import convert_on

            (document, text, obstacle), seconds = convert_on(client, _sources(sources), _as_bytes(dest), call, shown)
        else:
            (document, text, obstacle), seconds = _carry_out(
                "convert", _sources(sources), _as_bytes(dest), dry_run=bool(dry_run), shown=shown, **call
            )
    except (Error, MemoryError) as e:
        raise _in_python(e) from None
    text = in_python(text)
    if dry_run:
        return Report(document, text, 1 if obstacle else 0, seconds, in_python(obstacle) if obstacle else "nothing was done, as asked")
    report = Report(document, text, 0, seconds)
    if report.news:
        report = Report(document, text, 3, seconds)
        _tell_losses(report, os.fsdecode(dest), strict)
    return report


def _tell_losses(report, dest, strict):
    losses = [f"{one['file']}: {one['what']}" for one in (*report.bad, *report.ignored)] + [
        f"{one['unit']}: {one['why']}" for one in report.failed
    ]
    message = printable(f"{dest}: {len(losses)} inputs or units are missing or ignored, the first of them {losses[0]}")
    if strict:
        error = Error(f"{message} (the error's .report lists all)", Status.ECORRUPT, dest)
        error.report = report
        raise error
    warnings.warn(f"{message} (the report lists all)", stacklevel=3)


def status(dest):
    """What a converted store holds and lacks, and the command that goes on: a Report that shows itself as a calendar.

    Its keys are those of `squall status --json`: runs (places, of stores made from arrays), inputs, command, … Of NetCDF files that
    squall.create_many has begun (a file, or a folder of them) the regions that nobody has written; .exit_code is then 3. Raises ValueError
    where dest has no records of squall's.
    """
    (document, text, unfinished), seconds = _carry_out("status", _as_bytes(dest), shown=listener(False, "runs"))
    return Report(document, text, 3 if unfinished else 0, seconds, "squall.create_many has not finished them" if unfinished else None)


def verify(dest, *, progress=True, threads=None, memory=None):
    """Check every chunk of a store against its record (length, checksum); without records decode every chunk.

    Returns a Report with the keys of `squall verify --json`: bad, absent and unchecked list what is damaged or missing, what was never
    written, and what cannot be read; noted counts the units whose runs are off from now on, until squall.convert has made them anew, and
    not_noted says why the store does not tell of all damage. .exit_code: 0, 5 where there is damage, 3 where arrays could not be checked.
    progress, threads and memory are as in squall.convert.
    """
    limits = _threads(threads) or 0, _bytes(memory) if memory is not None else 0
    (document, text, bad, unchecked), seconds = _carry_out("verify", _as_bytes(dest), *limits, shown=listener(progress, "chunks"))
    if bad or not unchecked:
        return Report(document, text, 5 if bad else 0, seconds)
    return Report(document, text, 3, seconds, "some arrays could not be checked")
