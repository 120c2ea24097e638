"""squall.open: the tree of groups and arrays, as zarr-python wrote it; and what is said where something is not there."""

import ast
import inspect
import json
import pathlib

import numpy as np
import pytest
import small_archive as archive
import squall
import zarr

TITLES = {"": "root", "a": "first", "a/b": "second"}


def make_tree(path, zarr_format, consolidated):
    root = zarr.open_group(path, mode="w", zarr_format=zarr_format, attributes={"title": "root"})
    for name in ("a", "a/b"):
        root.create_group(name, attributes={"title": TITLES[name]})
    for at, name in enumerate(("t", "a/t", "a/b/t", "a/b/u")):
        named = {"dimension_names": ("y", "x")} if zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": ["y", "x"]}}
        root.create_array(name, data=np.full((2, 3), at), **named).update_attributes({"units": "K"})
    if consolidated:
        zarr.consolidate_metadata(path)
    return path


@pytest.fixture(params=[(2, False), (2, True), (3, False), (3, True)], ids=["v2", "v2 consolidated", "v3", "v3 consolidated"])
def tree(request, tmp_path):
    return squall.open(make_tree(tmp_path / "t.zarr", *request.param))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_groups_are_mappings(tree):
    assert set(tree) == {"t", "a"} and len(tree) == 2 and set(tree["a/b"]) == {"t", "u"}
    assert list(tree.arrays) == ["t"] and list(tree.groups) == ["a"] and "t" in tree.arrays and "t" not in tree.groups
    assert "a/b/u" in tree and "a/c" not in tree and tree.get("nothing") is None
    assert tree["a"]["b"]["u"][0, 0] == tree["a/b/u"][1, 2] == 3
    assert dict(tree["a"].items())["t"][0, 0] == 1
    assert [tree[name].attrs["title"] if name else tree.attrs["title"] for name in TITLES] == list(TITLES.values())
    assert tree.dims == {"y": 2, "x": 3} and tree["t"].dims == ("y", "x") and dict(tree["t"].attrs) == {"units": "K"}
    assert (tree.name, tree["a/b"].name, tree["a/b/t"].name, tree["a/b/t"].basename) == ("", "a/b", "a/b/t", "t")
    assert tree["a"] == tree["a"] != tree["a/b"]
    assert tree.problems == ()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_names_that_are_not_there_are_told_with_those_that_are(tree):
    with pytest.raises(KeyError, match=r"no b in .*t\.zarr; there is t, a"):
        tree["b"]
    with pytest.raises(KeyError, match="no nothing in"):
        tree["a"]["nothing"]
    for name in ("", "/", "t/x"):
        with pytest.raises(KeyError):
            tree[name]
    with pytest.raises(TypeError, match="named by texts"):
        tree[0]


