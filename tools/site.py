#!/usr/bin/env python3
"""Builds the documentation site: tools/site.py [FOLDER], build/docs where none is named; the site is then in FOLDER/html.

The pages are those of docs/, in the places that they have in the repository, so that links between them mean the same on a forge and
here. What is added: the notebooks, executed, and the reference (reference.py). docs/index.md is the navigation: each of its sections
becomes a part of it. Anything that Sphinx warns of, such as a link that leads nowhere or a page that the index has not, is an error."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SPHINX = ROOT / ".venv-docs" / "bin" / "python"
COPIED = ["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "LICENSE", "bench/RESULTS.md"]
COPIED += ["docs/zarr.svg", "docs/site.css", "docs/conf.py"]
REFERENCE = """## Reference

- [The command](reference/command.md)
- [Python](reference/python.md)
- [C](reference/c.md)

"""
REDIRECT = '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html"><a href="docs/index.html">squall</a>\n'


def with_navigation(index):
    """The index with a hidden table of contents for each of its sections."""
    trees = []
    for section in index.split("\n## ")[1:]:
        links = re.findall(r"^- \[(.*?)\]\((\S+)\)", section.replace("](../", "](/"), re.MULTILINE)
        pages = [f"{title.replace('`', '')} <{page}>" for title, page in links]
        caption = section.splitlines()[0]
        trees.append("\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""]))
    return index + "\n" + "\n".join(trees)


def assemble(source):
    for path in [ROOT / name for name in COPIED] + [*ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.c")]:
        target = source / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        # executed notebooks are pages
        target.write_text(path.read_text().replace(".ipynb)", ".md)"))
    index = source / "docs" / "index.md"
    index.write_text(with_navigation(index.read_text().replace("## Project", REFERENCE + "## Project")))
    (source / "docs" / "conf.py").rename(source / "conf.py")


def add_what_is_made(source):
    """The reference and the notebooks, in processes of their own, all at once."""
    tools, env = ROOT / "tools", dict(os.environ)
    env["PATH"] = os.pathsep.join([str(ROOT / "build"), env["PATH"]])
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "build" / "python"), *filter(None, [env.get("PYTHONPATH")])])
    runs = [[tools / "reference.py", source / "docs" / "reference"]]
    for notebook in sorted(ROOT.glob("docs/notebooks/*.ipynb")):
        runs.append([tools / "notebooks.py", notebook, source / "docs" / "notebooks" / f"{notebook.stem}.md"])
    started = [subprocess.Popen([sys.executable, *map(str, args)], env=env) for args in runs]
    if any([process.wait() for process in started]):
        raise SystemExit("site.py: see above")


def main():
    if not SPHINX.exists():
        raise SystemExit("no .venv-docs: ./run docs makes it")
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs")
    shutil.rmtree(folder, ignore_errors=True)
    assemble(folder / "source")
    add_what_is_made(folder / "source")
    strict = ["--fail-on-warning", "--keep-going", "-q", "-d", folder / "doctrees"]
    built = subprocess.run([SPHINX, "-m", "sphinx", "-b", "html", *strict, folder / "source", folder / "html"])
    if built.returncode:
        raise SystemExit("site.py: the pages have faults; see above")
    (folder / "html" / "index.html").write_text(REDIRECT)
    print(folder / "html" / "index.html")


if __name__ == "__main__":
    main()
