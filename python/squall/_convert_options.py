"""The options of `squall convert` as keywords of squall.convert: Python's values in the command's words, and its messages in Python's."""

import datetime
import math
import os
import re

import numpy as np


def _word(keyword, value, forbidden):
    """A text that may stand within an option's value."""
    text = str(value)
    if not text or any(letter in text for letter in forbidden):
        raise ValueError(f"{keyword}: {text!r} cannot be said: it is empty, or has one of {' '.join(forbidden)}")
    return text


def _refuse(keyword, value, wanted):
    raise TypeError(f"{keyword}: {value!r} is a {type(value).__name__}; wanted is {wanted}")


def _name(keyword, value):
    return value if isinstance(value, str) else _refuse(keyword, value, "a text")


def _pairs(keyword, value, number):
    """{"y": 352, "x": "all"}: y=352,x=all"""
    if isinstance(value, str):
        return value
    if not hasattr(value, "items"):
        _refuse(keyword, value, 'a dict such as {"y": 2, "x": 2}, or a text')
    return ",".join(f"{_word(keyword, key, ',=')}={number(keyword, one)}" for key, one in value.items()) or None


def _length(keyword, value):
    if isinstance(value, bool) or not isinstance(value, (int, np.integer, str)):
        _refuse(keyword, value, "a whole number")
    return "all" if value == -1 and keyword in ("chunks", "shards") else str(value)


def _lengths(keyword, value):
    """{"y": 352, "t2m": {"y": 100}}: y=352,t2m:y=100"""
    if not isinstance(value, dict):
        return _pairs(keyword, value, _length)
    flat = {}
    for key, one in value.items():
        flat |= {f"{_word(keyword, key, ',=:')}:{dim}": n for dim, n in one.items()} if isinstance(one, dict) else {key: one}
    return _pairs(keyword, flat, _length)


def _type(keyword, value):
    try:
        return value if isinstance(value, str) else np.dtype(value).name
    except TypeError:
        return _refuse(keyword, value, "a type of numpy's, or a dict of them")


def _each(keyword, value, say, between):
    """{"t2m": "float32", None: np.float16}: t2m=float32,float16"""
    if not isinstance(value, dict):
        return say(keyword, value)
    words = ((f"{_word(keyword, name, ',;=:+')}=" if name is not None else "") + say(keyword, one) for name, one in value.items())
    return between.join(words) or None


def _codec(keyword, value):
    """One chain, or {"t2m": "zstd:level=3", None: "none"}, which no document of Zarr's looks like."""
    if isinstance(value, dict) and not {"name", "id"} & set(value):
        return _each(keyword, value, _chain, ";")
    return _chain(keyword, value)


def _chain(keyword, value):
    """Zarr's own documents: [{"name": "zstd", "configuration": {"level": 3}}]: zstd:level=3"""
    return "+".join(_lines(keyword, value, _stage)) or "none"


def _stage(keyword, value):
    if not {"name"} <= set(value) <= {"name", "configuration"}:
        raise ValueError(f'{keyword}: {value!r} is not {{"name": …, "configuration": {{…}}}}')
    settings = _pairs(keyword, value.get("configuration", {}), lambda keyword, one: _word(keyword, one, ",+"))
    return _word(keyword, value["name"], ",=+:") + (f":{settings}" if settings else "")


def _alternatives(keyword, value):
    several = value if isinstance(value, (list, tuple, set, frozenset, np.ndarray)) else [value]
    return "|".join(_word(keyword, one, ",|") for one in several)


def _lines(keyword, value, line):
    """Each a text, or a dict that line() puts in words."""
    several = [value] if isinstance(value, (str, dict)) else value
    if not isinstance(several, (list, tuple)) or not all(isinstance(one, (str, dict)) for one in several):
        _refuse(keyword, value, "a dict, a list of them, or a text")
    return [one if isinstance(one, str) else line(keyword, one) for one in several]


def _select(keyword, value):
    """{"name": ["t2m", "d2m"], "level": 850}: name=t2m|d2m,level=850"""
    return _lines(keyword, value, lambda keyword, one: _pairs(keyword, one, _alternatives))


def _rename(keyword, value):
    """{"t2m": "temperature", "msl": "pressure"}: t2m=temperature and msl=pressure"""
    if isinstance(value, dict):
        return [f"{_word(keyword, old, '=')}={_word(keyword, new, '=')}" for old, new in value.items()]
    return _lines(keyword, value, lambda keyword, one: _refuse(keyword, value, "one dict, or a list of texts"))


def _span(keyword, value):
    """timedelta(hours=6), numpy.timedelta64(6, "h"): 6h"""
    if isinstance(value, str):
        return value
    if isinstance(value, np.timedelta64) and not np.isnat(value):
        value = value.astype("timedelta64[us]").item()
    if not isinstance(value, datetime.timedelta):
        _refuse(keyword, value, 'a timedelta, or a text such as "6h"')
    seconds, rest = divmod(value, datetime.timedelta(seconds=1))
    if rest or seconds <= 0:
        raise ValueError(f"{keyword}: {value!r} is not a span of whole seconds")
    unit, length = next((unit, length) for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)) if seconds % length == 0)
    return f"{seconds // length}{unit}"


def _seconds(keyword, value):
    """Whole seconds, not fewer than asked for; 0 for None."""
    if isinstance(value, datetime.timedelta):
        value = value.total_seconds()
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 <= value < 1e9:
        _refuse(keyword, value, "seconds from 0 on, or a timedelta")
    return math.ceil(value)


def _part(keyword, value):
    """(2, 5): 2/5"""
    return value if isinstance(value, str) else "/".join(_length(keyword, one) for one in value)


# how each option of `squall convert` that has a value is said in Python; first those that are lists
_LISTS = {"select": _select, "rename": _rename}
_TEXTS = {
    "chunks": _lengths,
    "shards": _lengths,
    "dtype": lambda keyword, value: _each(keyword, value, _type, ","),
    "bitround": lambda keyword, value: _each(keyword, value, _length, ","),
    "on_overflow": _name,
    "codec": _codec,
    "coarsen": lambda keyword, value: _pairs(keyword, value, _length),
    "y_order": _name,
    "schema": _name,
    "every": _span,
    "stack": _name,
    "stack_name": _name,
    "append_dim": _name,
    "concat_dim": _name,
    "drift": _name,
    "group": _name,
    "zarr_format": _length,
    "part": _part,
}
_OTHERS = ("prepend", "overwrite", "lock_timeout", "strict", "threads", "memory")
_NAMES = {name.replace("_", "-"): name for name in (*_LISTS, *_TEXTS, *_OTHERS)}
_OPTION = re.compile(f"--({'|'.join(_NAMES)})(?![a-z-])(:?)")


def in_words(keywords):
    """The keywords that are given as Work.convert takes them: texts in the command's syntax."""
    lists = {name: tuple(map(os.fsencode, say(name, keywords[name]))) for name, say in _LISTS.items() if keywords[name] is not None}
    texts = {name: say(name, keywords[name]) for name, say in _TEXTS.items() if keywords[name] is not None}
    return {"select": (), "rename": ()} | lists | texts


def in_python(text):
    """The library speaks of the command's options: in Python they are keywords."""
    text = _OPTION.sub(lambda found: _NAMES[found[1]] + (found[2] or "="), text)
    return text.replace("(--json lists all)", "(the report lists all)")
