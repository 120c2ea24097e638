#!/usr/bin/env python3
"""The include rule: a floor of src/ includes only itself and the floors below it; the command uses the public headers only;
public headers include only each other; the system's own headers are for src/sys, and for files in src/io. Also: the library calls nothing
that ends the process, prints or reads the environment."""

import pathlib
import re
import sys

FLOORS = ["base", "sys", "array", "codec", "io", "format", "engine", "cube", "store", "convert"]
BANNED = "abort exit getenv printf puts perror strcpy strcat sprintf vsprintf gets strtok alloca system popen".split()
SYSTEM = re.compile(r"^\s*#\s*include\s+<((?:sys/.*|pthread|unistd|fcntl|dirent|sched|signal|poll|dlfcn|termios)(?:\.h)?)>", re.M)
SYSTEM_ALLOWED = ("src/sys/", "src/io/", "src/cli/", "src/base/memory.c")  # the command sees public headers only; memory.c maps pages
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
COMMENTS_AND_TEXTS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', re.S)


def faults(path: pathlib.Path, root: pathlib.Path):
    text = path.read_text(encoding="utf-8")
    parts = path.relative_to(root).parts
    includes = INCLUDE.findall(text)
    if not path.relative_to(root).as_posix().startswith(SYSTEM_ALLOWED):
        yield from (f"<{i}> is for src/sys" for i in SYSTEM.findall(text))
    if parts[0] == "include":
        yield from (f"public header includes {i}" for i in includes if not i.startswith("squall/"))
        return
    floor = parts[1]
    if floor == "cli":
        yield from (f"the command includes {i}" for i in includes if "/" in i and not i.startswith("squall/"))
        return
    for include in includes:
        other = include.split("/")[0]
        if other == "squall":
            continue
        if "/" not in include:
            yield f'"{include}" does not name its floor'
        elif other not in FLOORS or FLOORS.index(other) > FLOORS.index(floor):
            yield f"{floor} includes {include}: a floor above it"
    code = COMMENTS_AND_TEXTS.sub("", text)
    for name in sorted(set(re.findall(r"(?<![\w.>])(\w+)\s*\(", code)) & set(BANNED)):
        yield f"the library must not call {name}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    found = 0
    for path in sorted([*root.glob("src/**/*.[ch]"), *root.glob("include/**/*.h")]):
        for fault in faults(path, root):
            print(f"{path.relative_to(root)}: {fault}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
