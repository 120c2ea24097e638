"""Stores that are damaged or made to harm: nothing crashes, hangs, writes outside of the store or loses what is stored.

What the bytes of a chunk decode to is the business of test_convert.py; here the store around them lies.
"""

import json
import os
import random
import re
import resource
import shutil

import pytest
import small_archive as archive
import squall
import zarr

RECORDS = "chunk_exists/.squall"
JOURNAL = f"{RECORDS}/epoch-000001-part-0.journal"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")
LIMIT_S = 60  # a hang; nothing here takes a second


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def journal_line(text):
    return b"%08x %s\n" % (crc32c(text), text)


def chunks_of(store):
    return {p: p.read_bytes() for name in ("t2m", "u10") for p in (store / name / "c").rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def made(squall, tmp_path_factory):
    """(sources, later sources that lack fields of run 2 and hold a run 3, a store of the former)."""
    work = tmp_path_factory.mktemp("hostile")
    sources, later = work / "in", work / "later"
    for n in range(3):
        archive.write(archive.path_of(sources, n), archive.run(n, ("t", "u"), range(2)))
    archive.write(archive.path_of(later, 2), archive.run(2, ("t",), range(1)))
    archive.write(archive.path_of(later, 3), archive.run(3, ("t", "u"), range(2)))
    squall("convert", sources, work / "out.zarr")
    journal = work / "out.zarr" / JOURNAL  # records come as chunks are durable: here the last run's comes last
    journal.write_bytes(b"".join(sorted(journal.read_bytes().splitlines(True), key=lambda line: json.loads(line[9:]).get("unit", -1))))
    return sources, later, work / "out.zarr"


@pytest.fixture
def store(made, tmp_path):
    return shutil.copytree(made[2], tmp_path / "out.zarr")


@pytest.fixture
def look(squall):
    """Run a command on a store; what it says must be harmless to a terminal, and not silent where it fails."""

    def call(*args, codes=(0, 1, 2, 3, 4, 5), **how):
        done = squall(*args, check=False, timeout=LIMIT_S, errors="surrogateescape", **how)
        assert done.code in codes, (args, done.code, done.err)
        assert not CONTROL.search(done.out + done.err), (args, done.out, done.err)
        assert done.code in (0, 5) or (done.out + done.err).strip(), args
        return done

    return call


def edit(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def edit_layout(store, change):
    """Without its checksum, as earlier versions wrote it: what it says is believed."""

    def change_it(v):
        del v["crc32c"]
        change(v)

    edit(store / RECORDS / "layout.json", change_it)


def cut_lines(data):
    return b"".join(data.splitlines(True)[:-1])


@pytest.mark.parametrize(
    "damage",
    [cut_lines, lambda data: data[:-1], lambda data: data[:-40], lambda data: b"", None],
    ids=["a line less", "no line end", "torn", "empty", "gone"],
)
def test_what_a_lost_record_told_of_is_not_overwritten(look, made, store, damage):
    """The end of a journal can be lost without a trace in it; a flag that is set tells of it."""
    journal, before = store / JOURNAL, chunks_of(store)
    if damage:
        journal.write_bytes(damage(journal.read_bytes()))
    else:
        journal.unlink()
    done = look("convert", made[1], store, codes=(3,))
    assert "its record is lost" in done.err
    after = chunks_of(store)
    assert {p: after[p] for p in before} == before
    assert len(after) > len(before)  # what is new has come in
    assert "chunk_exists is true for run" in look("verify", store, codes=(5,)).out


@pytest.mark.parametrize("change", [{"unit": 3}, {"unit": 2**63}, {"field_counts": [4, 4]}], ids=str)
def test_a_record_that_does_not_fit_the_layout_is_refused(look, made, store, change):
    journal = store / JOURNAL
    lines = journal.read_bytes().splitlines()
    text = json.dumps(json.loads(lines[-1][9:]) | change).encode()
    journal.write_bytes(b"\n".join(lines[:-1]) + b"\n" + journal_line(text))
    before = chunks_of(store), sorted(p.name for p in (store / "chunk_exists/c").iterdir())
    for command in (["status", store], ["verify", store], ["convert", made[1], store], ["convert", made[0], store]):
        assert "records are damaged" in look(*command, codes=(1,)).err
    assert (chunks_of(store), sorted(p.name for p in (store / "chunk_exists/c").iterdir())) == before


def test_a_chunk_that_a_record_tells_of_is_no_fill_value_when_it_is_lost(look, made, store):
    lost, kept = store / "t2m/c/1/0/0/0", squall.open(store)["t2m"][0]
    lost.unlink()
    assert "array t2m, chunk 1/0/0/0: it is lost: by the records" in look("get", store, "t2m", codes=(1,)).err
    for array in (squall.open(store)["t2m"], squall.open_array(store / "t2m")):
        for key in (..., 1, (1, 0, 2, 3), (slice(None), 0, 5)):
            with pytest.raises(squall.Error, match="chunk 1/0/0/0: it is lost"):
                array[key]
        assert (array[0] == kept).all() and array[2].size
    with pytest.raises(squall.Error, match="chunk 1/0/0/0: it is lost"):
        squall.open_array(store / "t2m", mode="r+")[1, 0, 2:4] = 1  # the rest of the chunk would be fill
    assert not lost.exists()
    look("convert", made[0], store, codes=(0,))
    assert (squall.open(store)["t2m"][0] == kept).all()
    look("verify", store, codes=(0,))


def rewrite_record(store, change):
    """Change the last record; its checksum is right."""
    journal = store / JOURNAL
    lines = journal.read_bytes().splitlines()
    record = json.loads(lines[-1][9:])
    change(record)
    journal.write_bytes(b"\n".join(lines[:-1]) + b"\n" + journal_line(json.dumps(record).encode()))


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["arrays"]["t2m"]["chunks"].append([1, 1]),
        lambda r: r["arrays"]["t2m"].update(chunks=[]),
        lambda r: r["arrays"]["t2m"].update(chunks=[None] * len(r["arrays"]["t2m"]["chunks"])),
        lambda r: r["arrays"]["t2m"].update(stored="0-1000000000"),
        lambda r: r["arrays"].update(other=r["arrays"].pop("t2m")),
        lambda r: r.update(field_counts=[1]),
        lambda r: r.update(field_counts=[0]),
        lambda r: r.update(field_counts=[2**32 - 1]),
    ],
    ids=["a chunk more", "no chunks", "null chunks", "slabs beyond", "another array", "a field", "no field", "many fields"],
)
def test_a_record_that_cannot_be_is_told_and_written_anew_where_nothing_is_lost(look, made, store, change):
    before = chunks_of(store)
    rewrite_record(store, change)
    assert "the record of unit 2 does not fit the layout" in look("verify", store, codes=(5,)).out
    done = look("convert", made[1], store, codes=(3,))  # which lacks fields of run 2
    assert "its record does not fit the layout, but the sources no longer hold" in done.err
    assert {p: chunks_of(store)[p] for p in before} == before
    look("convert", made[0], store, codes=(0,))
    look("verify", store, codes=(0,))
    assert {p: chunks_of(store)[p] for p in before} == before


