"""Settings in a file, and the log: `squall convert --config`, `--print-config` and `--log`. The oracle for TOML is Python's tomllib."""

import json
import random
import subprocess
import tomllib

import pytest


@pytest.fixture(scope="module")
def archive(tmp_path_factory, support):
    folder = tmp_path_factory.mktemp("config") / "archive"
    subprocess.run([support / "make_archive", folder, *"--inits 2 --steps 3 --vars 4 --ny 30 --nx 20".split()], check=True)
    return folder


def printed(squall, *args):
    """What --print-config says, as tomllib reads it."""
    return tomllib.loads(squall("convert", *args, "--print-config").out)


def test_a_file_says_what_the_command_line_says(squall, archive, tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f"""# daily
sources = ["{archive}"]
destination = "{tmp_path}/of_file.zarr"
on_overflow = 'clip'
codec = "zstd:level=3"
select = ["name=t|r", "name=dpt"]
threads = 1
strict = true
[chunks]
init_time = 2     # two runs
step = "all"
[dtype]
t = "float16"
"""
    )
    args = "--on-overflow clip --codec zstd:level=3 --select name=t|r --select name=dpt --threads 1 --strict".split()
    args += ["--chunks", "init_time=2,step=all", "--dtype", "t=float16"]
    squall("convert", "--config", settings)
    squall("convert", archive, tmp_path / "of_line.zarr", *args)
    read = [(tmp_path / name / "zarr.json").read_bytes() for name in ("of_file.zarr", "of_line.zarr")]
    assert read[0] == read[1]
    assert printed(squall, "--config", settings) == printed(squall, archive, tmp_path / "of_file.zarr", *args)


