"""A unit that is larger than --memory is made in bands: the same store, byte for byte, within what the plan says."""

import json
import resource
import shutil

import pytest
import small_archive as archive
from test_convert import broken_inside, check_values, files, opened, peak_bytes
from test_convert_carry import flip, report
from test_convert_faults import Sweep

# a chunk has room for many runs, so that small files make large units: 4 variables and 3 steps in groups of 15 MB
OPTIONS = ["--chunks", "init_time=16000,step=1,y=6", "--every", "6h", "--threads", "2", "--codec", "zstd:level=1"]
NAMES = ("t", "r", "u", "prmsl")
GROUP = 16000 * archive.ROWS * archive.COLUMNS * 4


@pytest.fixture
def source(tmp_path):
    return archive.make(tmp_path / "in", 2, names=NAMES)


@pytest.fixture
def whole(squall, source, tmp_path):
    squall("convert", source, tmp_path / "whole.zarr", *OPTIONS)
    return files(tmp_path / "whole.zarr")


@pytest.fixture
def store(tmp_path):
    return tmp_path / "out.zarr"


def planned(squall, *args):
    return json.loads(squall("convert", *args, "--dry-run", "--json").out)


@pytest.mark.parametrize("memory", ["100M", "130M", "200M"])
def test_a_unit_in_bands_is_the_same(squall, support, source, whole, store, memory):
    plan = planned(squall, source, store, *OPTIONS, "--memory", memory)
    assert plan["peak_memory_bytes"] < 14 * GROUP and 2 <= plan["bands"] <= 12
    assert f"made in up to {plan['bands']} bands" in squall("convert", source, store, *OPTIONS, "--memory", memory, "--dry-run").out
    peak = peak_bytes([support.parents[1] / "squall", "convert", source, store, "-q", "--memory", memory, *OPTIONS])
    assert GROUP < peak <= plan["peak_memory_bytes"] <= int(memory[:-1]) << 20
    assert files(store) == whole
    assert check_values(opened(store), sorted(source.iterdir())) == 24
    assert squall("verify", store).code == 0 and not list(store.rglob("staged/*"))


def test_an_address_space_without_room_for_the_unit_is_enough(squall, source, whole, store):
    limit = 200 << 20  # with the program, its threads' stacks and the files that it maps

    def run(memory):
        limited = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))}
        return squall("convert", source, store, *OPTIONS, "--memory", memory, check=False, **limited)

    assert "out of memory" in run("500M").err
    assert run("100M").code == 0 and files(store) == whole


def test_what_is_carried_over_is_in_bands_too(squall, source, whole, store):
    bands = ["--memory", "130M"]
    first, second = sorted(source.iterdir())
    squall("convert", first, store, *OPTIONS, *bands)
    shutil.copytree(store, store.parent / "again.zarr")
    plan = planned(squall, second, store, *OPTIONS, *bands)
    again = [second, store.parent / "again.zarr", "-q", *OPTIONS, *bands]
    assert peak_bytes([squall.binary, "convert", *again]) <= plan["peak_memory_bytes"] <= 130 << 20
    done = report(squall, second, store, *OPTIONS, *bands)
    assert done["fields_carried"] == 12 and done["fields_written"] == 12
    assert files(store) == whole


def test_a_damaged_old_chunk_in_the_last_band_leaves_all_as_it_is(squall, source, store):
    first, second = sorted(source.iterdir())
    squall("convert", first, store, *OPTIONS)
    flip(store / "u10/c/0/2/1/0", 100)
    before = files(store)
    done = report(squall, second, store, *OPTIONS, "--memory", "130M", code=3)
    assert done["failed"][0]["why"].startswith(f"damaged: {store}/u10/c/0/2/1/0: ")
    changed = {p for p, data in files(store).items() if before.get(p) != data}
    assert not any(p.startswith(("t2m", "r2", "u10", "prmsl", "chunk_exists", "field_count")) and "/c/" in p for p in changed)
    assert not list(store.rglob("staged/*"))


@pytest.mark.parametrize("options", [[], ["--strict"]])
def test_a_bad_field_in_a_band_is_as_without(squall, source, tmp_path, store, options):
    path = sorted(source.iterdir())[1]
    messages = archive.run(1, NAMES)
    archive.write(path, [*messages[:-1], broken_inside(messages[-1])])
    squall("convert", source, tmp_path / "other.zarr", *OPTIONS, *options, check=False)
    done = squall("convert", source, store, *OPTIONS, *options, "--memory", "130M", "--json", "-q", check=False)
    assert done.code == 3 and len(json.loads(done.out)["bad"]) == 1
    assert json.loads(done.out)["units"]["done"] == (0 if options else 1)
    assert files(store) == files(tmp_path / "other.zarr")


def test_values_that_do_not_fit_end_the_run_before_any_of_the_unit_is_stored(squall, tmp_path, store):
    source = archive.make(tmp_path / "in", 1, names=("t", "r", "orog"))
    done = squall("convert", source, store, *OPTIONS, "--dtype", "float16", "--memory", "110M", check=False)
    assert done.code == 1 and "does not fit float16" in done.err
    assert not list(store.glob("[tr]2*/c"))
    shutil.rmtree(store)


def test_where_not_even_a_band_fits_it_is_refused_and_said_what_would(squall, source, whole, store):
    done = squall("convert", source, store, *OPTIONS, "--memory", "40M", check=False)
    assert done.code == 1 and "--chunks init_time=" in done.err
    one = ["--chunks", "init_time=1,step=all", "--threads", "1"]
    done = squall("convert", source, store, *one, "--memory", "8M", check=False)
    assert done.code == 1 and "of it for the chunks of" in done.err and "or shorter --chunks along step" in done.err
    fits = squall("convert", source, store, *OPTIONS, "--memory", "40M", check=False).err.split("--memory ")[1].split("M")[0]
    squall("convert", source, store, *OPTIONS, "--memory", f"{fits}M")
    assert files(store) == whole


@pytest.mark.parametrize("stride", [71, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("before", ["nothing", "one run"])
def test_killed_at_every_call_it_goes_on(squall, support, source, tmp_path, before, stride):
    first, second = sorted(source.iterdir())
    store = tmp_path / "s" / "out.zarr"
    options = ["--chunks", "init_time=2000,step=1,y=6", *OPTIONS[2:]]
    if before != "nothing":
        squall("convert", first, tmp_path / "before.zarr", *options)
    made = tmp_path / "before.zarr" if before != "nothing" else None
    memory = planned(squall, source, tmp_path / "none.zarr", *options)["peak_memory_bytes"] - (16 << 20)
    assert planned(squall, source, tmp_path / "none.zarr", *options, "--memory", memory)["bands"] > 1
    sweep = Sweep(support, made, second, store, [*options, "--memory", str(memory)])
    sweep.runs_per_unit = 2000
    sweep.kill_at_every_call(stride)
