"""`squall status --html`: a page that says what `--json` says. Python's html.parser reads it."""

import html.parser
import json
import subprocess

import pytest
import small_files


class Page(html.parser.HTMLParser):
    """Cells of the calendar as (state, title), rows of tables, the text, and what would load something from elsewhere."""

    def __init__(self, path):
        super().__init__()
        self.cells, self.rows, self.days, self.words, self.outside = [], [], [], [], []
        self.hidden = False
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.hidden = tag in ("style", "title")
        self.outside += [value for key, value in attrs.items() if key in ("src", "href")] + [tag] * (tag in ("script", "link", "img"))
        if tag == "i" and "title" in attrs:
            self.cells.append((attrs["class"], attrs["title"]))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        if tag == "table":
            self.rows.append([])

    def handle_data(self, data):
        if self.hidden:
            return
        self.words.append(data)
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip()

    @property
    def text(self):
        return "".join(self.words)


@pytest.fixture
def archive(tmp_path, support):
    """Ten runs, of which one is cut off; the first of the second day is not there."""
    folder = tmp_path / "a <b> & 'c'"
    subprocess.run([support / "make_archive", folder, *"--inits 10 --steps 2 --vars 3 --ny 8 --nx 9".split()], check=True)
    runs = sorted(folder.iterdir())
    runs[4].unlink()
    runs[6].write_bytes(runs[6].read_bytes()[:500])
    return folder


def test_the_page_says_what_json_says(squall, archive, tmp_path):
    store, page = tmp_path / "s <i>.zarr", tmp_path / "page.html"
    squall("convert", archive, store, "--every", "6h", check=False)
    done = squall("status", store, "--html", page)
    report, shown = json.loads(squall("status", "--json", store).out), Page(page)
    assert "2022-01-02" in done.out  # the text comes, too
    expected = [(run["state"], f"{run['init_time']}: {run['state']}, {run['fields']} fields") for run in report["runs"]]
    assert shown.cells == expected and {state for state, _ in expected} == {"complete", "partial", "missing"}
    assert ["2022-01-01", *[""] * 4] in shown.rows and ["", "00:00", "06:00", "12:00", "18:00"] in shown.rows
    for variable in report["variables"]:
        assert [variable["name"], str(variable["stored"]), str(variable["expected"]), ""] in shown.rows
    assert [report["inputs"][0]["file"], report["inputs"][0]["what"]] in shown.rows
    assert report["command"] in shown.text and str(store) in shown.text
    assert shown.outside == []


def test_what_is_stored_is_counted(squall, archive, tmp_path):
    store = tmp_path / "s.zarr"
    squall("convert", archive, store, "--every", "6h", check=False)
    listed = json.loads(squall("ls", "--json", *sorted(archive.iterdir()), check=False).out)
    counts = {v["name"]: (v["stored"], v["expected"]) for v in json.loads(squall("status", "--json", store).out)["variables"]}
    runs = len({row["date"] for row in listed})
    found = [sum(row["shortName"] == name for row in listed) for name in {row["shortName"] for row in listed}]
    assert sorted(counts.values()) == sorted((stored, 2 * runs) for stored in found)
    assert sum(stored for stored, _ in counts.values()) == len(listed)


def test_places_of_arrays_are_shown(squall, tmp_path):
    for day in range(3):
        small_files.write(tmp_path / f"{day}.nc", day)
    squall("convert", *[tmp_path / f"{day}.nc" for day in range(3)], tmp_path / "a.zarr")
    squall("status", tmp_path / "a.zarr", "--html", tmp_path / "page.html", "-q")
    cells = Page(tmp_path / "page.html").cells
    assert len(cells) == 12 and all(state == "complete" and title.endswith("4 variables") for state, title in cells)


def test_a_page_replaces_the_old_one_at_once(squall, archive, tmp_path):
    store, page = tmp_path / "s.zarr", tmp_path / "page.html"
    squall("convert", archive, store, check=False)
    page.write_text("old")
    with page.open() as reader:
        squall("status", store, "--html", page)
        assert reader.read() == "old" and page.read_text().startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir() if ".tmp" in p.name] == []
    done = squall("status", store, "--html", tmp_path / "no" / "page.html", check=False)
    assert done.code == 1 and "no/page.html: No such file" in done.err