def test_the_command_line_wins(squall, tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text('sources = "a"\ndestination = "b"\ndtype = "float16"\nselect = ["name=t"]\nmemory = "1G"\n[chunks]\nstep = 1\n')
    asked = printed(squall, "--config", settings, "c", "d", "--dtype", "float32", "--select", "name=r", "--chunks", "y=5")
    assert asked == {
        "sources": ["c"],
        "destination": "d",
        "dtype": "float32",
        "select": ["name=r"],
        "chunks": "y=5",
        "memory": 1 << 30,
    }


def test_what_is_printed_is_taken_again(squall, tmp_path):
    places = ["it's \\here", 'a "store"\n']
    first = squall("convert", *places, "--rename", "a=b", "--rename", "c=d", "--threads", "3", "--overwrite", "--print-config").out
    assert tomllib.loads(first)["sources"] == places[:1] and tomllib.loads(first)["destination"] == places[1]
    path = tmp_path / "again.toml"
    path.write_text(first)
    assert squall("convert", "--config", path, "--print-config").out == first


def test_every_option_is_listed_and_may_be_set(squall, tmp_path):
    """A comment of --print-config becomes a setting when its # goes."""
    lines = [line for line in squall("convert", "--print-config").out.splitlines() if line.startswith("# ") and " = " in line]
    options = {word for word in squall("help", "convert").out.split() if word.startswith("--") and word[2:3].isalpha()}
    assert {"--" + line[2:].split(" = ")[0] for line in lines} >= options - {"--help", "--config", "--print-config"}
    values = {
        "on-overflow": '"clip"',
        "drift": '"warn"',
        "stack": '"variable"',
        "y-order": '"ascending"',
        "schema": '"grow"',
        "zarr-format": "2",
        "lock-timeout": "5",
        "threads": "2",
        "memory": '"1G"',
    }
    path = tmp_path / "one.toml"
    for line in lines[2:]:  # behind sources and destination, which go together
        key, value = line[2:].split("    #")[0].split(" = ")
        path.write_text(f"{key} = {values.get(key, value)}\n")
        assert key in printed(squall, "--config", path)


@pytest.mark.parametrize(
    "text, words",
    [
        ("chunk = 1", "line 1: no setting chunk; is chunks meant?"),
        ("\ncolour = 1", "line 2: no setting colour; squall convert --print-config"),
        ("help = true", "no setting help"),
        ("dtype = 1.5", "line 1: a value is a text in quotes"),
        ("dtype = 2020-01-01", "line 1: a value is a text in quotes"),
        ('threads = "x"', "--threads x: a whole number"),
        ("strict = 1", "line 1: true or false"),
        ("dtype = true", "not true or false"),
        ('dtype = "float16', "no closing quote"),
        ('dtype = """float16"""', "several lines"),
        ("chunks = {step = 1}", "write [name]"),
        ("chunks.step = 1", "keys with dots"),
        ("[a.b]", "tables within tables"),
        ("[[a]]", "arrays of tables"),
        ("[threads]\na = 1", "line 2: threads is no table"),
        ('dtype = "float16"\n[dtype]\nt = "float32"', "line 3: this setting was given above"),
        ('dtype = "float16"\ndtype = "float16"', "line 2: this setting was given above"),
        ('sources = "a"', "go together"),
        ("sources = 3", "a path in quotes"),
        ('destination = ["a"]', "destination wants a path in quotes"),
        ('log = ["a", ["b"]]', "an array within an array"),
        ('on-overflow = "x"', "error|inf|clip"),
        ('dtype = "float16" x', "something stands behind"),
        ('dtype = "\\q"', "no such escape"),
        ('dtype = "\\u12"', "four hexadecimal digits"),
        ('dtype = "\\ud800"', "a character"),
        ("a\0b", "zero byte"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(squall, tmp_path, text, words):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    done = squall("convert", "--config", path, check=False)
    assert done.code == 2 and words in done.err and str(path) in done.err and done.out == ""


GOOD = ['"x#"', "'y\\'", '"\\u00e9\\n\\"\\U0001F600"', "+7", "-19", "2000", "0", "'a\"b'"]
ODD = ["007", "1_0", "0x1", "true"]
KEYS = ["dtype", "codec", "select", "rename", "every", "stack_name", '"log"', "'concat-dim'", "group", "append-dim"]


def random_word(choose):
    what = choose.choices(["good", "odd", "text"], [8, 1, 1])[0]
    if what == "text":
        inside = "".join(choose.choices("ab \\n\"'#=é\t", k=choose.randrange(5)))
        return choose.choice("\"'") + inside + choose.choice("\"'")
    return choose.choice(GOOD if what == "good" else ODD)


def random_array(choose):
    words = ", ".join(random_word(choose) for _ in range(choose.randrange(4)))
    return "[" + choose.choice(["", "\n", " # c\n"]) + words + choose.choice(["]", ",]", " ]"])


def random_toml(choose):
    """Mostly right texts of the kind that settings are, some of them broken."""
    text = ""
    for key in choose.sample(KEYS, choose.randrange(1, 5)):
        value = choose.choice([random_word, random_word, random_array])(choose)
        behind = choose.choices(["", " ", " # c", " x"], [5, 2, 3, 1])[0]
        text += key + choose.choice(["=", " = ", " =  "]) + value + behind + choose.choices(["\n", "\r\n", "\n\n", "\r"], [20, 5, 5, 1])[0]
    return text


def of_tomllib(given):
    """What --print-config shows of a document that tomllib has read."""
    joint = {"codec": "+"}
    texts = {}
    for key, value in given.items():
        name = key.replace("_", "-")
        words = [str(one) for one in value] if isinstance(value, list) else [str(value)]
        texts[name] = (words or None) if name in ("select", "rename") else joint.get(name, ",").join(words)
    return {name: value for name, value in texts.items() if value is not None}


@pytest.mark.parametrize("seed", range(3))
def test_random_files_mean_what_tomllib_says(squall, tmp_path, seed):
    choose = random.Random(seed)
    path = tmp_path / "random.toml"
    taken = 0
    for _ in range(100):
        text = random_toml(choose)
        path.write_bytes(text.encode())
        done = squall("convert", "--config", path, "--print-config", check=False)
        try:
            expected = of_tomllib(tomllib.loads(text))
        except tomllib.TOMLDecodeError:
            expected = None
        if done.code == 0:
            assert expected is not None, text
            assert tomllib.loads(done.out) == expected, text
            taken += 1
        else:
            narrower = any(sign in text for sign in ("1_0", "0x1", '""', "''", "true"))  # what is TOML, and not taken
            assert expected is None or narrower, (text, done.err)
    assert taken > 20


def test_the_log_has_a_line_for_each_thing_that_happened(squall, archive, tmp_path):
    """Lines are added; each can be read for itself; the last one has the code and the report."""
    log, bad = tmp_path / "log.jsonl", tmp_path / "bad.grib2"
    bad.write_bytes(b"GRIB, or so they say")
    runs = [squall("convert", archive, bad, tmp_path / "a.zarr", "-q", "--log", log, check=False) for _ in range(2)]
    report = json.loads(squall("convert", archive, bad, tmp_path / "a.zarr", "--json", "--log", log, check=False).out)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    ends = [line for line in lines if line["event"] == "end"]
    assert [line["exit_code"] for line in ends] == [run.code for run in runs] + [0]
    assert ends[0]["exit_code"] == 3 and ends[-1]["report"] == report
    assert [line["event"] for line in lines].count("start") == 3
    assert any(line["event"] == "warning" and "bad.grib2" in line["text"] for line in lines)
    assert all(line["time"].endswith("Z") and line["pid"] > 0 for line in lines)


def test_errors_are_logged(squall, archive, tmp_path):
    log = tmp_path / "log.jsonl"
    done = squall("convert", archive, tmp_path / "a.zarr", "--codec", "none", "--log", log)
    done = squall("convert", archive, tmp_path / "a.zarr", "--codec", "zstd:level=1", "--log", log, check=False)
    last = [json.loads(line) for line in log.read_text().splitlines()][-2:]
    assert done.code == 4 and last[1]["exit_code"] == 4 and "report" not in last[1]
    assert last[0]["event"] == "error" and last[0]["text"] in done.err


def test_a_log_that_cannot_be_opened_is_refused_first(squall, archive, tmp_path):
    done = squall("convert", archive, tmp_path / "a.zarr", "--log", "/no/such/log", check=False)
    assert done.code == 1 and "/no/such/log" in done.err and not (tmp_path / "a.zarr").exists()


def test_a_full_log_does_not_end_the_conversion(squall, archive, tmp_path):
    done = squall("convert", archive, tmp_path / "a.zarr", "--log", "/dev/full")
    assert done.err.count("nothing more is logged") == 1
    assert (tmp_path / "a.zarr" / "zarr.json").exists()