def test_status_of_very_many_runs_is_bounded(look, store):
    def change(v):
        v["init_time"].update(count=2_000_000)
        v["schema"].update(count=2_000_000)

    edit_layout(store, change)
    done = look("status", store, codes=(0,), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)))
    assert "1800000 earlier init times left out" in done.out
    assert len(done.out) < 10_000_000


@pytest.mark.parametrize("name", ["epoch-999999999-part-0", "epoch-1-part-0", "epoch-000000-part-0", "epoch-000001-part-00"])
def test_a_journal_whose_place_is_unknown_is_refused(look, made, store, name):
    (store / JOURNAL).rename(store / RECORDS / f"{name}.journal")
    assert name in look("convert", made[1], store, codes=(1,)).err
    assert name in look("status", store, codes=(1,)).err


def test_the_checksum_of_layout_json_is_that_of_its_other_members(store):
    value = json.loads((store / RECORDS / "layout.json").read_text())
    told = value.pop("crc32c")
    assert told == crc32c(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())


def digits_of(text, key):
    at = text.index(f'"{key}":') + len(key) + 3
    return [at + i for i in range(len(text[at:]) - len(text[at:].lstrip("0123456789")))]


@pytest.mark.parametrize("key", ["start", "step", "count", "chunk", "format", "crc32c"])
def test_a_flipped_digit_of_layout_json_moves_no_run_to_another_time(look, made, store, key):
    """Each was a number that could be; the next run wrote the coordinates that followed from it."""
    path = store / RECORDS / "layout.json"
    text = path.read_text()
    before = {p: p.read_bytes() for p in store.rglob("*") if p.is_file() and p != path}
    for at in digits_of(text, key):
        path.write_text(text[:at] + str(int(text[at]) ^ 1) + text[at + 1 :])
        for command in (["status", store], ["verify", store], ["convert", made[0], store], ["convert", made[1], store]):
            done = look(*command, codes=(1, 4) if key == "format" else (1,))
            assert "layout.json" in done.err and ("put the file back" in done.err or key == "format"), done.err
    assert {p: p.read_bytes() for p in before} == before
    path.write_text(text)
    look("verify", store, codes=(0,))


