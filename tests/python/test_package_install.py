"""pip install . from a checkout: a wheel for every Python from 3.11 on, with the package and the command and nothing else."""

import subprocess
import sys
import zipfile

import pytest
from conftest import ROOT


@pytest.mark.long
def test_a_wheel_serves_every_python(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH")  # there pip would find the package of this build
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "-q", ROOT, checkout], check=True)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, checkout], capture_output=True, text=True
    )
    if "No matching distribution" in done.stderr or "Could not find a version" in done.stderr:
        pytest.skip("meson-python cannot be had")
    assert done.returncode == 0, done.stderr[-3000:]
    (wheel,) = tmp_path.glob("squall-*.whl")
    assert "-cp311-abi3-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    parts = {name.split("/")[0].split("-")[0] for name in names}
    assert parts == {"squall"} and any(name.endswith("/scripts/squall") for name in names)
    assert {"squall/__init__.py", "squall/_squall.abi3.so", "squall/py.typed", "squall/zarr.py"} <= set(names)
    assert not [name for name in names if ".so." in name or name.endswith((".1", ".a", ".pc", ".h"))]
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True)
    code = "import squall; squall.create_array('a.zarr', data=[1, 2, 3]); print(squall.open_array('a.zarr')[::-1]); squall.show_versions()"
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith("[3 2 1]\nsquall:"), done.stderr
    shown = subprocess.run([tmp_path / "venv" / "bin" / "squall", "info", tmp_path / "a.zarr"], capture_output=True, text=True)
    assert shown.returncode == 0 and "int64" in shown.stdout
