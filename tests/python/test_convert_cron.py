"""squall.convert every hour, beside an archive that lives: files come late, cut off, damaged, are replaced, and expire.

The oracle is one conversion of everything that the sources ever held whole: the store is the same, byte for byte, the records aside.
"""

import json
import os
import random
import resource
import shutil
import warnings

import pytest
import small_archive as archive
import squall as sq
from test_convert import files

NAMES, STEPS = ("t", "r"), range(2)  # a file of each name, with these steps
CADENCE_HOURS = 6
KEPT_HOURS = 240  # files older than that leave the disk
# how often what happens to a file
KINDS = {"in time": 66, "late": 10, "very late": 4, "never": 2, "cut off": 4, "damaged": 4, "replaced": 4, "spoiled": 4, "off cadence": 2}
SETTLED = 3  # runs after which the cadence is known


class Archive:
    """The folder that cron finds, hour by hour, and what squall has seen of it."""

    def __init__(self, folder, hours, seed):
        self.folder, self.rng = folder, random.Random(seed)
        self.runs = hours // CADENCE_HOURS
        self.coming = {}  # hour: what happens then, [(path, content)]
        self.seen = {}  # (run, name): the messages that squall has seen, by step
        self.disk = {}  # path: (run, name, whole messages by step, bad)
        self.known_bad, self.counts, self.clock = set(), {}, 1_700_000_000
        folder.mkdir()
        for run in range(self.runs):
            for name in NAMES:
                self.plan(run, name)

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def comes(self, hour, *what):
        self.coming.setdefault(hour, []).append(what)

    def plan(self, run, name):
        at, rng = CADENCE_HOURS * run, self.rng
        sure = run < SETTLED or run == self.runs - 1
        kind = "in time" if sure else rng.choices(list(KINDS), KINDS.values())[0]
        self.count(kind)
        if kind == "late":
            at += rng.randrange(1, 24)
        elif kind == "very late":
            at += rng.randrange(24, KEPT_HOURS - 1)
        elif kind in ("cut off", "damaged", "off cadence"):
            self.comes(at, run, name, kind, 0)
            if kind != "off cadence" and rng.random() < 0.3:
                return  # never mended
            at += rng.randrange(1, 48)
        elif kind == "replaced":
            self.comes(at + rng.randrange(1, 72), run, name, "whole", 1)
        elif kind == "spoiled":  # replaced, but not by a whole one: what it has no longer stays as it was
            self.comes(at + rng.randrange(1, 72), run, name, rng.choice(["cut off", "damaged"]), 1)
        if kind != "never":
            self.comes(at, run, name, "whole", 0)

    def hour(self, hour):
        """What happens before this hour's run of cron. Returns whether that has to be told of."""
        for path, (run, *_) in list(self.disk.items()):
            if hour - CADENCE_HOURS * run > KEPT_HOURS:
                path.unlink()
                del self.disk[path]
        for event in self.coming.pop(hour, []):
            self.put(*event)
        found = {(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path, (*_, bad) in self.disk.items() if bad}
        news = found - self.known_bad
        self.known_bad |= news
        for run, name, messages, _ in self.disk.values():
            self.seen.setdefault((run, name), {}).update(messages)
        return bool(news)

    def put(self, run, name, kind, seed):
        path = archive.path_of(self.folder, run, name)
        start = archive.init(run)
        messages = {step: archive.field(name, start, step, seed=seed) for step in STEPS}
        bad = kind != "whole"
        if kind == "off cadence":
            path = path.with_suffix(".odd.grib2")
            archive.write(path, [archive.field(name, archive.init(6 * run + 1, hours=1), step) for step in STEPS])
            messages = {}
        elif kind == "cut off":
            archive.write(path, messages.values())
            os.truncate(path, path.stat().st_size - self.rng.randrange(1, 40))
            del messages[STEPS[-1]]
        elif kind == "damaged":
            path.write_bytes(b"<html>503 Service Unavailable</html>" * self.rng.randrange(1, 5))
            messages = {}
        else:
            archive.write(path, messages.values())
        self.clock += 1  # times of files differ, however fast the hours pass
        os.utime(path, (self.clock, self.clock))
        self.disk[path] = run, name, messages, bad

    def all_that_was_seen(self, folder):
        for (run, name), messages in self.seen.items():
            if messages:
                archive.write(archive.path_of(folder, run, name), [messages[step] for step in sorted(messages)])
        return folder

    def chunks_that_sources_can_mend(self, store):
        """Chunks of runs whose files lie on disk, whole."""
        whole = {(run, name) for run, name, messages, _ in self.disk.values() if len(messages) == len(STEPS)}
        runs = {run for run, _ in whole if all((run, name) in whole for name in NAMES)}
        return [chunk for run in sorted(runs) for name in NAMES for chunk in sorted(store.glob(f"{name}*/c/{run}/**/*")) if chunk.is_file()]


def by_command(squall, source, store):
    done = squall("convert", source, store, "--quiet", check=False)
    assert (done.err == "") == (done.code == 0), (done.code, done.err)  # nothing but problems
    return done.code


def by_package(source, store):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that of new bad inputs
        return sq.convert(source, store, progress=False, threads=2).exit_code


def damage(rng, chunk):
    data = bytearray(chunk.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    chunk.write_bytes(data)


def simulate(squall, tmp_path, hours, seed, damaged_every):
    """Hours of cron runs. Returns the archive, the store, and the resident set in kB after a quarter of the hours and at the end."""
    world, store = Archive(tmp_path / "in", hours, seed), tmp_path / "out.zarr"
    rng, resident_kb, descriptors = random.Random(seed), [], []
    hour = 0
    while hour < hours or world.coming:
        news = world.hour(hour)
        if hour and hour % damaged_every == 0 and (chunks := world.chunks_that_sources_can_mend(store)):
            damage(rng, rng.choice(chunks))
            verified = sq.verify(store, progress=False)
            assert verified.exit_code == 5 and len(verified.bad) == 1 and verified.noted == 1, verified
            world.count("damaged chunk")
        code = by_command(squall, world.folder, store) if hour % 10 == 9 else by_package(world.folder, store)
        assert code == (3 if news else 0), (hour, news)
        if hour in (hours // 4, hours - 1):
            resident_kb.append(int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() // 1024)
            descriptors.append(len(os.listdir("/proc/self/fd")))
        hour += 1
    assert descriptors[0] == descriptors[1]
    return world, store, resident_kb


def equal_to_one_conversion(squall, world, store, tmp_path):
    everything = world.all_that_was_seen(tmp_path / "all")
    whole = tmp_path / "whole.zarr"
    squall("convert", everything, whole, "--quiet")
    mine, wanted = files(store), files(whole)
    assert mine.keys() == wanted.keys(), mine.keys() ^ wanted.keys()
    assert [path for path in mine if mine[path] != wanted[path]] == []
    squall("verify", store)
    status = json.loads(squall("status", store, "--json").out)
    shutil.rmtree(everything)
    return status


def test_weeks_of_hourly_runs_make_the_store_of_one_conversion(squall, tmp_path):
    world, store, _ = simulate(squall, tmp_path, 24 * 18, 5, damaged_every=50)
    equal_to_one_conversion(squall, world, store, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_a_year_of_hourly_runs_makes_the_store_of_one_conversion(squall, tmp_path, seed):
    world, store, (quarter_kb, end_kb) = simulate(squall, tmp_path, 24 * 365, seed, damaged_every=100)
    equal_to_one_conversion(squall, world, store, tmp_path)
    assert end_kb < quarter_kb + 8 * 1024, (quarter_kb, end_kb)
    print(f"\na year of hourly runs, seed {seed}: {world.counts}; resident {quarter_kb} kB after a quarter, {end_kb} kB at the end")
