"""What the Python tests share: where the command is, where real files are, and how the command is run."""

import fcntl
import os
import pathlib
import subprocess
import sys

import hypothesis
import pytest

try:  # before netCDF4, which points libhdf5 to filters of its own under the same numbers
    import hdf5plugin  # noqa: F401
except ImportError:  # in the environment of the newest packages
    pass

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
BUILD = pathlib.Path(os.environ.get("SQUALL", ROOT / "build" / "squall")).parent

PACKAGE = BUILD / "python"  # the Python package of this build, for the tests and for what they start
sys.path.insert(0, str(PACKAGE))
os.environ["SQUALL_INDEX_CACHE"] = "0"  # tests keep nothing in the user's folders
# Dask gives a worker up that is not there so long after it was lost: one that begins anew on a busy machine, or was killed again just then
os.environ["DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT"] = "1h"
os.environ["PYTHONPATH"] = os.pathsep.join([str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])])


# the same examples in every run, kept nowhere
hypothesis.settings.register_profile(
    "squall", derandomize=True, database=None, deadline=None, suppress_health_check=list(hypothesis.HealthCheck), print_blob=False
)
hypothesis.settings.load_profile("squall")


# What takes longest begins first, so that all workers end at about the same time.
LONGEST = ["real_files", "convert", "convert_arrays", "zarr_conformance", "grib_names", "docs", "package_memory", "xarray_suite"]


def pytest_collection_modifyitems(items):
    order = {f"test_{name}": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes minutes; only in make test-long")


@pytest.fixture(scope="session")
def shared():
    """The folder with other people's files; without it these tests are skipped (and fail where CI runs)."""
    if not SHARED.is_dir():
        pytest.skip("../shared is not there: no real files to test with")
    return SHARED


class Done:
    def __init__(self, process):
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr


@pytest.fixture(scope="session")
def squall():
    """Run the command: squall("ls", path) → .code .out .err; check=True (the default) wants exit code 0."""

    def call(*args, check=True, text=True, **kwargs):
        process = subprocess.run([str(BUILD / "squall"), *map(str, args)], capture_output=True, text=text, **kwargs)
        if check:
            assert process.returncode == 0, f"squall {' '.join(map(str, args))}: {process.returncode}\n{process.stdout}\n{process.stderr}"
        return Done(process)

    call.binary = BUILD / "squall"
    return call


@pytest.fixture(scope="session")
def support():
    """The folder of the built support programs (make_archive, …)."""
    return BUILD / "tests" / "support"


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """made_once(name, make): the folder of that name that make(folder) made, once for all processes that run these tests."""
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def call(name, make):
        folder, done = common / name, common / f"{name}.done"
        with open(common / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                make(folder)
                done.touch()
        return folder

    return call


@pytest.fixture(scope="session")
def ukv_traps(shared, made_once):
    """An archive by ecCodes with what goes wrong in real ones; which, stands in archive.traps.json beside it."""
    sizes = "--inits 6 --steps 2 --vars 10 --traps".split()

    def make(folder):
        maker = shared / "tools" / "make_ukv_archive.py"
        subprocess.run([sys.executable, maker, folder / "archive", *sizes], check=True, capture_output=True)

    return made_once("traps", make) / "archive"


@pytest.fixture(scope="session")
def codec_try(support):
    """codec_try(request, encode, source, room): see codec_request.py."""
    from codec_request import caller

    return caller(support / "codec_try.so")


@pytest.fixture(scope="session")
def account_of(shared, tmp_path_factory):
    """account_of(name): what becomes of a file of ../shared/data/grib (see real_files.py), worked out once a session."""
    from projecting import Projector
    from real_files import account

    work, project, known = tmp_path_factory.mktemp("real"), Projector(), {}

    def call(name):
        if name not in known:
            known[name] = account(shared / "data" / "grib" / name, work, project)
        return known[name]

    yield call
    project.close()
