#!/usr/bin/env python3
"""Everything that a change must pass: the C tests in a release and in a sanitizer build, a short run of each fuzz target, and the
Python tests. Prints a line a suite, what failed in full, and last "N passed, N failed, N skipped"."""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
SANITIZERS = {
    "build-asan": ["-Db_sanitize=address,undefined", "-Dbuildtype=debugoptimized", "-Db_lundef=false"],
    "build-tsan": ["-Db_sanitize=thread", "-Dbuildtype=debugoptimized", "-Db_lundef=false"],
}
# beside the tests, which meson builds before it runs them: for the Python tests
ALSO_BUILT = {"build": ["all"], "build-asan": ["squall"], "build-tsan": ["squall", "tests/support/read_threads"]}
# what the thread sanitizer is for
ZARR_TESTS = [f"tests/python/test_zarr_{name}.py" for name in ("conformance", "metadata")]  # whose oracle is zarr-python
THREADED = [
    "pool",
    "ordered",
    "codec_shard",
    "queue",
    "chunk_cache",
    "engine_read",
    "result_memory",
    "grib_index",
    "grib_list",
    "convert_unit",
    "zarr_writer_regions",
    "handles",
    "many",
]


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, passed, failed, skipped):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped


def run(args, **kwargs):
    return subprocess.run(args, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs)


def print_times(junit):
    """How long each file of tests took, those that took long first."""
    seconds = collections.Counter()
    for case in ET.parse(junit).iter("testcase"):
        seconds[case.get("classname", "").removeprefix("tests.python.")] += float(case.get("time", 0))
    for name, spent in seconds.most_common():
        if spent >= 10:
            print(f"  {name:<64} {spent:6.1f} s")


def junit_counts(path):
    """(passed, failed, skipped, reasons of the skipped) of a JUnit file."""
    passed = failed = skipped = 0
    reasons = []
    for case in ET.parse(path).iter("testcase"):
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif skip is not None:
            skipped += 1
            reasons.append(skip.get("message") or case.get("name") or "")
        else:
            passed += 1
    return passed, failed, skipped, reasons


def report(tally, name, counts, seconds, output):
    passed, failed, skipped = counts
    tally.add(*counts)
    print(f"{name:<28} {passed:>6} passed {failed:>4} failed {skipped:>4} skipped  {seconds:6.1f} s", flush=True)
    if failed:
        print(output, flush=True)


def c_tests(tally, build, extra=()):
    start = time.monotonic()
    if build in SANITIZERS and not (ROOT / build / "build.ninja").exists():
        done = run([BIN / "meson", "setup", build, *SANITIZERS[build]])
        if done.returncode:
            return report(tally, build, (0, 1, 0), time.monotonic() - start, done.stdout)
    if build in ALSO_BUILT:
        done = run([BIN / "ninja", "-C", build, *ALSO_BUILT[build]])
        if done.returncode:
            return report(tally, build, (0, 1, 0), time.monotonic() - start, done.stdout)
    junit = ROOT / build / "meson-logs" / "testlog.junit.xml"
    junit.unlink(missing_ok=True)
    done = run([BIN / "meson", "test", "-C", build, "--print-errorlogs", *extra])
    counts = junit_counts(junit)[:3] if junit.exists() else (0, 1, 0)
    if done.returncode and not counts[1]:
        counts = (counts[0], 1, counts[2])
    report(tally, f"C tests, {build}", counts, time.monotonic() - start, done.stdout)


def fuzz(tally, seconds_each):
    """Each libFuzzer target on its corpus for a while; a crash is a failure, and its input is kept beside the corpus."""
    start = time.monotonic()
    env = dict(os.environ, CC="clang")
    if not (ROOT / "build-fuzz" / "build.ninja").exists():
        done = run([BIN / "meson", "setup", "build-fuzz", "-Dfuzz=true", "-Dbuildtype=debugoptimized", "-Db_lundef=false"], env=env)
        if done.returncode:
            return report(tally, "fuzzing", (0, 1, 0), time.monotonic() - start, done.stdout)
    done = run([BIN / "ninja", "-C", "build-fuzz", "fuzzers"])
    if done.returncode:
        return report(tally, "fuzzing", (0, 1, 0), time.monotonic() - start, done.stdout)
    built = sorted((ROOT / "build-fuzz" / "fuzz").glob("fuzz_*"))
    targets = [target for target in built if os.access(target, os.X_OK) and not target.is_dir()]

    def run_target(target):
        work = ROOT / "build-fuzz" / "corpus" / target.name
        work.mkdir(parents=True, exist_ok=True)
        corpus = ROOT / "fuzz" / "corpus" / target.name.removeprefix("fuzz_")
        seeds = [str(corpus)] if corpus.is_dir() else []
        limits = ["-timeout=10", "-rss_limit_mb=2048", f"-max_total_time={seconds_each}", f"-artifact_prefix={work}/"]
        return run([target, *limits, str(work), *seeds])

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = dict(zip(targets, pool.map(run_target, targets), strict=True))
    crashed = [target for target in targets if done[target].returncode]
    output = "".join(f"{target.name}:\n{done[target].stdout[-3000:]}\n" for target in crashed)
    report(tally, "fuzzing", (len(targets) - len(crashed), len(crashed), 0), time.monotonic() - start, output)


def python_tests(tally, long, name, python, tests):
    start = time.monotonic()
    junit = ROOT / "build" / "pytest.xml"
    junit.unlink(missing_ok=True)
    select = [] if long else ["-m", "not long"]
    env = dict(os.environ, SQUALL=str(ROOT / "build" / "squall"))
    workers = str((os.cpu_count() or 1) + 1)  # one more: some tests wait for the disk most of the time
    in_parallel = ["-n", workers, "--dist", "loadfile", "--no-loadscope-reorder"]
    in_parallel += ["--max-worker-restart=0"]  # a test that crashes ends the run, not hangs it
    done = run([python, "-m", "pytest", "-q", *in_parallel, f"--junit-xml={junit}", *select, *tests], env=env)
    if not junit.exists():
        return report(tally, name, (0, 1, 0), time.monotonic() - start, done.stdout)
    passed, failed, skipped, reasons = junit_counts(junit)
    output = done.stdout
    if long:
        print_times(junit)
    for reason in sorted(set(reasons)):
        print(f"  skipped: {reason}")
    without_data = [r for r in reasons if "shared" in r]
    if os.environ.get("CI") and without_data:
        failed += len(without_data)
        skipped -= len(without_data)
        output += "\nwhere CI runs, the tests with real files must not be skipped\n"
    report(tally, name, (passed, failed, skipped), time.monotonic() - start, output)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--long", action="store_true", help="also the tests marked long, and more fuzzing")
    a = p.parse_args()
    tally = Tally()
    c_tests(tally, "build")
    c_tests(tally, "build-asan")
    c_tests(tally, "build-tsan", THREADED)
    fuzz(tally, 240 if a.long else 4)
    python_tests(tally, a.long, "Python tests", BIN / "python", ["tests/python"])
    newest = ROOT / ".venv-newest" / "bin" / "python"
    if newest.exists():  # the package, built once, under another Python and zarr-python
        package = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("tests/python/test_package_*.py"))]
        python_tests(tally, a.long, "Python package, newest", newest, [*package, *ZARR_TESTS])
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
