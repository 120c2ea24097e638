"""`squall convert --schema grow` for steps, levels and members of variables that the store has.

The oracles are a store that had all at once, and files that nobody may touch.
"""

import json
import os
import random
import shutil
import subprocess

import eccodes as ec
import numpy as np
import pytest
import small_archive as archive
import squall as package
import xarray as xr

EVERY = ["--every", "6h"]
GROW = [*EVERY, "--schema", "grow"]


def of_member(field, number):
    h = ec.codes_new_from_message(field)
    ec.codes_set(h, "productDefinitionTemplateNumber", 1)
    ec.codes_set(h, "numberOfForecastsInEnsemble", 9)
    ec.codes_set(h, "perturbationNumber", number)
    values = ec.codes_get_values(h)
    ec.codes_set_values(h, values + number)
    message = ec.codes_get_message(h)
    ec.codes_release(h)
    return message


def fields(n, steps=(0, 1, 2), levels=(50, 80), members=(3, 5)):
    """t without a dimension of its own, u on levels, r of members."""
    made = [archive.field("t", archive.init(n), step) for step in steps]
    made += [archive.field("u", archive.init(n), step, level=level) for step in steps for level in levels]
    return made + [of_member(archive.field("r", archive.init(n), step), m) for step in steps for m in members]


def write(folder, n, part="", **what):
    archive.write(archive.path_of(folder, n, part), fields(n, **what))


def values(store):
    with xr.open_zarr(store) as ds:
        return ds.load()


def chunks(store):
    """Of every data chunk what changes where it is written again."""
    stats = {p: p.stat() for name in ("t2m", "u", "r2") for p in (store / name / "c").rglob("*") if p.is_file()}
    return {p: (s.st_ino, s.st_mtime_ns, s.st_size, p.read_bytes()) for p, s in stats.items()}


def same(grown, whole):
    """But for the order of levels and members, and what the options are."""
    assert set(grown.variables) == set(whole.variables) and dict(grown.sizes) == dict(whole.sizes)
    whole = whole.sel(heightAboveGround=grown.heightAboveGround, number=grown.number)
    for name in whole.variables:
        xr.testing.assert_identical(grown[name], whole[name])


@pytest.fixture
def source(tmp_path):
    for n in range(2):
        write(tmp_path / "in", n)
    return tmp_path / "in"


