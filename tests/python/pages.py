"""Runs what a page of the documentation shows, from top to bottom, in the current folder: python tests/python/pages.py PAGE.

    ```python      is executed; the blocks of a page share one namespace
    ```pycon       >>> lines are executed in it, and what they print must be what the page shows (doctest)
    ```console     $ lines are commands, > goes on with one; what they print must be the lines below, where there are any
    ```sh          is executed as a script that ends at the first error
    ```python no-run, ```sh no-run   need what a test has not, a cluster perhaps: only their syntax is checked
    <!-- file: NAME --> above a block: it is written to that file, and not executed

In what is shown `...` stands for anything. All other blocks, and those that are indented, are for reading. A page that begins with
<!-- input: archive era5 --> finds these in its folder; docs/inputs.py makes them, test_docs.py the others."""

import ast
import dataclasses
import doctest
import pathlib
import re
import subprocess
import sys

FENCE = re.compile(r"^```(\S*) *(.*)$")


@dataclasses.dataclass
class Block:
    line: int  # of its first line of code, from 1
    language: str
    options: str
    text: str
    file: str | None

    @property
    def runs(self):
        return self.file is None and "no-run" not in self.options and self.language in ("python", "pycon", "console", "sh")


def blocks(page):
    """The fenced blocks of a page."""
    found, lines, fence, above = [], pathlib.Path(page).read_text().splitlines(), None, ""
    for number, line in enumerate(lines, 1):
        match = FENCE.match(line)
        if fence and line == "```":
            language, options, start, file = fence
            found.append(Block(start, language, options, "\n".join(lines[start - 1 : number - 1]) + "\n", file))
            fence = None
        elif match and not fence:
            named = re.fullmatch(r"<!-- file: (\S+) -->", above.strip())
            fence = (match[1], match[2], number + 1, named and named[1])
        above = line if line.strip() else above
    if fence:
        raise SystemExit(f"{page}:{fence[2]}: a block without an end")
    return found


def inputs(page):
    """What the page's first line says that it needs."""
    match = re.match(r"<!-- input: ([\w. ]+) -->", pathlib.Path(page).read_text())
    return match[1].split() if match else []


def commands(text):
    """(command, what is shown of its output) of a console block."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (found[-1][0] + "\n" + line[2:], [])
        else:
            found[-1][1].append(line)
    return found


def same(shown, printed):
    """Whether a command printed what the page shows: ... is anything, spaces at line ends do not count."""
    tidy = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    pattern = re.escape("\n".join(line.rstrip() for line in shown)).replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, tidy, re.DOTALL) is not None


def run_console(page, block):
    for command, shown in commands(block.text):
        done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise SystemExit(f"{page}:{block.line}: {command}: exit code {done.returncode}\n{done.stdout}")
        if shown and not same(shown, done.stdout):
            raise SystemExit(f"{page}:{block.line}: {command}: prints\n{done.stdout}\nand the page shows\n" + "\n".join(shown))


def run_pycon(page, block, names):
    test = doctest.DocTestParser().get_doctest(block.text, names, str(page), str(page), block.line - 1)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if doctest.DocTestRunner(optionflags=options).run(test, clear_globs=False).failed:
        raise SystemExit(1)
    names.update(test.globs)


def run(page):
    names = {"__name__": "__main__"}
    for block in blocks(page):
        if block.file:
            pathlib.Path(block.file).write_text(block.text)
        elif block.language == "python":
            code = ast.parse("\n" * (block.line - 1) + block.text, str(page))
            if block.runs:
                exec(compile(code, str(page), "exec"), names)
        elif block.language == "sh" and not block.runs:
            subprocess.run(["bash", "-n", "-c", block.text], check=True)
        elif block.language == "sh":
            if subprocess.run(["bash", "-e", "-c", block.text]).returncode:
                raise SystemExit(f"{page}:{block.line}: a command failed")
        elif block.language == "console":
            run_console(page, block)
        elif block.language == "pycon":
            run_pycon(page, block, names)


if __name__ == "__main__":
    run(sys.argv[1])
