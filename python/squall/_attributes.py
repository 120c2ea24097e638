"""Attributes: what a file or store says of a group or an array, in its order."""

import base64
import json
import numbers
import struct
from collections.abc import Mapping, MutableMapping

import numpy as np

from squall import _squall
from squall._errors import ReadOnlyError, refuse_header
from squall._types import dtype_of

_decode = json.JSONDecoder().raw_decode


def from_json(text):
    """What a text that squall wrote says. Opening a small file parses a dozen, and json.loads takes three times as long for one."""
    return _decode(text)[0]


class Attributes(MutableMapping):
    """A mapping of attribute names to values: where the format types them, numpy scalars and arrays; else what JSON can say. Texts are str.
    Where the dataset was opened for writing, a change is stored at once."""

    __slots__ = ("_dataset", "_dtype", "_name", "_values")

    def __init__(self, texts, dataset, name, dtype=None):
        self._dtype = dtype  # of an array
        text, types = texts
        self._values, self._dataset, self._name = from_json(dataset.changed.get(name, text)), dataset, name
        if types is not None:
            self._values |= {k: typed(self._values[k], dtype_of(t)) for k, t in from_json(types).items()}

    def __getitem__(self, name):
        return self._values[name]

    def __setitem__(self, name, value):
        self._store({**self._values, name: value})

    def __delitem__(self, name):
        self._values[name]  # a KeyError
        self._store({k: v for k, v in self._values.items() if k != name})

    def update(self, *args, **kwargs):
        """As of dict; stored once."""
        self._store(self._values | dict(*args, **kwargs))

    def put(self, values):
        """Put values in the place of all attributes."""
        self._store(dict(values))

    def clear(self):
        self._store({})

    def _store(self, values):
        if not self._dataset.writable:
            raise ReadOnlyError("opened for reading: attributes cannot be changed, for mode is not 'r+'", path=self._dataset.path)
        refuse_header(self._dataset, "attributes are to be changed")
        text = as_json(values, self._dtype)
        _squall.set_attributes(self._dataset.path, self._name, text)
        self._values, self._dataset.changed[self._name] = from_json(text), text

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __contains__(self, name):
        return name in self._values

    def asdict(self):
        """A copy, as a dict."""
        return dict(self._values)

    def __repr__(self):
        return repr(self._values)


def as_json(attributes, dtype=None):
    """Attributes as a store holds them: numpy's scalars and arrays become JSON's, and bytes texts. dtype: of the array that has them."""
    texts = []
    for name, value in attributes.items():
        if not isinstance(name, str):
            raise TypeError(f"names of attributes are texts; got {name!r}")
        if name == "_FillValue" and dtype is not None and dtype.kind == "f" and isinstance(value, (numbers.Real, np.floating)):
            value = base64.b64encode(struct.pack("<d", value)).decode()  # as xarray has it in Zarr
        try:
            texts.append(f"{json.dumps(name)}: {json.dumps(value, default=_plain)}")
        except (TypeError, ValueError):
            raise TypeError(f"attribute {name} is {value!r}, which JSON has not: numbers, texts, lists and mappings of them") from None
    return f"{{{', '.join(texts)}}}"


def _plain(value):
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype.kind in "biufOSUT":
        return (value.astype("f8") if value.dtype.kind == "f" else value).tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError


def typed(value, dtype):
    """What JSON says of a value of this type, as attribute_types in include/squall/array.h tells: a numpy scalar or array."""
    if dtype.kind in "iuf" and isinstance(value, (int, float)):
        return dtype.type(value)  # ten times as fast
    return np.array(_elements(value, dtype), dtype)[()]


def _elements(value, dtype):
    """With elements in the form that numpy.array takes."""
    if dtype.names:
        if isinstance(value, list):
            return [_elements(v, dtype) for v in value]
        return tuple(_elements(value[name], dtype[name].base) for name in dtype.names)
    if dtype.kind not in "cV" or not isinstance(value, list) or not value:
        return value
    if isinstance(value[0], list):
        return [_elements(v, dtype) for v in value]
    return complex(*value) if dtype.kind == "c" else np.void(bytes(value))