MORE = {
    "step": {"steps": (0, 1, 2, 3, 6)},
    "level": {"levels": (40, 50, 80, 120)},
    "member": {"members": (1, 3, 5, 7)},
    "all": {"steps": (0, 1, 2, 3), "levels": (40, 50, 80), "members": (0, 3, 5)},
}
LAYOUTS = {
    "default": [],
    "cut": ["--chunks", "step=2"],
    "together": ["--chunks", "init_time=2,step=all,level=all,number=all"],
    "one": ["--chunks", "step=1,latitude=6"],
    "shards": ["--chunks", "step=1,level=1", "--shards", "init_time=2,step=2,level=all,number=all"],
    "halves": ["--dtype", "float16", "--chunks", "level=2,number=2,init_time=2"],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("more", MORE)
def test_a_dimension_grows_at_its_end(squall, source, tmp_path, more, layout):
    """What is stored keeps its files; runs with the option, without it, and late ones agree with a store that had all at once."""
    grown, whole, how = tmp_path / "grown.zarr", tmp_path / "whole.zarr", LAYOUTS[layout]
    squall("convert", source, grown, *EVERY, *how)
    before, first = chunks(grown), values(grown)
    write(source, 2, **MORE[more])
    done = squall("convert", source, grown, *GROW, *how, "-v")
    assert "new in the store: " in done.err and done.code == 0
    alone = {p: told for p, told in before.items() if f"/c/{1 if 'init_time=2' in str(how) else 2}/" not in str(p)}
    now = chunks(grown)
    assert alone and {p: now[p] for p in alone} == alone
    squall("convert", source, whole, *EVERY, *how)
    same(values(grown), values(whole))
    xr.testing.assert_identical(
        values(grown).isel(init_time=slice(2), step=slice(3), heightAboveGround=slice(2), number=slice(2)).t2m, first.t2m
    )
    write(source, 3, **MORE[more])
    write(source, 0, "late", **MORE[more])
    for store in (grown, whole):
        assert squall("convert", source, store, *EVERY, *how, check=False).code == 0
        assert squall("verify", store).code == 0
        assert squall("convert", source, store, *EVERY, *how).out.split(": ")[1].startswith("nothing new")
    same(values(grown), values(whole))


def test_no_more_is_expected_of_runs_before(squall, source, tmp_path):
    """Where most runs have more, those before are as whole as they were; one that lacks what was usual then is not."""
    store = tmp_path / "s.zarr"
    write(source, 2, members=(3,))
    squall("convert", source, store, *EVERY)
    for n in range(3, 9):
        write(source, n, **MORE["all"])
    report = json.loads(squall("convert", source, store, *GROW, "--json").out)
    counts = [len(fields(n, **(MORE["all"] if n > 2 else {"members": (3,)} if n == 2 else {}))) for n in range(9)]
    assert values(store).field_count.values.tolist() == counts
    status = json.loads(squall("status", "--json", store).out)
    assert [run["state"] for run in status["runs"]] == ["complete"] * 2 + ["partial"] + ["complete"] * 6
    assert report["partial"] == [{"init_time": "2024-02-28T12:00", "fields": counts[2]}]
    assert status["usual_field_count"] == report["usual_field_count"] == counts[8]
    assert status["grown"] == [{"init_time": "2024-02-28T18:00", "usual_field_count": counts[8]}]
    assert {v["name"]: v["expected"] - v["stored"] for v in status["variables"]} == {"t2m": 0, "u": 0, "r2": 3}
    assert f"usually {counts[8]} fields each, {counts[0]} before 2024-02-28T18:00" in squall("status", store).out


def test_what_cannot_join_is_named_with_what_to_do(squall, source, tmp_path):
    """Steps between those of the store; levels of variables that have one."""
    store, one = tmp_path / "s.zarr", tmp_path / "one"
    squall("convert", source, store, *EVERY)
    write(source, 2, steps=(0, 1, 2, 6))
    squall("convert", source, store, *GROW)
    write(source, 3, steps=(0, 4, 6))
    done = squall("convert", source, store, *GROW, check=False)
    assert done.code == 3 and "takes others behind its last one only; convert into another store" in done.err
    assert (values(store).step / np.timedelta64(1, "h")).values.tolist() == [0, 1, 2, 6]
    assert squall("convert", source, store, *GROW).code == 0  # it is known
    write(one, 0, levels=(50,))
    squall("convert", one, tmp_path / "one.zarr", *EVERY)
    write(one, 1, levels=(50, 80), steps=(0, 1, 2, 3))
    done = squall("convert", one, tmp_path / "one.zarr", *GROW, check=False)
    assert done.code == 3 and "with one alone, so without a dimension of them; convert into another store" in done.err
    now = values(tmp_path / "one.zarr")
    assert (
        now.u.dims == ("init_time", "step", "latitude", "longitude") and now.sizes["step"] == 4 and now.u.attrs["heightAboveGround"] == 50
    )


def test_members_come_with_the_first_variable_that_has_them(squall, tmp_path):
    source, grown, whole = tmp_path / "in", tmp_path / "grown.zarr", tmp_path / "whole.zarr"
    write(source, 0, members=())
    squall("convert", source, grown, *EVERY)
    assert "number" not in values(grown).variables
    write(source, 1)
    squall("convert", source, grown, *GROW)
    squall("convert", source, whole, *EVERY)
    same(values(grown), values(whole))


def test_one_member_is_not_another(squall, tmp_path):
    """A store of one member has no dimension for more: what others hold is named, and nothing of it is taken for that one's."""
    source, store = tmp_path / "in", tmp_path / "s.zarr"
    write(source, 0, members=(3,))
    squall("convert", source, store, *EVERY)
    first = values(store)
    write(source, 0, "b", members=(4,))
    for schema in ("ignore", "grow"):
        done = squall("convert", source, store, *EVERY, "--schema", schema, check=False)
        assert "the store was made without these members" in done.err or done.code == 0
        xr.testing.assert_identical(values(store).r2, first.r2)
        assert values(store).r2.attrs["number"] == 3


def test_a_stack_grows_by_no_step(squall, source, tmp_path):
    stack = [*EVERY, "--stack", "variable"]
    squall("convert", source, tmp_path / "s.zarr", *stack, check=False)
    write(source, 2, steps=(0, 1, 2, 3))
    done = squall("convert", source, tmp_path / "s.zarr", *stack, "--schema", "grow", check=False)
    assert done.code == 4 and "a stack cannot grow" in done.err and "another store" in done.err


def test_it_grows_more_than_once_and_with_new_variables(squall, source, tmp_path):
    """Each time by something else; a new variable has chunks of what is there when it comes."""
    grown, whole, how = tmp_path / "grown.zarr", tmp_path / "whole.zarr", ["--chunks", "init_time=2,level=all,number=all"]
    squall("convert", source, grown, *EVERY, *how)
    write(source, 2, steps=(0, 1, 2, 3))
    squall("convert", source, grown, *GROW, *how)
    archive.write(archive.path_of(source, 3), fields(3, levels=(30, 50, 80)) + [archive.field("prmsl", archive.init(3), s) for s in (0, 9)])
    squall("convert", source, grown, *GROW, *how)
    write(source, 4, members=(2, 3, 5), steps=(0, 1, 2, 3, 12))
    squall("convert", source, grown, *GROW, *how)
    write(source, 5, levels=(50, 60, 80), members=(1, 3, 5))
    squall("convert", source, grown, *GROW, *how)
    now = values(grown)
    assert now.heightAboveGround.values.tolist() == [50, 80, 30, 60] and now.number.values.tolist() == [3, 5, 2, 1]
    assert [now[name].encoding["chunks"] for name in ("step", "heightAboveGround", "number")] == [(3,), (2,), (2,)]
    assert now.u.encoding["chunks"] == (2, 3, 2, 12, 20) and now.prmsl.encoding["chunks"] == (2, 5, 12, 20)
    squall("convert", source, whole, *EVERY, *how)
    same(now, values(whole))
    os.utime(archive.path_of(source, 1))  # a redo that carries nothing, and one that carries all
    archive.path_of(source, 0).unlink()
    squall("convert", source, grown, *EVERY, *how)
    same(values(grown), values(whole))
    assert squall("verify", grown).code == 0


def test_a_lost_chunk_of_before_is_no_fill(squall, source, tmp_path):
    """By whatever numbers the records have it."""
    store = tmp_path / "s.zarr"
    squall("convert", source, store, *EVERY)
    write(source, 2, **MORE["all"])
    squall("convert", source, store, *GROW)
    with package.open(store) as ds:
        assert np.isnan(ds["u"][0, 3]).all() and np.isnan(ds["u"][0, 0, 2]).all()
    (store / "u" / "c" / "1" / "0" / "1" / "0" / "0").unlink()
    with package.open(store) as ds, pytest.raises(package.Error, match="lost"):
        ds["u"][1, 0, 1]
    assert squall("verify", store, check=False).code == 5
    squall("convert", source, store, *EVERY)
    assert squall("verify", store).code == 0


@pytest.mark.parametrize("order", [("1/2", "2/2"), ("2/2", "1/2")])
@pytest.mark.parametrize("more", ["all", "step"])
def test_parts_grow_and_earlier_runs_join(squall, source, tmp_path, order, more):
    parts, earlier = tmp_path / "parts.zarr", tmp_path / "earlier.zarr"
    for store in (parts, earlier):
        squall("convert", source, store, *EVERY)
    for n in (2, 3):
        write(source, n, **MORE[more])
    left = [json.loads(squall("convert", source, parts, *GROW, "--part", part, "--json").out)["units"] for part in order]
    assert [units["left_by_other_parts"] for units in left] == [1, 0]  # by records that are older than what has grown, too
    squall("convert", source, tmp_path / "whole.zarr", *EVERY)
    same(values(parts), values(tmp_path / "whole.zarr"))
    write(source, -1, **MORE[more])
    squall("convert", source, earlier, *GROW, "--prepend")
    squall("convert", source, tmp_path / "all.zarr", *EVERY)
    same(values(earlier), values(tmp_path / "all.zarr"))
    assert squall("verify", earlier).code == 0 and squall("verify", parts).code == 0


@pytest.mark.parametrize("stride", [61, pytest.param(1, marks=pytest.mark.long)])
def test_readers_find_it_as_it_was_or_as_it_is_to_be(squall, source, tmp_path, support, stride):
    """Killed at any call that changes the file system. Each run that has its flag has its values, at the coordinates that there are."""
    made, store, count = tmp_path / "made.zarr", tmp_path / "s.zarr", tmp_path / "count"
    squall("convert", source, made, *EVERY)
    write(source, 2, **MORE["all"])
    write(source, 0, "late", levels=(40,), steps=(3,))

    def run(**environment):
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(made, store)
        environment = os.environ | {"LD_PRELOAD": str(support / "fail_io.so")} | environment
        return subprocess.run([support.parents[1] / "squall", "convert", source, store, *GROW], env=environment, capture_output=True)

    run(SQUALL_FAULT_COUNT=str(count))
    before, whole, calls, seen = values(made), values(store), int(count.read_text()), set()
    for n in range(1 + stride // 2, calls + 1, stride):
        assert run(SQUALL_FAULT=f"{n}:kill").returncode in (-9, 0)
        now = values(store)
        seen.add(tuple(now.sizes.values()))
        assert len(seen) <= 2 and set(now.variables) == set(whole.variables)
        for name in ("init_time", "step", "heightAboveGround", "number", "valid_time"):
            assert np.array_equal(now[name], box(whole[name], now)), (n, name)
        for k in np.flatnonzero(now.chunk_exists):
            for name in ("t2m", "u", "r2"):
                found = now[name][k]
                old = k < 2 and found.count() == before[name][k].count() and np.array_equal(box(found, before), before[name][k])
                assert old or np.array_equal(found, box(whole[name], now)[k], equal_nan=True), (n, k, name)
    assert len(seen) == 2


def box(array, ds):
    """As much of the array as the dataset has."""
    return array.isel({dim: slice(ds.sizes[dim]) for dim in array.dims})


def random_layout(rng):
    """Any lengths; files of several runs among them, and shards."""
    chunks = {dim: rng.choice([1, 2, 3, "all"]) for dim in ("step", "level", "number")}
    chunks |= {"init_time": rng.choice([1, 2, 3]), "latitude": rng.choice([5, 12])}
    how = ["--chunks", ",".join(f"{dim}={length}" for dim, length in chunks.items())]
    if rng.random() < 0.3:
        how += ["--shards", "step=all,level=all,number=all"]
    return how


def random_fields(rng, n):
    """Steps join behind the others, so that each run has some of the first ones; levels and members are any."""
    some = lambda values: tuple(sorted(rng.sample(values, rng.randint(1, len(values)))))  # noqa: E731
    return fields(n, range(rng.randint(1, min(2 + n, 6))), some((30, 40, 50, 60, 80)), some((0, 1, 3, 5)))


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 60))])
def test_random_growth_makes_the_store_of_all_at_once(squall, tmp_path, support, seed):
    """Runs come with more or less than there is, late files too; sources go; conversions are killed, or are those of parts."""
    rng = random.Random(seed)
    source, kept, grown, whole = (tmp_path / name for name in ("in", "kept", "grown.zarr", "whole.zarr"))
    how = [*GROW, *random_layout(rng)]
    write(source, 0)
    squall("convert", source, grown, *how)
    for n in range(1, 7):
        at = rng.choice([n, n, rng.randrange(n)])
        archive.write(archive.path_of(source, at, f"-{n}"), random_fields(rng, at))
        for path in rng.sample(sorted(source.iterdir()), len(list(source.iterdir())) // 3):
            kept.mkdir(exist_ok=True)
            path.rename(kept / path.name)
        if not any(source.iterdir()):
            continue
        command = [squall.binary, "convert", source, grown, *how]
        if rng.random() < 0.5:
            fault = {"LD_PRELOAD": str(support / "fail_io.so"), "SQUALL_FAULT": f"{rng.randrange(1, 200)}:kill"}
            subprocess.run(command, env=os.environ | fault, capture_output=True)
        for part in ([], ["--part", "1/2"], ["--part", "2/2"])[0:1] if rng.random() < 0.7 else (["--part", "2/2"], ["--part", "1/2"]):
            assert squall("convert", source, grown, *how, *part, check=False).code in (
                0,
                3,
            )  # 3: another file has a field with other values
        assert squall("verify", grown).code == 0
    for path in source.iterdir():
        path.rename(kept / path.name)
    squall("convert", kept, whole, *how, check=False)
    squall("convert", kept, grown, *how, check=False)
    same(values(grown), values(whole))
