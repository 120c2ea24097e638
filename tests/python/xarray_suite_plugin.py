"""A plugin of pytest with which xarray's own tests open files with squall where they name xarray's own engines.

    python -m pytest -p xarray_suite_plugin --pyargs xarray.tests.test_backends [--every 20]        (test_xarray_suite.py runs it)

--every N    only each N-th test

What xarray_suite_known.txt lists is expected to fail, and has failed the run where it passes.
"""

import asyncio
import inspect
import pathlib
import zlib

import pytest
from squall.xarray import SquallBackendEntrypoint
from xarray.backends.common import BACKEND_ENTRYPOINTS

KNOWN = pathlib.Path(__file__).with_name("xarray_suite_known.txt")


def _known():
    """Name of a test → why it fails: lines that begin with a space name tests, the line above them the reason."""
    found, reason = {}, ""
    for line in KNOWN.read_text().splitlines():
        if line.startswith(" "):
            found[line.strip()] = reason
        elif line and not line.startswith("#"):
            reason = line
    return found


def _instead_of(theirs):
    """squall under the name of another engine; what squall refuses by name, objects of zarr-python among it, is for the other one."""

    class Engine(SquallBackendEntrypoint):
        def guess_can_open(self, filename_or_obj):
            return theirs().guess_can_open(filename_or_obj)

        def open_dataset(self, filename_or_obj, **keywords):
            return _opened("open_dataset", filename_or_obj, keywords)

        def open_groups_as_dict(self, filename_or_obj, **keywords):
            return _opened("open_groups_as_dict", filename_or_obj, keywords)

        def open_datatree(self, filename_or_obj, **keywords):
            return _opened("open_datatree", filename_or_obj, keywords)

    def _opened(method, source, keywords):
        engine = SquallBackendEntrypoint if _is_squalls(source, keywords) else theirs
        return getattr(engine(), method)(source, **keywords)

    return Engine


def _is_squalls(source, keywords):
    of_zarr = any(keywords.get(name) is not None for name in ("chunk_store", "store", "synchronizer"))
    readable = hasattr(source, "read") and hasattr(source, "seek")
    is_path = isinstance(source, (str, pathlib.PurePath)) and "://" not in str(source)
    return not of_zarr and (is_path or readable or isinstance(source, (bytes, bytearray, memoryview)))


def pytest_addoption(parser):
    parser.addoption("--every", type=int, default=1, help="only each N-th of xarray's tests")


def pytest_configure(config):
    config.addinivalue_line("markers", "skip_if_param(reason, **parameters): xarray's own conftest has it, which is not installed")
    config.addinivalue_line("markers", "asyncio: a coroutine")
    for name in ("netcdf4", "h5netcdf", "zarr"):
        module, theirs = BACKEND_ENTRYPOINTS[name]
        BACKEND_ENTRYPOINTS[name] = module, _instead_of(theirs)


def _name(item):
    return f"{item.path.stem}::{item.nodeid.partition('::')[2]}"


def pytest_collection_modifyitems(config, items):
    every, known = config.getoption("every"), _known()
    items[:] = [item for item in items if zlib.crc32(_name(item).encode()) % every == 0]
    for item in items:
        if _name(item) in known:
            item.add_marker(pytest.mark.xfail(reason=known.pop(_name(item)), strict=True))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    for mark in item.iter_markers("skip_if_param"):
        wanted = {name: value for name, value in mark.kwargs.items() if name not in ("reason", "condition")}
        if mark.kwargs.get("condition", True) and wanted and all(parameters.get(name) == value for name, value in wanted.items()):
            pytest.skip(mark.kwargs["reason"])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a coroutine; else leave it to pytest."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True
