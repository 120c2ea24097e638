"""squall.convert(client=...): parts of a conversion (`squall convert --part`) as tasks of a Dask cluster.

Workers read the sources and write the store themselves; what a task returns is a few numbers. A worker that dies is of no consequence: its
task is run again elsewhere, and goes on from what is durable. At the end the caller converts what is left, which is nothing, and so knows
that all is there.
"""

import json
import os
import time
import uuid

from squall import _convert
from squall._errors import Error, Status
from squall._progress import Progress

PARTS_PER_THREAD = 4  # so that workers which are slower, or come later, do not hold up the rest
PATIENCE_S = 60  # with a worker that was given up and still ends its unit
PATIENCE_AT_END_S = 10  # with tasks that were cancelled, and end theirs
_SUMS = "fields_written", "fields_carried", "bytes_in", "bytes_out"


class _Abandoned(Exception):
    """Nobody waits for the task any more."""


class _Watch:
    """In the place of a progress bar: ends the work when the task is cancelled."""

    def __init__(self, worker):
        self.tasks, self.key = worker.state.tasks, worker.get_current_task()

    def show(self, progress):
        task = self.tasks.get(self.key)
        if task is None or task.state == "cancelled":
            raise _Abandoned(self.key)

    def close(self):
        pass


def _patiently(in_use, paths, dest, call, shown):
    """What a conversion returns, when those that are given up and end their unit are out of its way; in_use: what it is told of them."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return _convert._carry_out("convert", paths, dest, dry_run=False, shown=shown, **call)[0]
        except Error as e:
            if e.status != Status.EREFUSED or in_use not in str(e) or "on this host" not in str(e) or time.monotonic() > until:
                raise
            time.sleep(0.5)


def _write_part(paths, dest, call):
    """On a worker."""
    from distributed import get_worker

    worker = get_worker()
    if not call["memory_bytes"]:
        limit = worker.memory_manager.memory_limit
        call = call | {"memory_bytes": int(limit) // (2 * worker.state.nthreads) if limit else 0}
    in_use = f"in use by part {call['part'].replace('/', ' of ')},"
    report = json.loads(_patiently(in_use, paths, dest, call, _Watch(worker))[0])
    news = [(one["file"], one["what"]) for one in (*report["bad"], *report["ignored"]) if not one["known"]]
    return {"done": report["units"]["done"], "news": news} | {key: report[key] for key in _SUMS if key in report}


def _count(client, units):
    """How many parts: a prime number, so that runs which come at a fixed step fall into all of them."""
    most = max(1, min(units, PARTS_PER_THREAD * (sum(client.nthreads().values()) or 2)))
    return next(n for n in range(most, 0, -1) if all(n % k for k in range(2, n)))


def _merged(document, text, parts):
    """The report of the last run, which found all done, and what the parts did."""
    report, news = json.loads(document), {tuple(one) for part in parts for one in part["news"]}
    done = sum(part["done"] for part in parts)
    units = report["units"]
    units["done"] += done
    units["skipped"] -= done
    for key in _SUMS:
        if key in report:
            report[key] += sum(part.get(key, 0) for part in parts)
    for one in (*report["bad"], *report["ignored"]):
        if (one["file"], one["what"]) in news:
            one["known"] = False
            text = "\n".join(
                line.removesuffix(", known already") if line.startswith(f"  {one['file']}: {one['what']}") else line
                for line in text.split("\n")
            )
    report["news"] = report["news"] or bool(news)
    if done:
        first, _, rest = text.partition("\n")
        left = f", {units['failed']} left" if units["failed"] else ""
        text = f"{report['destination']}: {units['done']} units written by {len(parts)} tasks, {units['skipped']} done before{left}\n{rest}"
    return json.dumps(report), text


def _wait_for_end(dest, count):
    """Until no part holds its lock, so that the caller may begin again at once; a killed one's stays."""
    records, until = os.path.join(dest, b"chunk_exists", b".squall"), time.monotonic() + PATIENCE_AT_END_S
    ending = f"-of-{count}".encode()
    while time.monotonic() < until and os.path.isdir(records) and any(name.endswith(ending) for name in os.listdir(records)):
        time.sleep(0.05)


def convert_on(client, paths, dest, call, shown):
    """As _convert._carry_out("convert", …), on the workers of a distributed.Client."""
    wanted = f"client: {client!r} is a {type(client).__name__}; wanted is a distributed.Client"
    try:
        from distributed import Client, as_completed
    except ModuleNotFoundError:  # so it is none
        raise TypeError(wanted) from None

    if not isinstance(client, Client):
        raise TypeError(wanted)
    for keyword in ("prepend", "overwrite", "part"):
        if call.get(keyword):
            raise ValueError(f"{keyword} and client exclude each other")
    start, paths, dest = time.monotonic(), tuple(map(os.path.abspath, paths)), os.path.abspath(dest)
    quiet = _Quiet()
    (plan, _, obstacle), _ = _convert._carry_out("convert", paths, dest, dry_run=True, shown=quiet, **call)
    if obstacle:
        raise MemoryError(obstacle)
    units = json.loads(plan)["units"]
    units = units["write"] + units["redo"]
    count, run = _count(client, units), uuid.uuid4().hex[:8]
    there = call | {"threads": call["threads"] or 1}
    futures, parts = [], []
    try:
        if units:
            for number in range(1, count + 1):
                key = f"squall-convert-{os.path.basename(os.fsdecode(dest))}-{number}-of-{count}-{run}"
                futures.append(client.submit(_write_part, paths, dest, there | {"part": f"{number}/{count}"}, key=key, pure=False))
        for future, part in as_completed(list(futures), with_results=True):
            futures.remove(future)
            future.release()  # so that it is not done again where its worker dies now
            parts.append(part)
            done, read, written = (sum(part[key] for part in parts) for key in ("done", "bytes_in", "bytes_out"))
            shown.show(Progress(done, units, read, written, time.monotonic() - start))
        document, text, _ = _patiently("in use by part", paths, dest, call, quiet)
    except BaseException:
        client.cancel(futures, force=True)
        _wait_for_end(dest, count)
        raise
    finally:
        shown.close()
    return (*_merged(document, text, parts), None), time.monotonic() - start


class _Quiet:
    def show(self, progress):
        pass

    def close(self):
        pass
