"""Progress of long work: a bar of tqdm's where that is installed, lines of text where not, or numbers for a callable."""

import sys
import time
import warnings
from typing import NamedTuple


class Progress(NamedTuple):
    """How far a conversion or check is; what a callable given as progress= gets. The numbers only grow, and units is never 0.

    units_done, units   of all to do: units of a conversion, chunks of a check
    bytes_in            read
    bytes_out           written
    seconds             since it began
    """

    units_done: int
    units: int
    bytes_in: int
    bytes_out: int
    seconds: float


def listener(progress, noun):
    """What progress= asks for: an object with show(numbers), called now and then and at the end, and close()."""
    if progress is True:
        return _bar(noun)
    if progress is False or progress is None:
        return _Silent()
    if callable(progress):
        return _Called(progress)
    raise TypeError(f"progress={progress!r}: True, False, or a function that is called with a squall.Progress")


def size_text(size_bytes):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.1f} {unit}" if unit != "B" else f"{size_bytes} B"
        size_bytes /= 1024
    return f"{size_bytes:.1f} TiB"


def _sizes(numbers):
    return f"{size_text(numbers.bytes_in)} in" + (f", {size_text(numbers.bytes_out)} out" if numbers.bytes_out else "")


def _is_live():
    """Can a line be written again, on a terminal or in a notebook?"""
    return "ipykernel" in sys.modules or sys.stderr.isatty()


class _Silent:
    def show(self, numbers):
        pass

    def close(self):
        pass


class _Called(_Silent):
    def __init__(self, function):
        self._function = function
        self._last = None

    def show(self, numbers):
        if numbers.units and numbers[:4] != self._last:
            self._last = numbers[:4]
            self._function(numbers)


def _bar(noun):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in a notebook without ipywidgets tqdm says so, and shows text
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return _Text(noun)
    return _Tqdm(tqdm, noun)


class _Tqdm:
    def __init__(self, tqdm, noun):
        self._tqdm, self._noun, self._bar = tqdm, noun, None

    def show(self, numbers):
        if numbers.units == 0:
            return
        if self._bar is None:
            pause_s = 0.1 if _is_live() else 10
            self._bar = self._tqdm(total=numbers.units, unit=f" {self._noun}", mininterval=pause_s)
        self._bar.set_postfix_str(_sizes(numbers), refresh=False)
        self._bar.update(numbers.units_done - self._bar.n)

    def close(self):
        if self._bar is not None:
            self._bar.close()


class _Text:
    """As the command shows it: a line that is written again and again, or one every ten seconds where that cannot be."""

    def __init__(self, noun):
        self._noun, self._live, self._shown = noun, _is_live(), time.monotonic()
        self._width = 0

    def show(self, numbers):
        now, pause_s = time.monotonic(), 0.1 if self._live else 10
        at_end = self._live and numbers.units_done == numbers.units
        if numbers.units == 0 or (now - self._shown < pause_s and not at_end):
            return
        self._shown = now
        filled = 24 * numbers.units_done // numbers.units
        line = f"[{'#' * filled:.<24}] {numbers.units_done}/{numbers.units} {self._noun}  {_sizes(numbers)}"
        self._width = max(self._width, len(line))
        print(f"\r{line:<{self._width}}" if self._live else line, end="" if self._live else "\n", file=sys.stderr, flush=True)

    def close(self):
        if self._width and self._live:
            print(file=sys.stderr, flush=True)
