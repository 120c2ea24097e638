"""What docs/hdf5.md says is refused: each is named with its reason, and everything else in the file is read. h5py makes the files."""

import re

import h5py
import hdf5plugin
import numpy as np
import pytest
import squall as sq


def virtual(f):
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "x", (4,))
    f.create_virtual_dataset("v", layout)


def outside(f):
    f.create_dataset("v", (4,), "f8", external=[("/etc/passwd", 0, 32)])


def filtered(options):
    return lambda f: f.create_dataset("v", data=np.ones((8, 8), "f4"), chunks=(8, 8), **options)


def of_type(low):
    return lambda f: h5py.h5d.create(f.id, b"v", low, h5py.h5s.create_simple((4,)))


def wide():
    low = h5py.h5t.STD_I64LE.copy()
    low.set_size(16)
    low.set_precision(128)
    return low


ARRAYS = {
    "virtual dataset": (virtual, "a virtual dataset: its data lie in other datasets; open those, or their files as one (squall.open_many)"),
    "external files": (outside, "its data lie in external files, which are not opened"),
    "zfp": (filtered(hdf5plugin.Zfp()), "filter 32013 (zfp) is not supported"),
    "sz3": (filtered(hdf5plugin.SZ3(absolute=0.1)), "filter 32024 (sz3) is not supported"),
    "blosc2": (filtered(hdf5plugin.Blosc2()), "filter 32026 (blosc2) is not supported"),
    "time": (of_type(h5py.h5t.UNIX_D32LE), "unsupported data type: HDF5's time"),
    "wide integers": (of_type(wide()), "unsupported data type: integers of 16 bytes"),
}


@pytest.mark.parametrize("what", ARRAYS)
def test_an_array_that_cannot_be_read_is_listed_with_the_reason(squall, tmp_path, what):
    make, reason = ARRAYS[what]
    with h5py.File(tmp_path / "x.h5", "w") as f:
        make(f)
        f["good"] = np.arange(3.0)
    ds = sq.open(tmp_path / "x.h5")
    assert ds["good"][...].tolist() == [0, 1, 2]
    assert ds["v"].shape in [(4,), (8, 8)]
    with pytest.raises(sq.Error, match=re.escape(f"array v cannot be read: {reason}")) as caught:
        ds["v"][...]
    assert caught.value.status == sq.Status.EUNSUPPORTED
    assert reason in squall("ls", tmp_path / "x.h5", "-p", "name,reason").out
    assert "compact" not in squall("ls", tmp_path / "x.h5").out  # of none is it known how it is stored
    done = squall("get", tmp_path / "x.h5", "v", check=False)
    assert done.code == 1 and reason in done.err and not done.out


def test_a_filter_that_no_chunk_went_through_is_no_reason(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f.create_dataset("v", (8, 8), "f4", chunks=(8, 8), fillvalue=7, **hdf5plugin.Zfp())
        passed = f.create_dataset("passed", (4, 8), "f4", chunks=(4, 8), **hdf5plugin.Zfp())
        passed.id.write_direct_chunk((0, 0), np.full((4, 8), 3, "f4").tobytes(), 1)  # the mask: past the filter
    ds = sq.open(tmp_path / "x.h5")
    assert (ds["v"][...] == 7).all() and (ds["passed"][...] == 3).all()


def test_links_and_attributes_that_cannot_be_read_are_told_among_problems(squall, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f["good"] = np.arange(3.0)
        f["good"].attrs["units"] = "K"
        f["out"] = h5py.ExternalLink("/etc/passwd", "/x")
        h5py.h5a.create(f["good"].id, b"stamp", h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((2,)))
    ds = sq.open(tmp_path / "x.h5")
    assert list(ds) == ["good"] and ds["good"].attrs == {"units": "K"}
    for problem in ("an external link to /etc/passwd:/x is not followed; out is left out", "HDF5's time; stamp of good is left out"):
        assert [problem in text for text in ds.problems].count(True) == 1, ds.problems
        assert problem in squall("info", tmp_path / "x.h5", check=False).err
