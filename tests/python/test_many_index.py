"""The index of many files: what opens by it is what the files hold, whatever became of them or of it.

h5py writes them; what is found without an index is the oracle.
"""

import multiprocessing
import os
import pickle
import shutil
import subprocess
import time

import h5py
import numpy as np
import pytest
import squall

FILES = 20  # from 16 on an index is kept
SETTLING_S = 2.1  # a file that changed a moment ago may change again without its times telling


def write(path, number, *, steps=3, units="hours since 2020-01-01", scale=1.0):
    with h5py.File(path, "w") as f:
        f["time"] = np.arange(steps) + 100 * number
        f["time"].attrs["units"] = units
        f["lat"] = np.arange(4.0)
        for name in ("time", "lat"):
            f[name].make_scale(name)
        v = f.create_dataset("t", data=np.full((steps, 4), number * scale), chunks=(min(steps, 2), 4), compression="gzip")
        v.attrs["units"] = "K"
        for d, name in enumerate(("time", "lat")):
            v.dims[d].attach_scale(f[name])
        f["series"] = np.arange(steps, dtype="i4") + number
        f["series"].dims[0].attach_scale(f["time"])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for i in range(FILES):
        write(folder / f"{i:02}.h5", i, steps=3 + i % 3, units=f"hours since 2020-01-{1 + i:02}")
    time.sleep(SETTLING_S)
    return sorted(folder.iterdir())


@pytest.fixture
def files(written, tmp_path):
    """Copies, for tests that change them."""
    folder = tmp_path / "files"
    folder.mkdir()
    for path in written:
        shutil.copy2(path, folder / path.name)
    time.sleep(SETTLING_S)
    return sorted(folder.iterdir())


@pytest.fixture
def index(tmp_path):
    """The folder; in use as long as the test runs."""
    before = squall.set_options(cache_folder=tmp_path / "caches" / "squall")
    yield tmp_path / "caches" / "squall"
    squall.set_options(**before)


def indexes(folder):
    return sorted(folder.glob("*.index")) if folder.is_dir() else []


def opened(paths, *arguments, **keywords):
    """The dataset, and how many files were opened for it."""
    before = squall.handles().opened
    ds = squall.open_many(paths, *arguments, **keywords)
    return ds, squall.handles().opened - before


def contents(ds):
    return {name: (a.dims, a.chunks, dict(a.attrs), np.asarray(a[...]).tolist()) for name, a in ds.arrays.items()}


def without_index(paths, *arguments):
    before = squall.set_options(cache_folder="")
    try:
        return contents(squall.open_many(paths, *arguments))
    finally:
        squall.set_options(**before)


@pytest.mark.parametrize("concat_dim", ["time", None])
def test_files_that_are_known_are_not_opened_until_they_are_read(written, index, concat_dim):
    first, all_opened = opened(written, concat_dim)
    assert all_opened >= FILES and len(indexes(index)) == 1
    again, few = opened(written, concat_dim)
    assert few <= (4 if concat_dim else 8)  # the first (and the second, where the dimension is looked for)
    wanted = without_index(written, concat_dim)
    assert contents(again) == contents(first) == wanted and again["t"].shape == (sum(3 + i % 3 for i in range(FILES)), 4)
    assert again["time"].attrs["units"] == "hours since 2020-01-01"


def test_a_new_dimension_is_known_too(written, index):
    paths = written[::3] + written[1::3]  # of lengths 3 and 4: refused; of one length only the first
    with pytest.raises(squall.Error, match="has the shape"):
        squall.open_many(paths * 2, "member", drift="first")
    same = (written[::3] * 3)[:16]
    first, _ = opened(same, "member", drift="first", order="given")
    again, _ = opened(same, "member", drift="first", order="given")
    assert again["t"].shape == (16, 3, 4) and contents(first) == contents(again)


def test_files_may_be_added_left_out_and_put_in_another_order(written, index):
    squall.open_many(written[:18], "time")
    for paths in (written, written[:17], [written[0], *reversed(written[1:])]):
        ds, _ = opened(paths, "time")
        assert contents(ds) == without_index(paths, "time")
    _, few = opened(written, "time")
    assert few <= 4 and len(indexes(index)) == 1


@pytest.mark.parametrize("how", ["replaced", "rewritten in place", "another schema"])
def test_a_file_that_changed_is_read_anew(files, index, how):
    squall.open_many(files, "time")
    victim, state = files[7], files[7].stat()
    new = victim.with_name("new")
    if how == "another schema":
        with h5py.File(new, "w") as f:
            f["time"] = [700.0]
    else:
        write(new, 7, steps=4, units="hours since 2020-01-08", scale=-1.0)
    if how == "rewritten in place":
        victim.write_bytes(new.read_bytes())
        new.unlink()
        os.utime(victim, ns=(state.st_atime_ns, state.st_mtime_ns))  # as if nothing had been: its size may be the same, too
    else:
        os.replace(new, victim)
    if how == "another schema":
        with pytest.raises(squall.Error, match=r"07\.h5"):
            squall.open_many(files, "time")
        return
    ds, _ = opened(files, "time")
    assert -7 in ds["t"][:, 0] and contents(ds) == without_index(files, "time")


