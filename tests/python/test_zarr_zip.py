"""Stores in zip files: what zarr-python's ZipStore wrote reads equal; what nobody should put into an archive is refused by name."""

import zipfile

import numpy as np
import pytest
import squall
import zarr
from zarr.codecs import BloscCodec, GzipCodec
from zarr.storage import ZipStore

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::zarr.errors.ZarrUserWarning")

SHAPE = (13, 9, 10)
METHODS = {"stored": zipfile.ZIP_STORED, "deflated": zipfile.ZIP_DEFLATED}


def numbers(dtype="f4", seed=0):
    return np.random.default_rng(seed).integers(-100, 100, SHAPE).astype(dtype)


def fill_group(store, version):
    """Arrays of several kinds; one of them in part, so that chunks are missing."""
    group = zarr.create_group(store, zarr_format=version, attributes={"title": "zipped", "levels": [1, 2]})
    kinds = {
        "plain": {"compressors": None},
        "below/blosc": {"compressors": BloscCodec(cname="lz4") if version == 3 else "auto"},
        "below/deeper/big": {"dtype": ">i2", "compressors": None},
        "part": {"fill_value": 7},
    }
    if version == 3:
        kinds |= {
            "sharded": {"shards": (8, 9, 10)},
            "sharded_plain": {"shards": (8, 9, 10), "compressors": None},
            "gzip": {"compressors": GzipCodec()},
        }
    for i, (name, options) in enumerate(kinds.items()):
        array = group.create_array(name, shape=SHAPE, chunks=(4, 3, 5), **{"dtype": "f4", **options})
        array[slice(0, 5) if name == "part" else ...] = numbers(array.dtype, i)[slice(0, 5) if name == "part" else ...]
    group.create_array("scalar", shape=(), dtype="f8")[...] = 3.5
    return group


def make(path, version=3, method="stored", consolidated=False):
    store = ZipStore(path, mode="w", compression=METHODS[method])
    fill_group(store, version)
    if consolidated:
        zarr.consolidate_metadata(store, zarr_format=version)
    store.close()
    return path


@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("version", [2, 3])
def test_what_a_zip_store_holds_reads_equal(tmp_path, version, method, consolidated):
    path = make(tmp_path / "store.zip", version, method, consolidated)
    theirs = zarr.open_group(ZipStore(path, mode="r"), mode="r")
    ours = squall.open(path)
    names = [name for name, node in theirs.members(max_depth=None) if isinstance(node, zarr.Array)]
    assert len(names) == (8 if version == 3 else 5)
    assert dict(ours.attrs) == {"title": "zipped", "levels": [1, 2]}
    for name in names:
        np.testing.assert_array_equal(ours[name][...], theirs[name][...])
    for key in [np.s_[3], np.s_[2:11:3, 8, ::-2], np.s_[12, 8, 9], np.s_[4:8, 3:6, 5:10]]:
        for name in names:
            if name != "scalar":
                np.testing.assert_array_equal(ours[name][key], theirs[name][...][key])
