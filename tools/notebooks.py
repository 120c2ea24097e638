"""Runs a notebook and writes it as a Markdown page with what it printed and drew: tools/notebooks.py NOTEBOOK PAGE.

Pictures lie beside the page. A cell that fails ends it with the cell's error."""

import base64
import pathlib
import sys

import nbclient
import nbformat


def output_parts(output, page, number):
    if output.output_type == "stream" and output.name == "stderr":
        return []  # what schedulers log when the machine is busy
    if output.output_type == "stream":
        return [f"```text\n{output.text.rstrip()}\n```"]
    if "image/png" in output.data:
        picture = page.with_name(f"{page.stem}-{number}.png")
        picture.write_bytes(base64.b64decode(output.data["image/png"]))
        return [f"![{page.stem}, figure]({picture.name})"]
    return [f"```text\n{output.data['text/plain'].rstrip()}\n```"]


def main():
    notebook, page = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    content = nbformat.read(notebook, as_version=4)
    place = {"metadata": {"path": notebook.parent}}
    quiet = ["--log-level=ERROR"]
    client = nbclient.NotebookClient(
        content, timeout=120, startup_timeout=120, resources=place, extra_arguments=quiet, coalesce_streams=True
    )
    client.execute()
    page.parent.mkdir(parents=True, exist_ok=True)
    parts = []
    for number, cell in enumerate(content.cells):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            shell, _, commands = cell.source.partition("%%sh\n")
            parts.append(f"```sh\n{commands}\n```" if commands and not shell else f"```python\n{cell.source}\n```")
            for output in cell.outputs:
                parts += output_parts(output, page, number)
    page.write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
