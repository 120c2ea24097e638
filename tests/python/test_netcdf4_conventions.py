"""NetCDF-4's conventions against netCDF4-python: which variables there are, on which dimensions, with which attributes and values."""

import h5py
import netCDF4
import numpy as np
import squall
from hypothesis import given, settings
from hypothesis import strategies as st

# ---- what is in a file -------------------------------------------------------------------------------------------------------------


def seen_by_netcdf4(path):
    """path in the file → (dimensions, shape, names of attributes, values), of a group the names of its attributes."""
    seen = {}

    def walk(group, prefix):
        seen[prefix] = group.ncattrs()
        for name, variable in group.variables.items():
            variable.set_auto_maskandscale(False)
            variable.set_auto_chartostring(False)
            seen[prefix + name] = variable.dimensions, variable.shape, variable.ncattrs(), np.asarray(variable[...])
        for name, child in group.groups.items():
            walk(child, f"{prefix}{name}/")

    with netCDF4.Dataset(path) as file:
        walk(file, "/")
    return seen


def value_of(file, name, shape):
    """By h5py where the dataset is shorter, else None: netCDF-C mixes values up where it has to fill along any dimension but the first."""
    group, _, last = name.rpartition("/")
    hidden = f"{group}/_nc4_non_coord_{last}"
    dataset = file[hidden if hidden in file else name]
    if dataset.shape == shape:
        return None
    values = np.full(shape, dataset.fillvalue)
    values[tuple(slice(0, n) for n in dataset.shape)] = dataset[...]
    return values


def seen_by_squall(path):
    seen = {}

    def walk(group, prefix):
        seen[prefix] = list(group.attrs)
        for name in group:
            item = group[name]
            if isinstance(item, squall.Array):
                seen[prefix + name] = item.dims, item.shape, list(item.attrs), item[...]
            else:
                walk(item, f"{prefix}{name}/")

    walk(squall.open(path), "/")
    return seen


def check_same(path, expected=None):
    theirs, ours = seen_by_netcdf4(path) | (expected or {}), seen_by_squall(path)
    assert set(ours) == set(theirs)
    with h5py.File(path) as file:
        for name, seen in theirs.items():
            if isinstance(seen, list):
                assert ours[name] == seen, name
                continue
            assert ours[name][:3] == seen[:3], name
            extended = value_of(file, name, seen[1])
            np.testing.assert_array_equal(ours[name][3], seen[3] if extended is None else extended, err_msg=name)


# ---- other people's files ----------------------------------------------------------------------------------------------------------

# Where netCDF-C is not right: two groups give out the same dimension number, so that it takes three of five values …
CLASHING = ["/x", "/root_var"]
# … and of several hard links to a dimension it takes one for all.
LINKED = {"/lat": "lat", "/time": "time", "/lat_soft": "lat_soft", "/time_soft": "time_soft"}


def other_peoples(shared):
    return sorted((shared / "data" / "hdf5").glob("*.nc"))


def test_other_peoples_files(shared):
    files = [f for f in other_peoples(shared) if f.name not in ("ncrust_nc4_groups.nc", "kerchunk_air_linked.nc")]
    assert len(files) > 15
    for path in files:
        check_same(path)


def test_clashing_numbers_of_dimensions(shared):
    path = shared / "data" / "hdf5" / "ncrust_nc4_groups.nc"
    with h5py.File(path) as f:
        expected = {name: (("x",), (5,), [], f[name][...]) for name in CLASHING}
    check_same(path, expected)


def test_dimensions_that_several_links_lead_to(shared):
    path = shared / "data" / "hdf5" / "kerchunk_air_linked.nc"
    theirs, ours = seen_by_netcdf4(path), seen_by_squall(path)
    assert set(ours) == set(theirs)
    assert {name: ours[name][0] for name in LINKED} == {name: (dim,) for name, dim in LINKED.items()}
    assert ours["/air"][0] == ("time", "lat", "lon")


# ---- files that netCDF4 makes ------------------------------------------------------------------------------------------------------

CLASSIC_TYPES = ["i1", "i2", "i4", "f4", "f8"]
TYPES = [*CLASSIC_TYPES, "i8", "u1", "u2", "u4", "u8"]


def fill_group(rng, group, inherited, depth):
    """Dimensions, fixed and unlimited, some with variables of their own; variables on them and on those of the groups above."""
    dims = dict(inherited)
    for n in range(rng.randint(0, 3)):
        name = rng.choice(["x", "y", "time", "level", "station"]) + rng.choice(["", str(n)])
        if name not in group.dimensions:
            group.createDimension(name, None if rng.random() < 0.35 else rng.randint(1, 6))
            dims[name] = group.dimensions[name]
    for name in list(group.dimensions):
        if rng.random() < 0.5:
            make_variable(rng, group, name, (name,), dims)
        elif rng.random() < 0.4:  # named like a dimension, but on others, or on it and others
            others = rng.sample(sorted(dims), rng.randint(0, min(2, len(dims))))
            make_variable(rng, group, name, (name, *others) if rng.random() < 0.5 and name not in others else tuple(others), dims)
    for n in range(rng.randint(0, 4)):
        make_variable(rng, group, f"v{n}", tuple(rng.choices(sorted(dims), k=rng.randint(0, 3))) if dims else (), dims)
    for n in range(rng.randint(0, 10)):
        group.setncattr(f"a{n}", n)
    for n in range(rng.randint(0, 2) if depth < 3 else 0):
        fill_group(rng, group.createGroup(f"g{n}"), dims, depth + 1)


