"""What becomes of a file of ../shared/data/hdf5: of each dataset whether squall reads what h5py reads."""

import dataclasses
import warnings

import h5py
import numpy as np
import squall as sq
from test_hdf5_objects import plain
from test_hdf5_values import assert_same, datasets_of, wanted_values

# What h5py does not read, against what the file's maker and names say; tests of their own: test_hdf5_values.py
EXPECTED = {
    "jhdf_test_byteshuffle_compressed_datasets_latest.hdf5": "h5py refuses the file, which its writer left open; its data are those of "
    "the same program's file that was closed",
    "jhdf_var-length-strings-reused.hdf5": "h5py refuses the texts, whose heap says too small a size; they are what the file's "
    "attributes say",
}


@dataclasses.dataclass
class Account:
    name: str
    same: int = 0  # datasets of which all elements are h5py's
    unknown: int = 0  # that h5py does not read
    refused: dict = dataclasses.field(default_factory=dict)  # name → why
    problems: tuple = ()


def check(array, dset, f, name):
    """false: h5py reads nothing to compare with."""
    wanted, found = wanted_values(f, dset), np.asarray(array[...])
    if wanted is not None:
        assert_same(found, wanted, name)
        return True
    try:
        values = np.asarray(dset[()])
    except (TypeError, OSError, RuntimeError, ValueError):
        return False
    assert plain(found, f) == plain(values, f), name
    return True


def account(path):
    a, group = Account(path.name), sq.open(path)
    a.problems = tuple(p.removeprefix(f"{path}: ") for p in group.problems)
    try:
        f = h5py.File(path)
    except OSError:
        return a
    with f, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, known_as in datasets_of(f):
            array = group[known_as]
            if array.unsupported:
                a.refused[known_as] = array.unsupported
            elif check(array, f[name], f, f"{path.name}: {name}"):
                a.same += 1
            else:
                a.unknown += 1
    return a