@pytest.mark.parametrize("name", ["layout.json", "epoch-000001-part-0.journal"])
def test_a_store_whose_records_are_damaged_is_made_anew_with_overwrite(look, made, store, name):
    path = store / RECORDS / name
    path.write_bytes(path.read_bytes().replace(b"t2m", b"t2n", 1))
    assert "--overwrite" in look("convert", made[0], store, codes=(1,)).err
    look("convert", made[0], store, "--overwrite", codes=(0,))
    look("verify", store, codes=(0,))
    assert {p.name for p in store.parent.iterdir()} == {store.name}


@pytest.mark.parametrize("kind", ["folder", "fifo", "long", "nowhere"])
@pytest.mark.parametrize("name", ["lock", "lock-part-1-of-2"])
def test_what_is_no_lock_is_refused_with_the_file_to_remove(look, made, store, name, kind):
    lock = store / RECORDS / name
    if kind == "folder":
        lock.mkdir()
    elif kind == "fifo":
        os.mkfifo(lock)
    elif kind == "long":
        lock.write_text("x" * 5000)
    else:
        lock.symlink_to("nothing")
    options = ["--part", "1/2"] if kind == "nowhere" and name != "lock" else []  # the whole looks at what lies there, and nothing does
    done = look("convert", made[1], store, *options, codes=(4,))
    assert f"{RECORDS}/{name}" in done.err and "remove it" in done.err


def test_a_link_in_the_place_of_what_is_staged_loses_nothing_outside(look, made, store, tmp_path):
    outside = tmp_path / "outside"
    (outside / "0").mkdir(parents=True)
    (outside / "0/kept").write_text("precious")
    (outside / "kept").write_text("precious")
    (store / RECORDS / "staged").symlink_to(outside)
    look("convert", made[1], store, codes=(0, 3))
    assert sorted(p.name for p in outside.rglob("*")) == ["0", "kept", "kept"]
    assert not (store / RECORDS / "staged").is_symlink()


def test_a_destination_that_is_a_link_to_nowhere_is_told(look, made, tmp_path):
    (tmp_path / "link.zarr").symlink_to("disk/out.zarr")
    assert "link.zarr: a link that leads nowhere" in look("convert", made[0], tmp_path / "link.zarr", codes=(1,)).err
    (tmp_path / "disk/out.zarr").mkdir(parents=True)
    look("convert", made[0], tmp_path / "link.zarr", codes=(0,))
    look("verify", tmp_path / "disk/out.zarr", codes=(0,))


def flip(data):
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


@pytest.mark.parametrize(
    "damage", [flip, lambda data: data[:-2], lambda data: b"", lambda data: bytes(len(data))], ids=["a bit", "cut", "empty", "zeros"]
)
def test_verify_names_every_damaged_file_of_the_store(look, made, store, damage):
    """Metadata, coordinates and flags have no records of their own; a conversion mends them all."""
    files = sorted(p for p in store.rglob("*") if p.is_file() and RECORDS not in str(p) and p != store / "zarr.json")
    for path in files:
        good = path.read_bytes()
        path.write_bytes(damage(good))
        done = look("verify", store, codes=(5,))
        array = path.relative_to(store).parts[0]
        assert str(path) in done.out or f"{store}: {array}: chunk" in done.out, (path, done.out)
        look("convert", made[0], store, codes=(0,))
        assert path.read_bytes() == good, path
    look("verify", store, codes=(0,))


@pytest.mark.parametrize("count", [2**25, 2**32 - 1])
def test_a_claim_of_more_runs_than_there_can_be_is_refused(look, store, count):
    edit_layout(store, lambda v: v["init_time"].update(count=count))
    assert "records are damaged" in look("status", store, codes=(1,)).err


@pytest.mark.parametrize("where", ["chunk_exists/c", "t2m/c", "t2m/c/1", "latitude/c"])
def test_links_that_lead_back_do_not_make_a_walk_endless(look, made, store, where):
    for name in ("a", "b"):
        (store / where / name).symlink_to(".")
    look("info", store, codes=(0,))
    look("ls", store, codes=(0,))
    look("convert", made[0], store, codes=(0,))
    look("verify", store, codes=(0,))


