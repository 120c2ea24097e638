"""The documentation site builds without a warning, notebooks run in it, and its parts hold what they are made from."""

import html
import re
import subprocess
import sys

import pytest
from conftest import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not (ROOT / ".venv-docs").exists():
        pytest.skip("no .venv-docs: ./run test makes it")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([sys.executable, ROOT / "tools" / "site.py", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return folder / "html"


def words(page):
    """What a reader of a page sees, without its marks."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", page.read_text())))


def test_notebooks_draw_and_print(site):
    pictures = sorted(path.name for path in (site / "_images").glob("*.png"))
    assert len(pictures) == 4
    page = words(site / "docs" / "notebooks" / "archive-to-map.html")
    assert "0 done before forecasts.zarr: nothing new, 4 done before forecasts.zarr: 4 init times" in page
    assert "\x1b" not in page


def test_the_reference_has_every_command_function_and_header(site):
    import squall

    assert "squall convert SRC... DST" in words(site / "docs" / "reference" / "command.html")
    python, c = words(site / "docs" / "reference" / "python.html"), words(site / "docs" / "reference" / "c.html")
    assert not [name for name in squall.__all__ if f"squall.{name}" not in python]
    headers = "".join(path.read_text() for path in (ROOT / "include" / "squall").glob("*.h"))
    functions = set(re.findall(r"\b(squall_\w+)\(", headers))
    assert functions and not [name for name in functions if name not in c]


def test_pages_need_no_network(site):
    """Nothing that a page loads, styles, scripts, pictures and fonts, lies elsewhere."""
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|link)[^>]*?(?:src|href)="([^"]*)"', page.read_text())
        assert loaded or page.parent == site
        assert not [address for address in loaded if "//" in address], page
