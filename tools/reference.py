"""The reference pages, as Markdown: of the command from its manual page, of Python from docstrings, of C from the comments of its headers.

tools/reference.py FOLDER writes command.md, python.md and c.md into it; squall has to be built, and the package on the path."""

import inspect
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]


def prose(text):
    """Running text, in which only `backticks` are Markdown's marks."""
    parts = text.split("`")
    return "`".join(re.sub(r"([*_<>|\[\]\\])", r"\\\1", part) if i % 2 == 0 else part for i, part in enumerate(parts))


def fence(language, text):
    return f"```{language}\n{text.rstrip()}\n```\n"


def paragraphs(text):
    """Comments and docstrings: what is aligned or indented stays as it is, the rest is running text."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.splitlines()
        start = next((i for i, line in enumerate(lines) if re.search(r"^\s|\S {2,}\S", line)), len(lines))
        if start:
            parts.append(prose(" ".join(lines[:start])) + "\n")
        if start < len(lines):
            parts.append(fence("text", inspect.cleandoc("\n".join(["", *lines[start:]]))))
    return "\n".join(parts)


def command_page():
    """The manual page, section by section."""
    parts, options = ["# The command\n\nThe same as `man squall` and `squall help COMMAND`.\n"], []
    manual = (ROOT / "build" / "squall.1").read_text()
    lines = iter(manual[manual.index(".SH COMMANDS") :].splitlines())

    def plain(line):
        return re.sub(r"\\f[BRI]", "", line).replace("\\-", "-").replace("\\e", "\\")

    def close_options():
        if options:
            rows = ["| `{}` | {} |".format(name.strip().replace("|", "\\|"), prose(text)) for name, text in options]
            parts.append("| option | |\n|---|---|\n" + "\n".join(rows) + "\n")
            options.clear()

    for line in lines:
        if line.startswith((".SH ", ".SS ")):
            close_options()
            name = plain(line[4:])
            parts.append(f"## {name.capitalize()}\n" if line.startswith(".SH") else f"### `{name}`\n")
        elif line == ".TP":
            options.append((plain(next(lines)), ""))
        elif not line.startswith("."):
            if options:
                options[-1] = (options[-1][0], f"{options[-1][1]} {plain(line)}".strip())
            elif parts[-1].startswith("#"):
                parts.append(prose(plain(line)) + "\n")
            else:
                parts[-1] = parts[-1].rstrip("\n") + " " + prose(plain(line)) + "\n"
    close_options()
    return "\n".join(parts)


def signature(name, function):
    """How it is called."""
    parameters = [p for key, p in inspect.signature(function).parameters.items() if key != "self"]
    line = name + str(inspect.Signature(parameters))
    return fence("python", textwrap.fill(line, 100, subsequent_indent="    ", break_on_hyphens=False))


def python_members(cls):
    parts = []
    for name, member in vars(cls).items():
        function = member.fget if isinstance(member, property) else member
        if inspect.isfunction(function) and function.__doc__ and not name.startswith("_"):
            parts.append(f"### `{cls.__name__}.{name}`\n")
            parts += [signature(name, function)] if inspect.isfunction(member) else []
            parts.append(paragraphs(inspect.getdoc(function)))
    return parts


def python_page():
    import squall
    import squall.xarray
    import squall.zarr

    parts = ["# Python\n", paragraphs(inspect.getdoc(squall))]
    for name in sorted(squall.__all__, key=str.lower):
        thing = getattr(squall, name)
        parts.append(f"## `squall.{name}`\n")
        parts += [signature(name, thing)] if inspect.isfunction(thing) else []
        parts.append(paragraphs(inspect.getdoc(thing) or ""))
        parts += python_members(thing) if inspect.isclass(thing) else []
    for module in (squall.xarray, squall.zarr):
        parts += [f"## `{module.__name__}`\n", paragraphs(inspect.getdoc(module))]
    return "\n".join(parts)


def c_blocks(text):
    """(comment, declarations) of a header: what blank lines set apart, outside of braces and comments."""
    text = re.sub(r"^#.*\n|^extern \"C\" \{\n|^\}\n#endif\n", "", text, flags=re.MULTILINE)
    block, depth = [], 0
    for line in [*text.splitlines(), ""]:
        in_comment = "\n".join(block).count("/*") > "\n".join(block).count("*/")
        if line.strip() or depth or in_comment:
            block.append(line)
            code = re.sub(r"/\*.*?\*/|\"[^\"]*\"", "", line)
            depth += 0 if in_comment else code.count("{") - code.count("}")
        elif block:
            whole = "\n".join(block)
            comment = re.match(r"/\*(.*?)\*/\n?", whole, re.DOTALL)
            yield (comment[1] if comment else ""), whole[comment.end() if comment else 0 :]
            block = []


def c_names(code):
    code = re.sub(r"/\*.*?\*/", "", code, flags=re.DOTALL)
    types = re.findall(r"^(?:struct|enum) \w+(?= \{)|(?<=^typedef ).*(?=;)", code, re.MULTILINE)
    return [re.sub(r"^struct (\w+) \1$", r"\1", name) for name in types] + re.findall(r"^\S.*?\b(squall_\w+)\(", code, re.MULTILINE)


def c_page():
    headers = [path for path in sorted((ROOT / "include" / "squall").glob("*.h")) if path.name != "squall.h"]
    parts = ["# C\n\n`#include <squall/squall.h>` is all of these headers. How they are used: [for users of C](../c.md).\n"]
    for path in headers:
        parts.append(f"## squall/{path.name}\n")
        for comment, code in c_blocks(path.read_text()):
            names = c_names(code)
            if names:
                parts.append("### " + ", ".join(f"`{name}`" for name in names) + "\n")
            if comment:
                parts.append(paragraphs(re.sub(r"^ \* ?", "", comment.strip("\n "), flags=re.MULTILINE).removeprefix("* ").strip()))
            if code.strip():
                parts.append(fence("c", code))
    return "\n".join(parts)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in (("command", command_page), ("python", python_page), ("c", c_page)):
        (folder / f"{name}.md").write_text(page())


if __name__ == "__main__":
    main()