def make_variable(rng, group, name, on, dims):
    if name in group.variables:
        return
    dtype = rng.choice(CLASSIC_TYPES if group.data_model == "NETCDF4_CLASSIC" else TYPES)
    fill = rng.choice([None, 7])
    chunks = [rng.randint(1, 4) for _ in on] if on and rng.random() < 0.5 and all(dims[d].isunlimited() for d in on) else None
    variable = group.createVariable(name, dtype, on, fill_value=fill, zlib=bool(on) and rng.random() < 0.3, chunksizes=chunks)
    for n in range(rng.randint(0, 10)):
        variable.setncattr(f"a{n}", str(n))
    shape = [rng.randint(0, 7) if dims[d].isunlimited() else len(dims[d]) for d in on]
    if all(shape) and rng.random() < 0.9:
        values = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
        variable[tuple(slice(0, s) for s in shape)] = values


@settings(max_examples=150)
@given(st.randoms(use_true_random=False))
def test_files_of_netcdf4(tmp_path_factory, rng):
    path = tmp_path_factory.getbasetemp() / "drawn.nc"
    with netCDF4.Dataset(path, "w", format=rng.choice(["NETCDF4", "NETCDF4", "NETCDF4_CLASSIC"])) as file:
        if file.data_model == "NETCDF4":
            fill_group(rng, file, {}, 0)
        else:
            file.createDimension("time", None)
            file.createDimension("x", 5)
            for name, on in [("time", ("time",)), ("v", ("time", "x")), ("w", ("x",))]:
                make_variable(rng, file, name, on, file.dimensions)
    check_same(path)


def test_a_variable_named_like_a_dimension_that_it_does_not_lie_on(tmp_path):
    path = tmp_path / "x.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createDimension("y", 4)
        file.createVariable("x", "i4", ("y",))[:] = np.arange(4)
        file.createVariable("y", "i4", ("y", "x"))[:] = np.arange(12).reshape(4, 3)
        file.createVariable("v", "i4", ("x", "y"))[:] = np.arange(12).reshape(3, 4)
    with h5py.File(path) as f:
        assert set(f) == {"x", "y", "v", "_nc4_non_coord_x"}
    check_same(path)


def test_renamed_dimensions_and_variables(tmp_path):
    path = tmp_path / "x.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createDimension("y", 4)
        file.createVariable("x", "i4", ("x",))[:] = np.arange(3)
        file.createVariable("v", "f4", ("y", "x"))[:] = np.ones((4, 3))
    with netCDF4.Dataset(path, "a") as file:
        file.renameDimension("y", "lat")
        file.renameVariable("v", "w")
        file.renameDimension("x", "lon")
        file.renameVariable("x", "lon")
    check_same(path)


def test_variables_that_are_shorter_than_their_dimension(tmp_path):
    """… end with fill values, in chunks and beyond them."""
    path = tmp_path / "x.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createVariable("long", "i2", ("time",), chunksizes=(4,))[:] = np.arange(11)
        for n, written in enumerate([0, 1, 2, 3, 4, 7, 8, 10]):
            v = file.createVariable(f"v{n}", "f4", ("time", "x"), fill_value=-1 if n % 2 else None, chunksizes=(4, 2), zlib=n > 3)
            v[:written] = np.arange(3 * written).reshape(written, 3)
    check_same(path)
    array = squall.open(path)["v5"]
    assert array.shape == (11, 3)
    np.testing.assert_array_equal(array[6:, 1], [19, -1, -1, -1, -1])
    np.testing.assert_array_equal(array[::-5, 2], [-1, 17, 2])


def test_an_unlimited_dimension_of_a_group_above(tmp_path):
    path = tmp_path / "x.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createVariable("t", "f8", ("time",))[:] = np.arange(2)
        inner = file.createGroup("a").createGroup("b")
        inner.createVariable("v", "i4", ("time",))[:] = np.arange(5)
    check_same(path)


