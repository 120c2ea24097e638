"""Attributes: what a store says of a group or an array, in its order."""

import json
from collections.abc import MutableMapping

from squall import _squall
from squall._errors import ReadOnlyError


class Attributes(MutableMapping):
    """A mapping of attribute names to what JSON can say. Where the dataset was opened for writing, a change is stored at once."""

    __slots__ = ("_dataset", "_name", "_values")

    def __init__(self, text, dataset, name):
        self._values, self._dataset, self._name = json.loads(dataset.changed.get(name, text)), dataset, name

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
        for name in values:
            if not isinstance(name, str):
                raise TypeError(f"names of attributes are texts; got {name!r}")
        text = json.dumps(values)
        _squall.set_attributes(self._dataset.path, self._name, text)
        self._values, self._dataset.changed[self._name] = json.loads(text), text

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
