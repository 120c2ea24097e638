"""Attributes with types: what JSON and numpy's name of a type make together."""

import json

import numpy as np
import pytest
from squall._attributes import Attributes, typed
from squall._types import dtype_of


class Dataset:
    """As far as attributes look at one."""

    changed: dict = {}
    writable = False


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("9.96921e+36", "<f4", np.float32(9.96921e36)),
        ("[0, 1]", "|i1", np.array([0, 1], "i1")),
        ("18446744073709551615", "<u8", np.uint64(2**64 - 1)),
        ("[]", "<f8", np.array([], "f8")),
        ("true", "|b1", np.True_),
        ("[1.5, -2.0]", "<c16", np.complex128(1.5 - 2j)),
        ("[[1.5, -2.0], [0.0, 1.0]]", "<c8", np.array([1.5 - 2j, 1j], "c8")),
        ("[1, 2, 255]", "|V3", np.void(b"\1\2\xff")),
        ("[[1, 2], [3, 4]]", "|V2", np.array([b"\1\2", b"\3\4"], "V2")),
        ("86400", "<M8[s]", np.datetime64("1970-01-02", "s")),
        ("[[1, 2], [3, 4]]", "<i2", np.array([[1, 2], [3, 4]], "i2")),
        ('{"a": 1, "b": [1.5, 2.5]}', "[('a', '<i4'), ('b', '<f4', (2,))]", np.array((1, [1.5, 2.5]), [("a", "i4"), ("b", "f4", 2)])[()]),
        ('[{"a": 1}, {"a": 2}]', "[('a', '<i4')]", np.array([(1,), (2,)], [("a", "i4")])),
    ],
)
def test_json_and_a_type_make_the_value_that_numpy_has(text, name, expected):
    value = typed(json.loads(text), dtype_of(name))
    assert type(value) is type(expected) and value.dtype == expected.dtype and np.array_equal(value, expected)


def test_attributes_without_a_type_are_what_json_says():
    attributes = Attributes(('{"units": "K", "scale": 0.5, "_FillValue": -1}', '{"_FillValue": "<i2"}'), Dataset(), "")
    assert attributes.asdict() == {"units": "K", "scale": 0.5, "_FillValue": -1}
    assert [type(v) for v in attributes.values()] == [str, float, np.int16]