def test_nothing_outside_of_the_store_is_removed_or_made_through_links(look, made, store, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / ".x.1f-12-3-0.squall-tmp").write_text("another's")
    (store / "chunk_exists/c/link").symlink_to(outside)
    (store / RECORDS / "guard").unlink()
    (store / RECORDS / "guard").symlink_to(outside / "new")
    assert "guard" in look("convert", made[0], store, codes=(1,)).err
    (store / RECORDS / "guard").unlink()
    look("convert", made[0], store, codes=(0,))
    assert [p.name for p in outside.iterdir()] == [".x.1f-12-3-0.squall-tmp"]


def test_no_name_or_text_of_a_store_reaches_the_terminal_raw(look, made, store):
    evil = "a\x1b[2Jb\x9b31m\x7f\n\x07"

    def change(v):
        arrays = v["consolidated_metadata"]["metadata"]
        arrays[evil] = arrays["t2m"]
        arrays["step"]["dimension_names"] = [evil]
        arrays["latitude"]["data_type"] = evil
        arrays["longitude"]["codecs"] = [{"name": evil}]
        arrays["u10"]["attributes"][evil] = evil
        v["attributes"][evil] = evil

    edit(store / "zarr.json", change)
    said = {"command": evil, "format": 1}
    lines = [said, {"left": 0, "why": evil}, {"input": [evil, 1, 1], "what": evil}]
    (store / RECORDS / "epoch-000002-part-0.journal").write_bytes(b"".join(journal_line(json.dumps(v).encode()) for v in lines))
    for command in ("info", "ls", "status", "verify"):
        look(command, store)
        look(command, store, "--json") if command != "ls" else None
    assert "control characters in its name" in look("info", store).err
    look("info", store, "-v")
    look("get", store, "t2m", codes=(0, 1, 3))
    look("convert", made[1], store)


def test_the_name_of_a_source_ends_no_line_of_the_report(look, made, tmp_path):
    source = shutil.copytree(made[0], tmp_path / "in")
    (source / "empty\nout.zarr: 99 units written").touch()
    store = tmp_path / "out.zarr"
    for done in (look("convert", source, store, "--dry-run"), look("convert", source, store, codes=(3,)), look("convert", source, store)):
        assert "empty?out.zarr: 99 units written" in done.out + done.err
        assert not [line for line in (done.out + done.err).splitlines() if line.startswith("out.zarr: 99")]


def test_an_array_of_more_chunks_than_can_be_looked_at_is_told(look, store):
    def change(v):
        v["consolidated_metadata"]["metadata"]["latitude"].update(
            shape=[2**40], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [1]}}
        )

    edit(store / "zarr.json", change)
    assert "not checked" in look("verify", store, codes=(5,)).out
    shutil.rmtree(store / RECORDS)
    done = look("verify", store, codes=(3,)).out
    assert "latitude: not checked: more chunks" in done and done.endswith("0 absent; 1 array not checked\n")


@pytest.mark.parametrize("kind", ["fifo", "folder", "loop", "empty", "zeros"])
@pytest.mark.parametrize("name", [JOURNAL, f"{RECORDS}/layout.json", f"{RECORDS}/lock", "zarr.json", "t2m/c/1/0/0/0"])
def test_another_thing_in_the_place_of_a_file_costs_no_stored_chunk(look, made, store, name, kind):
    path, before = store / name, chunks_of(store)
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path.name)
    else:
        path.write_bytes(b"" if kind == "empty" else bytes(100))
    for command in (["info", store], ["status", store], ["verify", store], ["convert", made[1], store]):
        look(*command)
    if name.startswith("t2m"):
        look("get", store, "t2m", codes=(1,))
    after = chunks_of(store)
    assert all(after[p] == before[p] for p in before if p != path)


def test_random_damage_of_records_and_metadata_costs_no_stored_chunk(look, made, tmp_path):
    rng = random.Random(7)
    for n in range(24):
        store = shutil.copytree(made[2], tmp_path / f"{n}.zarr")
        before = chunks_of(store)
        path = store / rng.choice([JOURNAL, f"{RECORDS}/layout.json", "zarr.json"])
        data = bytearray(path.read_bytes())
        if n % 3:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        else:
            del data[rng.randrange(len(data)) :]
        path.write_bytes(data)
        for command in (["info", store], ["verify", store], ["convert", made[1], store]):
            look(*command)
        after = chunks_of(store)
        assert {p: after.get(p) for p in before} == before, (n, path)