def test_a_group_without_metadata_is_one(tmp_path):
    zarr.create_array(tmp_path / "s.zarr" / "deep" / "t", data=np.arange(3), zarr_format=2)
    (tmp_path / "s.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
    found = squall.open(tmp_path / "s.zarr")
    assert list(found) == ["deep"] and list(found["deep/t"]) == [0, 1, 2] and not found["deep"].attrs


def test_a_group_whose_attributes_are_damaged_keeps_its_arrays(tmp_path):
    make_tree(tmp_path / "t.zarr", 2, False)
    (tmp_path / "t.zarr" / "a" / ".zattrs").write_text("{")
    found = squall.open(tmp_path / "t.zarr")
    assert found["a/t"][0, 0] == 1 and not found["a"].attrs and found["a/b"].attrs["title"] == "second"
    assert len(found.problems) == 1 and "a" in found.problems[0]


def test_attributes_keep_their_order_and_values(tmp_path):
    attributes = {"z": 1, "a": [1, 2.5, None, {"deep": True}], "ü": "text\n", "big": 2**53, "tiny": 5e-324}
    zarr.create_array(tmp_path / "a.zarr", data=np.arange(3), attributes=attributes)
    attrs = squall.open_array(tmp_path / "a.zarr").attrs
    assert list(attrs.items()) == list(attributes.items()) and attrs.asdict() == attributes and len(attrs) == 5
    with pytest.raises(PermissionError, match="cannot be changed") as caught:
        attrs["z"] = 2
    assert isinstance(caught.value, squall.Error)
    with pytest.raises(PermissionError, match="cannot be changed"):
        del attrs["z"]


def test_a_tree_shows_itself(tmp_path):
    root = zarr.open_group(tmp_path / "s.zarr", mode="w", attributes={"title": "A forecast", "history": "long " * 99})
    root.create_array("time", data=np.arange(4), dimension_names=("time",))
    root.create_array("lat2", data=np.ones((3, 2)), dimension_names=("y", "x"))
    t = root.create_array("t2m", shape=(400, 300, 200), dtype="f4", chunks=(1, 300, 200), dimension_names=("time", "y", "x"))
    t.attrs.update({"units": "K", "coordinates": "lat2"})
    root.create_group("more")
    found = squall.open(tmp_path / "s.zarr")
    lines = repr(found).splitlines()
    assert lines[0] == f"<squall.Group> {tmp_path / 's.zarr'} (zarr v3)"
    for line in (
        "  * time  (time) int64 32B chunks (4,)",
        "    lat2  (y, x) float64 48B chunks (3, 2)",
        "    t2m   (time, y, x) float32 96MB chunks (1, 300, 200)",
        "Groups: more",
        "    title:    A forecast",
    ):
        assert line in lines
    assert lines.index("Coordinates:") < lines.index("Data variables:") and max(map(len, lines)) <= 100 + len(str(tmp_path))
    shown = repr(found["t2m"]).splitlines()
    assert shown[0] == "<squall.Array 't2m' (time: 400, y: 300, x: 200)> float32 96MB" and shown[1] == "Chunks: (1, 300, 200)"
    assert "    units:        K" in shown
    assert str(found["t2m"]) == "<squall.Array 't2m' (time: 400, y: 300, x: 200) float32 96MB>"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_path_that_is_an_array_opens_as_one(tmp_path):
    make_tree(tmp_path / "t.zarr", 3, True)
    assert squall.open_array(tmp_path / "t.zarr" / "a" / "t")[0, 0] == 1
    assert isinstance(squall.open(str(tmp_path / "t.zarr" / "t") + "/"), squall.Array)
    with pytest.raises(ValueError, match=r"is a group, not an array: squall.open\('.*t.zarr'\)\['t'\]") as caught:
        squall.open_array(tmp_path / "t.zarr")
    assert isinstance(caught.value, squall.Error) and caught.value.status is squall.Status.EINVAL


def test_grib_files_and_folders_are_trees(tmp_path, request):
    command = request.getfixturevalue("squall")
    folder = archive.make(tmp_path / "in", 2)
    found = squall.open(folder)
    assert found.format == "grib" and "latitude" in found.dims or "y" in found.dims
    command("convert", "-q", folder, tmp_path / "out.zarr", "--dtype", "float32")
    store, compared = squall.open(tmp_path / "out.zarr"), 0
    for name, array in found.arrays.items():
        if array.dtype == "f4" and name in store and store[name].shape == array.shape:
            np.testing.assert_array_equal(array[...], store[name][...])
            compared += 1
    assert compared >= 2


def test_what_is_not_there_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing.zarr: no such file or folder") as caught:
        squall.open(tmp_path / "nothing.zarr")
    error = caught.value
    assert isinstance(error, squall.Error) and error.status is squall.Status.ENOTFOUND and error.path == str(tmp_path / "nothing.zarr")
    (tmp_path / "text").write_text("hello, world")
    with pytest.raises(squall.Error, match="neither a Zarr store nor an HDF5, NetCDF-3 or GRIB file") as caught:
        squall.open(tmp_path / "text")
    assert caught.value.status is squall.Status.EUNSUPPORTED
    with pytest.raises(FileNotFoundError):
        squall.open("")
    with pytest.raises(TypeError):
        squall.open(7)
    with pytest.raises(ValueError, match="embedded null"):
        squall.open("a\0b")
    with pytest.raises(ValueError, match="mode 'w'"):
        squall.open_array(tmp_path, mode="w")


def test_a_damaged_chunk_is_told_with_array_and_file(tmp_path):
    zarr.create_array(tmp_path / "a.zarr", data=np.arange(100), chunks=(10,))
    chunk = tmp_path / "a.zarr" / "c" / "3"
    chunk.write_bytes(chunk.read_bytes()[:-5])
    a = squall.open_array(tmp_path / "a.zarr")
    assert a[29] == 29
    with pytest.raises(squall.Error, match=r"array a\.zarr, chunk 3: .*c/3") as caught:
        a[...]
    assert caught.value.status is squall.Status.ECORRUPT and caught.value.path == str(tmp_path / "a.zarr")


def test_what_cannot_be_read_is_shown_and_refused(tmp_path):
    zarr.create_array(tmp_path / "a.zarr", data=np.arange(3))
    document = json.loads((tmp_path / "a.zarr" / "zarr.json").read_text())
    document["codecs"] = [{"name": "pcodec", "configuration": {}}]
    (tmp_path / "a.zarr" / "zarr.json").write_text(json.dumps(document))
    a = squall.open_array(tmp_path / "a.zarr")
    assert "pcodec" in a.unsupported and "Cannot be read: " in repr(a) and a.shape == (3,)
    with pytest.raises(squall.Error, match="pcodec") as caught:
        a[0]
    assert caught.value.status is squall.Status.EUNSUPPORTED and isinstance(caught.value, NotImplementedError)


def test_an_error_survives_pickling(tmp_path):
    import pickle

    with pytest.raises(squall.Error) as caught:
        squall.open(tmp_path / "nothing")
    back = pickle.loads(pickle.dumps(caught.value))
    assert (type(back), str(back), back.status, back.path) == (
        type(caught.value),
        str(caught.value),
        squall.Status.ENOTFOUND,
        str(tmp_path / "nothing"),
    )


def test_the_stub_tells_what_there_is():
    """Public names, and public members of the classes, are the same in the stubs and in the package."""

    def nodes(name):
        stub = ast.parse((pathlib.Path(squall.__file__).parent / name).read_text())
        return {node.name: node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}

    def methods(node):
        return {n.name for n in node.body if isinstance(n, ast.FunctionDef)}

    public, private = nodes("__init__.pyi"), nodes("_squall.pyi")
    told = {name: node for name, node in public.items() if name[0] != "_"}
    assert set(told) == set(squall.__all__)
    for name in ("Array", "Group", "Attributes"):
        members = methods(told[name]) | (methods(private[name]) if name == "Array" else set())
        assert name != "Array" or not (methods(told[name]) & methods(private[name]))
        found = {member for base in getattr(squall, name).__mro__[:2] for member in vars(base)}
        assert {m for m in members if not hasattr(getattr(squall, name), m)} == set()
        inherited = {"get", "items", "keys", "values", "update", "clear", "pop", "popitem", "setdefault"}
        assert {m for m in found if m[0] != "_"} - members - inherited == set()
    names = (
        "open",
        "open_array",
        "create_array",
        "create_group",
        "convert",
        "status",
        "verify",
        "handles",
        "set_options",
        "show_versions",
        "store",
    )
    for name in names:
        arguments = told[name].args
        wanted = {a.arg for a in arguments.args + arguments.kwonlyargs}
        if arguments.kwarg:  # **how: Unpack[_Options]
            options = public[arguments.kwarg.annotation.slice.id]
            wanted |= {node.target.id for node in options.body}
        runtime = set(inspect.signature(getattr(squall, name)).parameters)
        assert wanted == runtime or runtime == {"path", "mode", "options"}
        assert getattr(squall, name).__doc__


def test_what_was_opened_is_a_context_manager(tmp_path):
    squall.create_array(tmp_path / "s.zarr", "a", data=np.arange(3))
    with squall.open(tmp_path / "s.zarr") as ds, ds["a"] as a, squall.open_array(tmp_path / "s.zarr/a", mode="r+") as b:
        b[0] = 7
        assert a[...].tolist() == [7, 1, 2]
    ds.close(), a.close()
    assert ds["a"][1:].tolist() == [1, 2] and a[0] == 7
    with pytest.raises(RuntimeError, match="stop"), ds:
        raise RuntimeError("stop")
