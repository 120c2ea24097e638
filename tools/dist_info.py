#!/usr/bin/env python3
"""dist_info.py PYPROJECT FOLDER VERSION: METADATA and entry_points.txt of the package in a build folder, as pip would write them."""

import pathlib
import sys
import tomllib


def main(pyproject, folder, version):
    project = tomllib.loads(pathlib.Path(pyproject).read_text(encoding="utf-8"))["project"]
    metadata = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version}", f"Summary: {project['description']}"]
    metadata += [f"Requires-Dist: {requirement}" for requirement in project["dependencies"]]
    points = []
    for group, entries in project.get("entry-points", {}).items():
        points += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items()), ""]
    (pathlib.Path(folder) / "METADATA").write_text("\n".join([*metadata, ""]), encoding="utf-8")
    (pathlib.Path(folder) / "entry_points.txt").write_text("\n".join(points), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