def link_to_nowhere(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("nothing")


@pytest.fixture
def holes(tmp_path):
    """A store of others, in which chunks 0 and 2 of 4 are there."""
    group = zarr.create_group(tmp_path / "holes.zarr")
    array = group.create_array("a", shape=(4, 4), chunks=(1, 4), dtype="i2", fill_value=-1)
    array[0] = array[2] = 7
    return tmp_path / "holes.zarr"


@pytest.mark.parametrize("where", ["c", "c/2", "c/2/0"])
def test_what_a_link_to_nowhere_hides_is_no_fill_value(look, holes, where):
    assert "-1" in look("get", holes, "a", codes=(0,)).out
    assert "0 bad, 2 absent" in look("verify", holes, codes=(0,)).out
    link_to_nowhere(holes / "a" / where)
    assert "leads nowhere" in look("get", holes, "a", codes=(1,)).err
    assert "leads nowhere" in look("verify", holes, codes=(5,)).out


@pytest.mark.parametrize("shards", [None, (2, 4)], ids=["chunks", "shards"])
@pytest.mark.parametrize("where", ["c", "c/0", "c/0/0"])
def test_what_a_link_to_nowhere_hides_is_not_written_over_with_fill(tmp_path, where, shards):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(4, 4), chunks=(1, 2) if shards else (2, 4), shards=shards, dtype="i2")
    array[:] = 7
    link_to_nowhere(tmp_path / "a.zarr" / where)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(squall.Error, match="leads nowhere"):
        squall.open_array(tmp_path / "a.zarr", mode="r+")[1, 1:2] = 5
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_verify_looks_into_every_shard(look, tmp_path):
    path = tmp_path / "shards.zarr"
    array = zarr.create_array(path, shape=(8, 8), shards=(4, 4), chunks=(2, 2), dtype="i4", fill_value=0)
    array[:4] = 1
    array[4:, 4:] = 2
    (path / "c/1/1").write_bytes((path / "c/1/1").read_bytes()[:-1])
    done = look("verify", path, codes=(5,)).out
    assert "16 chunks decoded: 4 bad, 1 absent" in done
    assert "chunk 1/0: absent" in done


def test_a_chunk_too_large_for_memory_keeps_verify_from_no_other(look, holes):
    with open(holes / "a/c/0/0", "wb") as file:
        file.truncate(2**42)
    claim = json.loads((holes / "a/zarr.json").read_text())
    claim["shape"] = claim["chunk_grid"]["configuration"]["chunk_shape"] = [2**18, 2**20]
    (holes / "b").mkdir()
    (holes / "b/zarr.json").write_text(json.dumps(claim))
    (holes / "a/c/2/0").write_bytes(b"")
    done = look("verify", holes, codes=(5,)).out
    assert "b: not checked: a chunk does not fit" in done
    assert done.count(": a: chunk") == 4
    assert "4 chunks decoded: 2 bad, 2 absent; 1 array not checked" in done


@pytest.mark.parametrize("value", [0, "x"], ids=str)
@pytest.mark.parametrize(
    "place",
    [
        lambda v: (v["codecs"][0], "configuration"),
        lambda v: (v["codecs"][1], "configuration"),
        lambda v: (v["chunk_key_encoding"], "configuration"),
        lambda v: (v, "storage_transformers"),
    ],
    ids=["array codec", "bytes codec", "chunk keys", "transformers"],
)
def test_metadata_of_the_wrong_kind_is_not_passed_over(look, holes, place, value):
    def change(v):
        where, key = place(v)
        where[key] = value

    edit(holes / "a/zarr.json", change)
    assert look("get", holes, "a").code != 0


def test_a_name_of_very_many_parts_is_left_out(look, holes):
    def change(v):
        array = json.loads((holes / "a/zarr.json").read_text())
        v["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": {"/".join("x" * 100): array, "a": array}}

    edit(holes / "zarr.json", change)
    assert "nested more than 64 deep" in look("info", holes, codes=(3,)).err
    assert list(squall.open(holes)) == ["a"]


def test_who_asks_for_an_array_that_was_left_out_hears_why(tmp_path):
    for name in ("v", "w"):
        squall.create_array(tmp_path / "s.zarr", name, shape=(6,), dtype="f4")
    (tmp_path / "s.zarr/v/zarr.json").write_text('{"zarr_format":')
    with pytest.raises(KeyError, match=r"no v in .*there is w; .*v left out: .*zarr\.json: JSON ends"):
        squall.open(tmp_path / "s.zarr")["v"]
    with pytest.raises(KeyError, match="there is w'$"):
        squall.open(tmp_path / "s.zarr")["x"]