@pytest.mark.parametrize("how", ["replaced", "truncated", "deleted"])
def test_a_file_that_changes_before_it_is_read_is_told_by_name(files, index, how):
    squall.open_many(files, "time")
    ds, _ = opened(files, "time")
    if how == "replaced":
        write(files[7].with_name("new"), 7, steps=4)
        os.replace(files[7].with_name("new"), files[7])
    elif how == "truncated":
        os.truncate(files[7], 900)
    else:
        files[7].unlink()
    with pytest.raises(squall.Error, match=r"07\.h5 (changed|is gone) since it was opened"):
        ds["t"][...]
    assert (ds["t"][:3] == 0).all()


def test_the_first_file_decides_what_the_others_are_compared_with(files, index):
    squall.open_many(files, "time")
    with h5py.File(files[0], "r+") as f:
        f["t"].attrs["units"] = "degC"
    with pytest.raises(squall.Error, match="units of t is"):
        squall.open_many(files, "time")


def test_files_that_differ_are_told_of_each_time(files, index):
    with h5py.File(files[3], "r+") as f:
        f["t"].attrs["units"] = "degC"
    time.sleep(SETTLING_S)
    for _ in range(3):
        with pytest.raises(squall.Error, match=r"03\.h5: units of t"):
            squall.open_many(files, "time")
    with pytest.warns(UserWarning, match=r"03\.h5: units of t"):
        squall.open_many(files, "time", drift="warn")


def test_files_that_were_just_written_are_not_kept(tmp_path, index):
    for i in range(FILES):
        write(tmp_path / f"{i:02}.h5", i)
    squall.open_many(sorted(tmp_path.glob("*.h5")), "time")
    assert not indexes(index)


def test_a_damaged_index_is_ignored_and_written_anew(written, index):
    squall.open_many(written, "time")
    (path,) = indexes(index)
    whole, wanted = path.read_bytes(), without_index(written, "time")
    damaged = [whole[:n] for n in (0, 1, 15, 40, len(whole) // 2, len(whole) - 1)] + [whole + b"x", b"x" * len(whole)]
    damaged += [bytes([*whole[:at], whole[at] ^ 0xFF, *whole[at + 1 :]]) for at in range(0, len(whole), 97)]
    for content in damaged:
        path.write_bytes(content)
        ds, _ = opened(written, "time")
        assert ds["time"][...].tolist() == wanted["time"][3] and path.read_bytes() == whole
    assert contents(ds) == wanted


@pytest.mark.parametrize("where", ["/dev/null/squall", "/proc/squall", "a file"])
def test_without_a_folder_it_works(written, tmp_path, where):
    if where == "a file":
        (tmp_path / "file").write_text("")
        where = tmp_path / "file"
    before = squall.set_options(cache_folder=where)
    try:
        assert contents(squall.open_many(written, "time")) == without_index(written, "time")
    finally:
        squall.set_options(**before)


def test_old_indexes_make_room(written, index):
    index.mkdir(parents=True)
    for age in range(3):
        with open(index / f"{age:032x}.index", "wb") as f:
            f.truncate(100 << 20)
        os.utime(f.name, (1000 - age, 1000 - age))
    (index / "notes.txt").write_text("not ours")
    abandoned = index / f".{'0' * 32}.index.0-1-0-0.squall-tmp"
    abandoned.write_text("half of it")
    os.utime(abandoned, (1000, 1000))
    squall.open_many(written, "time")
    assert sorted(p.name for p in index.iterdir() if p.stat().st_size == 100 << 20) == [f"{age:032x}.index" for age in (0, 1)]
    assert len(indexes(index)) == 3 and (index / "notes.txt").exists() and not abandoned.exists()


def open_and_read(arguments):
    paths, folder = arguments
    squall.set_options(cache_folder=folder)
    return [float(np.asarray(squall.open_many(paths, "time")["t"][...]).sum()) for _ in range(10)]


def test_processes_share_an_index(written, index):
    wanted = float(np.sum(without_index(written, "time")["t"][3]))
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        for found in pool.map(open_and_read, [([os.fspath(p) for p in written], os.fspath(index))] * 4):
            assert found == [wanted] * 10
    assert len(list(index.iterdir())) == 1


def test_what_opens_by_an_index_pickles(written, index):
    squall.open_many(written, "time")
    ds, _ = opened(written, "time")
    again = pickle.loads(pickle.dumps(ds["t"]))
    assert np.array_equal(again[...], ds["t"][...])


@pytest.mark.parametrize(
    ("variables", "kept"),
    [
        ({"XDG_CACHE_HOME": "{}/caches"}, "caches/squall"),
        ({"HOME": "{}/home"}, "home/.cache/squall"),
        ({"HOME": "{}/home", "XDG_CACHE_HOME": "relative"}, "home/.cache/squall"),
        ({"XDG_CACHE_HOME": "{}/caches", "SQUALL_INDEX_CACHE": "0"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("by", ["command", "package"])
def test_where_indexes_are_kept(written, tmp_path, variables, kept, by):
    for folder in ("caches", "home"):
        (tmp_path / folder).mkdir()
    base = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME", "SQUALL_INDEX_CACHE")}
    env = base | {name: value.format(tmp_path) for name, value in variables.items()}
    if by == "package" and not variables:
        env["HOME"] = "relative"
    pattern = f"{written[0].parent}/*.h5"
    command = [os.environ.get("SQUALL", "build/squall"), "info", pattern, "--concat-dim", "time"]
    if by == "package":
        command = [os.sys.executable, "-c", f"import squall; squall.open_many({pattern!r}, 'time')"]
    subprocess.run(command, env=env, check=True, capture_output=True)
    found = [os.fspath(p.parent.relative_to(tmp_path)) for p in tmp_path.rglob("*.index")]
    assert found == ([kept] if kept else [])
