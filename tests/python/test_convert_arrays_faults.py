"""A conversion of NetCDF files that dies, or is failed by the system, at every call that changes the file system; and then goes on.

What test_convert_faults.py asks of GRIB, where chunks of the append dimension are longer than one time and the last is cut.
"""

import pytest
import small_files as small
from test_convert import files
from test_convert_faults import Sweep, every

CHUNK = 3  # times; 4 in a file: units cross files, and the last unit is not full
OPTIONS = ["--chunks", f"time={CHUNK},lat=4", "--threads", "2", "--select", "name=t|series"]


class ArraySweep(Sweep):
    def flags_are_not_ahead(self):
        """Of every time that is said to be there, every chunk is one that an undisturbed run wrote (before or now)."""
        now = files(self.store) if self.store.is_dir() else {}
        then = files(self.before) if self.before else {}
        times = [int(p.rsplit("/", 1)[1]) for p in now if p.startswith("chunk_exists/c/") and not p.endswith("-tmp") and now[p] == b"\x01"]
        for unit in {time // CHUNK for time in times}:
            chunks = {p for p in self.after | then if p.startswith(f"t/c/{unit}/")}
            assert any(all(now.get(p) == whole.get(p) for p in chunks) for whole in (self.after, then)), (unit, chunks)


@pytest.fixture(params=["new", "more files", "overwrite"])
def sweep(request, squall, support, tmp_path):
    source, before, store = tmp_path / "in", tmp_path / "before.zarr", tmp_path / "s" / "out.zarr"
    if not (support / "fail_io.so").exists():
        pytest.skip("tests/support/fail_io.so is not built")
    store.parent.mkdir()
    paths = small.make(source, 2)
    pattern = source / "*.nc"
    if request.param == "new":
        return ArraySweep(support, None, pattern, store, OPTIONS)
    squall("convert", pattern, before, *OPTIONS)
    if request.param == "overwrite":
        return ArraySweep(support, before, pattern, store, [*OPTIONS, "--overwrite", "--dtype", "t=float64"])
    small.write(paths[0], 0, seed=5)  # changed: its units are done again
    small.write(source / "day02.nc", 2)
    return ArraySweep(support, before, pattern, store, OPTIONS)


@every
def test_killed_at_every_call(sweep, stride):
    assert sweep.calls > 40
    for n in range(1 + stride // 2, sweep.calls + 1, stride):
        sweep.reset()
        code = sweep.run(check=False, SQUALL_FAULT=f"{n}:kill").returncode
        assert code == -9 or n > sweep.calls - 20  # which thread makes a folder durable is chance: the number of calls differs by a few
        sweep.flags_are_not_ahead()
        sweep.goes_on()


@every
@pytest.mark.parametrize("fault, words", [("ENOSPC", "No space left"), ("EIO", "Input/output error")])
def test_failed_at_every_call(sweep, stride, fault, words):
    benign = 0
    for n in range(1 + stride // 2, sweep.calls + 1, stride):
        sweep.reset()
        process = sweep.run(check=False, SQUALL_FAULT=f"{n}:{fault}")
        assert process.returncode in (0, 1, 3), (n, process.returncode, process.stderr)
        if process.returncode == 1:
            assert words in process.stderr, (n, process.stderr)
            assert not list(sweep.store.rglob(".*.squall-tmp")), n
        benign += process.returncode != 1
        sweep.flags_are_not_ahead()
        sweep.goes_on()
    assert benign <= 25  # at the end: releasing a lock, and calls that were not made this time
