"""Datasets behind nbit, szip and scaleoffset that the system's libhdf5 wrote (tests/support/write_hdf5.c): squall reads what h5py reads."""

import ctypes
import subprocess

import h5py
import numpy as np
import pytest
import squall as sq
from hdf5_random import library


@pytest.fixture(scope="module")
def written(support, tmp_path_factory):
    program = support / "write_hdf5"
    if not program.exists():
        pytest.skip("no libhdf5-dev when squall was built: nothing that writes these files")
    path = tmp_path_factory.mktemp("library") / "filters.h5"
    subprocess.run([program, path], check=True)
    return path


def open_with_h5py(path):
    """Numbers of few of their type's bits, too, which libhdf5 2 takes for damage if it is not told otherwise."""
    unusual_bits = 1
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    relax = getattr(library(), "H5Pset_relax_file_integrity_checks", None)
    assert relax is None or relax(ctypes.c_int64(access.id), ctypes.c_uint64(unusual_bits)) == 0
    return h5py.File(h5py.h5f.open(bytes(path), h5py.h5f.ACC_RDONLY, access))


def values_of(dset):
    """Integers as ones of 8 bytes in their own order: in the other one libhdf5 only turns the bytes, though there be fewer bits."""
    low = dset.id.get_type()
    if low.get_class() != h5py.h5t.INTEGER:
        return dset[...]
    order = ">" if low.get_order() == h5py.h5t.ORDER_BE else "<"
    values = np.empty(dset.shape, f"{order}{dset.dtype.kind}8")
    dset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, values)
    return values.astype(dset.dtype)


def assert_same(found, wanted, what):
    """The same numbers; of integers and floats of few bits, whose types h5py may choose otherwise, by value."""
    assert found.shape == wanted.shape, what
    if wanted.dtype.names:
        for name in wanted.dtype.names:
            assert_same(found[name], wanted[name], f"{what}.{name}")
    elif wanted.dtype.kind == "f" and found.dtype.itemsize == wanted.dtype.itemsize:
        assert found.tobytes() == wanted.astype(found.dtype).tobytes(), what
    else:
        assert found.dtype.kind == wanted.dtype.kind and found.dtype.isnative, what
        assert (found == wanted).all(), what


@pytest.mark.parametrize("filter_name, least", [("nbit", 150), ("szip", 130), ("scaleoffset", 140)])
def test_datasets_behind_a_filter_of_the_library(written, filter_name, least):
    group = sq.open(written)[filter_name]
    filtered = 0
    with open_with_h5py(written) as f:
        if filter_name == "szip" and not f["szip"]:
            pytest.skip("this libhdf5 has no szip encoder")
        for name, dset in f[filter_name].items():
            array, wanted = group[name], values_of(dset)
            assert filter_name in array.codecs and not array.unsupported, f"{name}: {array.codecs}: {array.unsupported}"
            filtered += any(dset.id.get_chunk_info(i).filter_mask == 0 for i in range(dset.id.get_num_chunks()))
            assert_same(array[...], wanted, name)
            part = (slice(1, 11, 2), *[slice(1, 4)] * (dset.ndim - 1))
            assert_same(array[part], wanted[part], f"a part of {name}")
            if filter_name != "nbit":  # of few bits: the same mistake of libhdf5's; what was never written shows them
                assert_same(np.asarray(array.fill_value), np.asarray(dset.fillvalue), f"fill value of {name}")
    assert filtered >= least
