"""What README and the pages of docs/ show is run (see pages.py), and the messages that they quote are still in the source."""

import ast
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pages
import pytest
from conftest import BUILD, ROOT

PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]


@pytest.fixture(scope="module")
def made_inputs(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("inputs", ROOT / "docs" / "inputs.py")
    inputs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(inputs)
    folder = tmp_path_factory.mktemp("inputs")
    inputs.make_archive(folder / "archive")
    inputs.make_era5(folder / "era5")
    subprocess.run([BUILD / "squall", "convert", "-q", folder / "archive", folder / "forecasts.zarr"], check=True)
    install = [ROOT / ".venv" / "bin" / "meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder / "installed"]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if any(block.runs for block in pages.blocks(ROOT / page))])
def test_what_a_page_shows_happens(page, made_inputs, tmp_path):
    for name in pages.inputs(ROOT / page):
        shutil.copytree(made_inputs / name, tmp_path / name, symlinks=True)
    own = {"PATH": os.pathsep.join([str(BUILD), str(ROOT / ".venv" / "bin"), os.environ["PATH"]]), "NO_COLOR": "1"}
    for package in (tmp_path / "installed").rglob("squall.pc"):
        own |= {"PKG_CONFIG_PATH": str(package.parent), "PKG_CONFIG_SYSROOT_DIR": str(tmp_path / "installed")}
        own |= {"LD_LIBRARY_PATH": str(package.parents[1])}
    command = [sys.executable, ROOT / "tests" / "python" / "pages.py", ROOT / page]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "block, fault",
    [
        ("```console\n$ echo one; echo two\none\n...\nthree\n```\n", "prints"),
        ("```console\n$ false\n```\n", "exit code 1"),
        ("```pycon\n>>> 1 + 1\n3\n```\n", "Got:"),
        ("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", "page.md"),
        ("```sh\nfalse\ntrue\n```\n", "a command failed"),
        ("```python no-run\nx = = 1\n```\n", "SyntaxError"),
        ("```sh no-run\nif true\n```\n", "syntax error"),
        ("```sh\ntrue\n", "a block without an end"),
    ],
)
def test_a_page_that_shows_what_does_not_happen_fails(block, fault, tmp_path):
    (tmp_path / "page.md").write_text(f"# A page\n\n{block}")
    command = [sys.executable, ROOT / "tests" / "python" / "pages.py", "page.md"]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode != 0 and fault in done.stdout


def c_texts(path):
    """The string literals of a C file, those that follow each other as one."""
    literal = r'"((?:[^"\\\n]|\\.)*)"'
    for run in re.finditer(rf"{literal}(?:\s*(?:PRI\w+\s*)?{literal})*", path.read_text()):
        yield "".join(re.findall(literal, run[0])).replace('\\"', '"')


def python_texts(path):
    """The texts of a Python file; what an f-string puts in is left out."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "\0" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@functools.cache
def source_texts():
    texts = [text for path in [*ROOT.glob("src/**/*.c"), *ROOT.glob("python/squall/*.c")] for text in c_texts(path)]
    return texts + [text for path in ROOT.glob("python/squall/*.py") for text in python_texts(path)]


def is_in_source(message):
    """A message with … for what differs: is there one text with all its parts, in their order?"""
    parts = [re.escape(part) for part in message.split("…") if part.strip()]
    pattern = re.compile(".*".join(parts), re.DOTALL)
    return any(pattern.search(text) for text in source_texts())


def quoted_messages():
    return re.findall(r"^### `(.+)`$", (ROOT / "docs" / "troubleshooting.md").read_text(), re.MULTILINE)


def test_messages_that_troubleshooting_quotes_are_in_the_source():
    messages = quoted_messages()
    assert len(messages) > 20
    assert not [message for message in messages if not is_in_source(message)]


def test_a_message_that_nobody_writes_is_found_out():
    assert is_in_source("changed since it was opened") and not is_in_source("changed since … it was never opened")
