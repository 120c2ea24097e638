"""Programs whose calls that change the file system fail in turn, each in a child: tests/support/fail_io.c does it, preloaded."""

import ctypes
import os
import subprocess
import sys

import pytest


def run_failing(support, program, *arguments):
    """What the Python program prints, which calls in_child."""
    preload = support / "fail_io.so"
    if not preload.exists():
        pytest.skip("tests/support/fail_io.so is not built")
    environment = os.environ | {"LD_PRELOAD": str(preload), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, program, *map(str, arguments)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_child(order, work):
    """(Exit status, or minus the signal; what an OSError said). order: "N:kill", "N:ENOSPC" or "N:EIO", of the N-th call."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 0
        ctypes.CDLL(None).squall_fault_begin(order.encode())
        try:
            work()
        except OSError as e:
            with open(writer, "w") as said:
                said.write(str(e))
            status = 1
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader) as said:
        words = said.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), words
