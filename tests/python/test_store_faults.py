"""Every call that changes the file system fails once, and once the process dies there: each chunk and document is the old or the new,
never a part. tests/support/fail_io.c counts the calls and makes the n-th one fail."""

import os
import shutil
import subprocess

import pytest
import zarr


def run(support, what, store, **environment):
    return subprocess.run([support / "change_store", what, store], capture_output=True, text=True, env=os.environ | environment)


@pytest.mark.parametrize("action", ["kill", "ENOSPC", "EIO"])
def test_a_change_that_fails_anywhere_leaves_old_or_new(support, tmp_path, action):
    preload = str(support / "fail_io.so")
    first, store, count = tmp_path / "first", tmp_path / "store", tmp_path / "count"
    assert run(support, "make", first).returncode == 0
    shutil.copytree(first, store)
    done = run(support, "change", store, LD_PRELOAD=preload, SQUALL_FAULT_COUNT=str(count))
    assert done.returncode == 0, done.stderr
    calls = int(count.read_text())
    assert calls > 40
    for n in range(1, calls + 1):
        shutil.rmtree(store)
        shutil.copytree(first, store)
        done = run(support, "change", store, LD_PRELOAD=preload, SQUALL_FAULT=f"{n}:{action}")
        checked = run(support, "check", store)
        assert checked.returncode == 0, f"call {n}: {checked.stderr}"
        if action == "kill":
            assert done.returncode != 0
        else:
            assert done.returncode == 0 or done.stderr.strip(), f"call {n}"
        zarr.open_group(store, mode="r")["t"][...]  # and others can read it
    leftovers = list(store.rglob("*.squall-tmp"))
    assert action == "kill" or not leftovers
