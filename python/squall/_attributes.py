"""Attributes: what a store says of a group or an array, in its order."""

from collections.abc import MutableMapping


class Attributes(MutableMapping):
    """A mapping of attribute names to what JSON can say. Of what was opened for reading it cannot be changed."""

    __slots__ = ("_values",)

    def __init__(self, values):
        self._values = values

    def __getitem__(self, name):
        return self._values[name]

    def __setitem__(self, name, value):
        self._refuse()

    def __delitem__(self, name):
        self._refuse()

    def _refuse(self):
        raise PermissionError('attributes of what was opened for reading cannot be changed; open it with mode="r+"')

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
