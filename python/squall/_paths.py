"""Paths as callers give them, in every function alike."""

import os

from squall._errors import UnsupportedError


def path_text(path):
    """A path as text, with the home folder in the place of ~, as xarray takes paths. Refused: nothing, and addresses."""
    text = os.path.expanduser(os.fsdecode(path))
    if not text:
        raise FileNotFoundError("the path is empty")
    if "://" in text:
        reason = f"{text}: squall reads and writes files that this machine sees; not yet by {text.partition('://')[0]}"
        raise UnsupportedError(reason, path=text)
    return text