# ---- files that h5py makes ---------------------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(st.randoms(use_true_random=False))
def test_dimensions_without_names(tmp_path_factory, rng):
    """phony_dim_N, with the numbers that netCDF-C gives."""
    path = tmp_path_factory.getbasetemp() / "drawn.h5"

    def fill(group, depth):
        for n in range(rng.randint(0, 5)):
            shape = tuple(rng.randint(1, 4) for _ in range(rng.randint(0, 4)))
            grows = tuple(None if rng.random() < 0.3 else s for s in shape)
            dataset = group.create_dataset(f"d{rng.randint(0, 99)}_{n}", shape, "i2", maxshape=grows if shape else None)
            if len(shape) == 1 and rng.random() < 0.3:
                dataset.make_scale()
        for n in range(rng.randint(0, 2) if depth < 3 else 0):
            fill(group.create_group(f"g{rng.randint(0, 99)}_{n}"), depth + 1)

    with h5py.File(path, "w", track_order=rng.random() < 0.5) as f:
        fill(f, 0)
    check_same(path)


def test_scales_of_all_kinds(tmp_path):
    """Two on one dimension (the last one counts), in another group, on some dimensions only, of two dimensions."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as f:
        for name, length in [("a", 3), ("b", 3), ("elsewhere/c", 4)]:
            f[name] = np.arange(length)
            f[name].make_scale(name)
        f["two"], f["far"], f["some"], f["flat"] = np.zeros(3), np.zeros((4, 3)), np.zeros((3, 3)), np.zeros((3, 4))
        f["two"].dims[0].attach_scale(f["a"])
        f["two"].dims[0].attach_scale(f["b"])
        f["far"].dims[0].attach_scale(f["elsewhere/c"])
        f["far"].dims[1].attach_scale(f["a"])
        f["some"].dims[1].attach_scale(f["a"])
        f["flat"].make_scale("flat")
        f["flat"].attrs["note"] = 1
    file = squall.open(path)
    assert {name: file[name].dims for name in file if name != "elsewhere"} == {
        "a": ("a",),
        "b": ("b",),
        "two": ("b",),
        "far": ("c", "a"),
        "some": ("b", "a"),
        "flat": ("flat", "phony_dim_4"),
    }
    assert list(file["flat"].attrs) == ["note"]


def test_more_elements_than_there_can_be(tmp_path):
    """An unlimited dimension of 2^40 twice: the variable stays as long as its dataset."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("t", (1 << 40,), "i1", maxshape=(None,)).make_scale()
        for name, rank in [("v", 1), ("w", 2)]:
            f.create_dataset(name, (2,) * rank, "i2", maxshape=(None,) * rank)
            for dim in f[name].dims:
                dim.attach_scale(f["t"])
    file = squall.open(path)
    assert (file["v"].shape, file["w"].shape) == ((1 << 40,), (2, 2))
    assert file["w"].dims == ("t", "t")
    assert file["v"][(1 << 39) :: 1 << 38].tolist() == [0, 0]


def test_attributes_that_are_no_bookkeeping(tmp_path):
    """CLASS and NAME of what is no dimension are the user's own."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as f:
        f["image"] = np.zeros((2, 2))
        f["image"].attrs.update({"CLASS": np.bytes_("IMAGE"), "NAME": "mine"})
        f["x"] = np.arange(2)
        f["x"].make_scale("x")
        f.attrs.update({"CLASS": "GROUP", "_NCProperties": "version=2"})
    file = squall.open(path)
    assert sorted(file["image"].attrs) == ["CLASS", "NAME"]
    assert list(file["x"].attrs) == []
    assert list(file.attrs) == ["CLASS"]


def list_of(*sequences):
    made = np.empty(len(sequences), "O")
    for n, sequence in enumerate(sequences):
        made[n] = sequence
    return made


def test_bookkeeping_that_makes_no_sense(tmp_path):
    """Lists of dimensions of another type, too short, of references to nothing; numbers of dimensions that there are not."""
    path = tmp_path / "x.h5"
    references = h5py.special_dtype(vlen=h5py.ref_dtype)
    with h5py.File(path, "w") as f:
        for name in ["a", "x"]:
            f[name] = np.arange(3)
            f[name].make_scale()
        for name in ["number", "short", "nothing", "empty", "ids", "region", "text"]:
            f[name] = np.zeros((3, 2))
        f["number"].attrs["DIMENSION_LIST"] = [1, 2]
        to_x, to_nothing = (np.array([r], h5py.ref_dtype) for r in (f["x"].ref, h5py.Reference()))
        f["short"].attrs.create("DIMENSION_LIST", list_of(to_x), (1,), references)
        f["nothing"].attrs.create("DIMENSION_LIST", list_of(to_nothing, to_nothing), (2,), references)
        f["empty"].attrs["DIMENSION_LIST"] = h5py.Empty("f4")
        f["ids"].attrs["_Netcdf4Coordinates"] = np.array([1, 99], "i4")
        f["region"].attrs["DIMENSION_LIST"] = f["x"].regionref[:2]
        f["text"].attrs["_Netcdf4Dimid"] = "seven"
    file = squall.open(path)
    for name in ["number", "nothing", "empty", "region", "text"]:
        assert file[name].dims == ("a", "phony_dim_2"), name
    for name in ["short", "ids"]:
        assert file[name].dims == ("x", "phony_dim_2"), name
    assert file["region"].shape == (3, 2)
