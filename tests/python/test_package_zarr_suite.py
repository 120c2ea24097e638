"""zarr-python's own tests of arrays, groups, codecs and indexing, with squall.zarr.CodecPipeline below them. They come from the source
distribution of the version that the tests pin, into a virtual environment of their own; without a package index that is skipped.

By hand: make build/zarr-suite as below, and in its source folder
    ZARR_CODEC_PIPELINE__PATH=squall.zarr.CodecPipeline python -m pytest tests/test_array.py
"""

import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile

import pytest
from conftest import BUILD, PACKAGE

VERSION = importlib.metadata.version("zarr")
FILES = "test_indexing.py test_array.py test_codecs test_v2.py test_group.py test_sync.py test_attributes.py test_api.py".split()
FILES += "test_buffer.py test_config.py test_regression test_codec_entrypoints.py test_info.py test_experimental".split()
BUILDERS = ["hatchling", "hatch-vcs"]
TOOLS = "pytest pytest-asyncio pytest-xdist pytest-benchmark pytest-codspeed hypothesis tomlkit numpydoc".split()
# name → why it fails with any pipeline but zarr's own
IS_ZARRS = "asks whether the pipeline is zarr's own"
KNOWN = {
    "tests/test_config.py::test_config_codec_pipeline_class[local]": IS_ZARRS,
    "tests/test_config.py::test_config_codec_pipeline_class[memory]": IS_ZARRS,
    "tests/test_config.py::test_config_codec_implementation[local]": "has zarr's codec replaced, which squall does not use",
}


def run(*command, **kwargs):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **kwargs)


@pytest.fixture(scope="module")
def suite():
    """(the environment's python, zarr-python's source folder)"""
    folder = BUILD / "zarr-suite" / VERSION
    python, source = folder / "bin" / "python", folder / f"zarr-{VERSION}"
    if not source.exists():
        made = run(sys.executable, "-m", "venv", folder)
        assert made.returncode == 0, made.stderr
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        pinned = [f"{name}=={importlib.metadata.version(name)}" for name in ("zarr", "numpy", "numcodecs")]
        done = run(*pip, *BUILDERS, *TOOLS, *pinned)
        if done.returncode == 0:
            done = run(
                python, "-m", "pip", "download", "-q", "--no-binary", "zarr", "--no-deps", "--no-build-isolation", pinned[0], cwd=folder
            )
        if done.returncode:
            pytest.skip(f"zarr-python's source distribution cannot be had: {done.stderr.strip().splitlines()[-1]}")
        with tarfile.open(folder / f"zarr-{VERSION}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return python, source


@pytest.mark.long
def test_zarr_pythons_own_tests_pass(suite, tmp_path):
    python, source = suite
    env = os.environ | {"PYTHONPATH": str(PACKAGE), "ZARR_CODEC_PIPELINE__PATH": "squall.zarr.CodecPipeline"}
    tests = [f"tests/{name}" for name in FILES if (source / "tests" / name).exists()]
    options = ["-q", "-n", "2", "-p", "no:cacheprovider", f"--basetemp={tmp_path}/temp"]
    done = run(python, "-m", "pytest", *options, *tests, cwd=source, env=env)
    failed = {line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))}
    assert failed == set(KNOWN), done.stdout[-5000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 2000
