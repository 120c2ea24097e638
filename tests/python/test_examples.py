"""The examples do what their first lines say, linked to the shared library."""

import subprocess

import pytest
from conftest import BUILD


@pytest.fixture(scope="module")
def archive(tmp_path_factory, support):
    folder = tmp_path_factory.mktemp("examples") / "archive"
    sizes = "--inits 2 --steps 3 --vars 3 --ny 20 --nx 30".split()
    subprocess.run([support / "make_archive", folder, *sizes], check=True)
    return folder


def run(name, *args):
    return subprocess.run([BUILD / "examples" / name, *args], capture_output=True, text=True)


def test_fields_are_listed(archive):
    done = run("list_fields", sorted(archive.iterdir())[0])
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 3 * 3
    assert done.stdout.startswith("t heightAboveGround 1 +0 s")


def test_a_converted_box_has_the_mean_that_xarray_gives(archive, tmp_path):
    import xarray as xr

    store = tmp_path / "store.zarr"
    done = run("convert_archive", archive, store)
    assert done.returncode == 0, done.stderr
    done = run("read_box", store, "t")
    assert done.returncode == 0, done.stderr
    wanted = float(xr.open_zarr(store, chunks=None)["t"][0, 0].astype("float64").mean())
    assert float(done.stdout.split()[2]) == pytest.approx(wanted, rel=1e-5)


def test_fields_written_from_threads_are_all_there(tmp_path):
    import numpy as np
    import zarr

    store = tmp_path / "store.zarr"
    done = run("write_regions", store)
    assert done.returncode == 0, done.stderr
    got = zarr.open_group(store, mode="r")["t2m"][...]
    step, y, x = np.ogrid[0:24, 0:90, 0:180]
    wanted = 288 - 40 * np.cos(np.pi * y / 90) + 5 * np.sin(np.pi * (x + 7 * step) / 180)
    np.testing.assert_allclose(got, wanted, atol=1e-3)


@pytest.mark.parametrize("name", ["list_fields", "read_box", "convert_archive"])
def test_a_mistake_is_told_in_one_line(name):
    done = run(name, "/no/such/path", "/no/such/store")
    assert done.returncode != 0
    assert "/no/such" in done.stderr
