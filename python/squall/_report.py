"""What squall.convert, status and verify return: the command's JSON as a mapping, which shows itself as the command's text."""

import html
import json
from collections.abc import Mapping

_MEANINGS = {
    0: "all done",
    1: "cannot be carried out",
    3: "finished, but not of all inputs: some were unreadable or ignored",
    5: "there is damage",
}


def printable(text):
    """Names of files may hold bytes that are no UTF-8: they can be printed, too."""
    return text.encode("utf-8", "backslashreplace").decode()


class Report(Mapping):
    """A mapping with what the command prints with --json; its keys are attributes, too: report.bad is report["bad"].

    exit_code   what the command would end with: 0 all done, 3 finished but for inputs that were unreadable or ignored, 5 damage
    meaning     of the exit code, in words
    ok          exit_code is 0
    seconds     it took
    text        for a person, as the command prints it
    """

    def __init__(self, document, text, exit_code=0, seconds=0.0, meaning=None):
        self._values = json.loads(document)
        self.text, self.exit_code, self.seconds = printable(text), exit_code, seconds
        self.meaning = meaning or _MEANINGS[exit_code]

    @property
    def ok(self):
        return self.exit_code == 0

    def __getitem__(self, key):
        return self._values[key]

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __getattr__(self, name):
        if name != "_values" and name in self._values:
            return self._values[name]
        raise AttributeError(f"the report has no {name}; it has {', '.join(self.__dict__.get('_values', ()))}")

    def __dir__(self):
        return sorted({*super().__dir__(), *self._values})

    def _last_line(self):
        return f"{self.seconds:.1f} s, exit code {self.exit_code}: {self.meaning}"

    def __repr__(self):
        return f"{self.text.rstrip()}\n{self._last_line()}"

    def _repr_html_(self):
        lists = {key: value for key, value in self._values.items() if isinstance(value, list) and value}
        parts = [f"<pre>{html.escape(self.text.rstrip())}</pre><p>{html.escape(self._last_line())}</p>"]
        for key, items in lists.items():
            rows = "".join(f"<tr>{_cells(item)}</tr>" for item in items[:1000])
            parts.append(f"<details><summary>{html.escape(key)}: {len(items)}</summary><table>{rows}</table></details>")
        return "<div>" + "".join(parts) + "</div>"


def _cells(item):
    values = item.values() if isinstance(item, dict) else [item]
    return "".join(f'<td style="text-align: left">{html.escape(printable(str(value)))}</td>' for value in values)
