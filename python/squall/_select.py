"""Advanced selections: integer arrays, lists, boolean masks; a.oindex and a.vindex.

The library reads boxes. A selection by arrays is read as one box where that is little more than what is asked for, else a box for each
chunk that something is taken from, on all threads, some MiB at a time; numpy then takes the elements out of it.
"""

import itertools
import math

import numpy as np

from squall._values import values_for

TOGETHER_BYTES, TOGETHER_BOXES = 64 << 20, 512  # boxes that are read at a time
ONE_BOX_BYTES = 64 << 20  # a box around everything may take that, or twice the result, before it is read chunk by chunk


def _index_array(item):
    """An integer or boolean array of a list, array or tuple."""
    array = np.asarray(item)
    if array.size == 0 and not isinstance(item, np.ndarray):
        array = array.astype(np.intp)
    if array.dtype != bool and not np.issubdtype(array.dtype, np.integer):
        raise IndexError(f"arrays used as indices must be of integer (or boolean) type, not {array.dtype}")
    return array


def _in_bounds(array, axis, length):
    """As int64 from 0 on."""
    array = array.astype(np.int64, copy=False)
    outside = (array < -length) | (array >= length)
    if outside.any():
        raise IndexError(f"index {array[outside][0]} is out of bounds for axis {axis} with size {length}")
    return np.where(array < 0, array + length, array)


def _is_integer(item):
    return isinstance(item, (int, np.integer)) and not isinstance(item, (bool, np.bool_))


def _mask_indices(mask, axis, shape):
    for d, length in enumerate(mask.shape):
        if length != shape[axis + d]:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + d}; "
                f"size of axis is {shape[axis + d]} but size of corresponding boolean axis is {length}"
            )
    return mask.nonzero()


def _key_parts(key):
    """The items of a key, arrays made of lists, and how many dimensions each selects from; an Ellipsis is put in where there is none."""
    parts = []
    for item in key if isinstance(key, tuple) else (key,):
        if item is Ellipsis:
            if any(part is Ellipsis for part, _ in parts):
                raise IndexError("an index can only have a single ellipsis ('...')")
            parts.append((item, 0))
        elif isinstance(item, slice) or _is_integer(item):
            parts.append((item, 1))
        elif item is None:
            raise IndexError("numpy.newaxis (None) is no selection of stored data: index the result with it")
        elif isinstance(item, (bool, np.bool_)):
            raise IndexError("a single True or False is no selection of stored data; a mask has the shape of what it selects from")
        else:
            array = _index_array(item)
            parts.append((array, array.ndim if array.dtype == bool else 1))
    return parts if any(part is Ellipsis for part, _ in parts) else [*parts, (Ellipsis, 0)]


def expand(key, shape):
    """A selector for each dimension: int, range (of a slice) or int64 array; and the position in the key that each came from."""
    parts = _key_parts(key)
    used = sum(n for _, n in parts)
    if used > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed")
    selectors, positions = [], []
    for position, (item, _) in enumerate(parts):
        axis = len(selectors)
        if item is Ellipsis:
            found = [range(shape[axis + d]) for d in range(len(shape) - used)]
        elif isinstance(item, slice):
            found = [range(shape[axis])[item]]
        elif isinstance(item, np.ndarray) and item.dtype == bool:
            found = _mask_indices(item, axis, shape)
        else:
            index = _in_bounds(np.asarray(item), axis, shape[axis])
            found = [int(index) if _is_integer(item) else index]
        selectors.extend(found)
        positions.extend([position] * len(found))
    return selectors, positions


def _slice(r):
    """The slice of a range that lies within a dimension."""
    if len(r) == 0:
        return slice(0, 0)
    return slice(r.start, r.stop if r.stop >= 0 else None, r.step)


def _span(indices):
    """The range, of the widest step, that holds all of the sorted distinct indices."""
    first, last = int(indices[0]), int(indices[-1])
    step = int(np.gcd.reduce(np.diff(indices))) if len(indices) > 1 else 1
    return range(first, last + 1, step)


def _spans_by_chunk(indices, chunk):
    """Where in the sorted distinct indices each chunk's lie, and their span."""
    cuts = np.flatnonzero(np.diff(indices // chunk)) + 1
    for begin, end in itertools.pairwise([0, *cuts.tolist(), len(indices)]):
        yield slice(begin, end), _span(indices[begin:end])


def _local(indices, span):
    """Positions of the indices in their span; a slice where they are all of it."""
    return slice(None) if len(span) == len(indices) else (indices - span.start) // span.step


def _take(box, locals_):
    """Orthogonally."""
    for axis, local in enumerate(locals_):
        if not isinstance(local, slice):
            box = box.take(local, axis=axis)
    return box


def _read_boxes(a, boxes):
    """Of (key, number of elements, anything) each: what a[key] gives, and anything; a key selects with slices alone."""
    if a.dtype.hasobject:
        yield from ((a[key], what) for key, _, what in boxes)
        return
    waiting, held_bytes = [], 0

    def read():
        return zip(a._read_boxes([key for key, _ in waiting]), [what for _, what in waiting], strict=True)

    for key, elements, what in boxes:
        if waiting and (held_bytes + elements * a.dtype.itemsize > TOGETHER_BYTES or len(waiting) == TOGETHER_BOXES):
            yield from read()
            waiting, held_bytes = [], 0
        waiting.append((key, what))
        held_bytes += elements * a.dtype.itemsize
    yield from read()


def read_orthogonal(a, selectors):
    """One axis for each selector but integers; a selector may be an int, a range, or a 1-D int64 array."""
    axes = [d for d, s in enumerate(selectors) if not isinstance(s, int)]
    shape = tuple(len(selectors[d]) for d in axes)
    if 0 in shape:
        return np.empty(shape, a.dtype)
    distinct, inverse = {}, {}
    for d in axes:
        if isinstance(selectors[d], np.ndarray):
            distinct[d], inverse[d] = np.unique(selectors[d], return_inverse=True)
    spans = {d: _span(indices) for d, indices in distinct.items()}
    key = [s if isinstance(s, int) else _slice(spans.get(d, s)) for d, s in enumerate(selectors)]
    shape = tuple(len(distinct.get(d, selectors[d])) for d in axes)
    box_elements = math.prod(len(spans.get(d, selectors[d])) for d in axes)
    if box_elements * a.dtype.itemsize <= max(ONE_BOX_BYTES, 2 * math.prod(shape) * a.dtype.itemsize):
        out = _take(a[tuple(key)], [_local(distinct[d], spans[d]) if d in spans else slice(None) for d in axes])
    else:
        out = np.empty(shape, a.dtype)

        def boxes():
            for parts in itertools.product(*(_spans_by_chunk(indices, a.chunks[d]) for d, indices in distinct.items())):
                part = dict(zip(distinct, parts, strict=True))
                for d, (_, span) in part.items():
                    key[d] = _slice(span)
                yield tuple(key), math.prod(len(part[d][1]) if d in part else len(selectors[d]) for d in axes), part

        for box, part in _read_boxes(a, boxes()):
            locals_ = [_local(distinct[d][part[d][0]], part[d][1]) if d in part else slice(None) for d in axes]
            out[tuple(part[d][0] if d in part else slice(None) for d in axes)] = _take(box, locals_)
    for axis, d in enumerate(axes):
        if d in inverse and not np.array_equal(inverse[d], np.arange(shape[axis])):
            out = out.take(inverse[d], axis=axis)
    return out


def read_points(a, selectors):
    """Arrays of one length n and ranges → n and the ranges' lengths."""
    arrays = {d: s for d, s in enumerate(selectors) if isinstance(s, np.ndarray)}
    n = len(next(iter(arrays.values())))
    shape = (n, *(len(s) for s in selectors if isinstance(s, range)))
    if 0 in shape:
        return np.empty(shape, a.dtype)
    order = [*arrays, *(d for d in range(len(selectors)) if d not in arrays)]

    def box(which):
        """Around some of the points: key, number of elements, and which points, where in the box they are."""
        key, local, elements = [None] * len(selectors), [], math.prod(shape[1:])
        for d, s in enumerate(selectors):
            if d in arrays:
                points = arrays[d][which]
                low, high = int(points.min()), int(points.max())
                key[d] = slice(low, high + 1)
                local.append(points - low)
                elements *= high + 1 - low
            else:
                key[d] = _slice(s)
        return tuple(key), elements, (which, tuple(local))

    def take(values, local):
        return values.transpose(order)[local]

    span_bytes = math.prod(int(s.max() - s.min()) + 1 for s in arrays.values()) * math.prod(shape[1:]) * a.dtype.itemsize
    if span_bytes <= max(ONE_BOX_BYTES // 16, 2 * math.prod(shape) * a.dtype.itemsize):
        key, _, (_, local) = box(slice(None))
        return take(a[key], local)
    chunk = np.zeros(n, np.int64)
    for d, s in arrays.items():
        chunk = chunk * -(-a.shape[d] // a.chunks[d]) + s // a.chunks[d]
    sorted_ = np.argsort(chunk, kind="stable")
    out = np.empty(shape, a.dtype)
    groups = np.split(sorted_, np.flatnonzero(np.diff(chunk[sorted_])) + 1)
    for values, (which, local) in _read_boxes(a, map(box, groups)):
        out[which] = take(values, local)
    return out


def _broadcast(arrays):
    try:
        return np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = " ".join(str(np.shape(x)) for x in arrays)
        raise IndexError(f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}") from None


def _read(a, selectors, front):
    """Arrays broadcast together. Their axes come first (front), or where the first of them stands."""
    advanced = [d for d, s in enumerate(selectors) if not isinstance(s, range)]
    broad = _broadcast([selectors[d] for d in advanced])
    shape = broad[0].shape
    # where only one of them is more than one index, the selection is a box of rows
    long = [d for d in advanced if np.size(selectors[d]) > 1]
    at = 0 if front else advanced[0]
    if len(long) <= 1 and math.prod(shape) == (np.size(selectors[long[0]]) if long else 1):
        one = long[0] if long else advanced[0]
        flat = [s if isinstance(s, range) else np.reshape(s, -1) for s in selectors]
        flat = [s if isinstance(s, range) or d == one else int(s[0]) for d, s in enumerate(flat)]
        rows = read_orthogonal(a, flat)
        rows = np.moveaxis(rows, sum(isinstance(s, range) for s in flat[:one]), at)
        return rows.reshape(rows.shape[:at] + shape + rows.shape[at + 1 :])
    flat = list(selectors)
    for d, x in zip(advanced, broad, strict=True):
        flat[d] = np.ascontiguousarray(x).reshape(-1)
    rows = np.moveaxis(read_points(a, flat), 0, at)
    return rows.reshape(rows.shape[:at] + shape + rows.shape[at + 1 :])


def read_advanced(a, key):
    """As numpy does it."""
    selectors, positions = expand(key, a.shape)
    where = sorted({p for p, s in zip(positions, selectors, strict=True) if not isinstance(s, range)})
    return _read(a, selectors, front=where[-1] - where[0] + 1 != len(where))


# ---- writing --------------------------------------------------------------------------------------------------------------------------


def _last_of_each(indices):
    """Sorted distinct indices, and where the last of each stands: what is assigned last stays."""
    distinct, from_the_end = np.unique(indices[::-1], return_index=True)
    return distinct, len(indices) - 1 - from_the_end


def write_orthogonal(a, selectors, values):
    """values: one axis for each selector but integers."""
    axes = [d for d, s in enumerate(selectors) if not isinstance(s, int)]
    if 0 in values.shape:
        return
    distinct = {}
    for axis, d in enumerate(axes):
        if isinstance(selectors[d], np.ndarray):
            distinct[d], last = _last_of_each(selectors[d])
            values = values.take(last, axis=axis) if not np.array_equal(last, np.arange(len(selectors[d]))) else values
    spans = {d: _span(indices) for d, indices in distinct.items()}
    key = [s if isinstance(s, int) else _slice(spans.get(d, s)) for d, s in enumerate(selectors)]
    if all(len(spans[d]) == len(distinct[d]) for d in spans):
        a[tuple(key)] = values
        return
    for parts in itertools.product(*(_spans_by_chunk(indices, (a.shards or a.chunks)[d]) for d, indices in distinct.items())):
        part = dict(zip(distinct, parts, strict=True))
        for d, (_, span) in part.items():
            key[d] = _slice(span)
        some = values[tuple(part[d][0] if d in part else slice(None) for d in axes)]
        locals_ = [_local(distinct[d][part[d][0]], part[d][1]) if d in part else slice(None) for d in axes]
        if all(isinstance(local, slice) for local in locals_):
            a[tuple(key)] = some
        else:
            lengths = [len(part[d][1]) if d in part else n for d, n in zip(axes, some.shape, strict=True)]
            a._update(tuple(key), np.ix_(*(np.arange(n)[local] for n, local in zip(lengths, locals_, strict=True))), some)


def write_points(a, selectors, values):
    """values: points first, then the ranges' lengths."""
    arrays = {d: s for d, s in enumerate(selectors) if isinstance(s, np.ndarray)}
    if 0 in values.shape:
        return
    objects = a.shards or a.chunks
    chunk = np.zeros(len(values), np.int64)
    for d, s in arrays.items():
        chunk = chunk * -(-a.shape[d] // objects[d]) + s // objects[d]
    order = np.argsort(chunk, kind="stable")
    rest = values.ndim - 1
    for which in np.split(order, np.flatnonzero(np.diff(chunk[order])) + 1):
        key, local, at = [None] * len(selectors), [None] * len(selectors), 0
        for d, s in enumerate(selectors):
            if d in arrays:
                points = s[which]
                low = int(points.min())
                key[d], local[d] = slice(low, int(points.max()) + 1), (points - low).reshape((-1,) + (1,) * rest)
            else:
                key[d], local[d], at = _slice(s), np.arange(len(s)).reshape((-1,) + (1,) * (rest - at - 1)), at + 1
        a._update(tuple(key), tuple(local), values[which])


def _write(a, selectors, value, front):
    """The reverse of _read."""
    advanced = [d for d, s in enumerate(selectors) if not isinstance(s, range)]
    broad = _broadcast([selectors[d] for d in advanced])
    shape = broad[0].shape
    at = 0 if front else advanced[0]
    ranges = tuple(len(s) for s in selectors if isinstance(s, range))
    values = values_for(value, a.dtype, ranges[:at] + shape + ranges[at:], a)
    values = values.reshape(ranges[:at] + (math.prod(shape),) + ranges[at:])
    flat = list(selectors)
    for d, x in zip(advanced, broad, strict=True):
        flat[d] = np.ascontiguousarray(x).reshape(-1)
    long = [d for d in advanced if np.size(selectors[d]) > 1]
    if math.prod(shape) and len(long) <= 1:
        one = long[0] if long else advanced[0]
        flat = [s if isinstance(s, range) or d == one else int(s[0]) for d, s in enumerate(flat)]
        write_orthogonal(a, flat, np.moveaxis(values, at, sum(isinstance(s, range) for s in flat[:one])))
    else:
        write_points(a, flat, np.moveaxis(values, at, 0))


def write_advanced(a, key, value):
    """As numpy does it."""
    selectors, positions = expand(key, a.shape)
    where = sorted({p for p, s in zip(positions, selectors, strict=True) if not isinstance(s, range)})
    _write(a, selectors, value, front=where[-1] - where[0] + 1 != len(where))


class Orthogonal:
    """a.oindex[...]: each dimension's integers, slice, array or mask by itself, as numpy.ix_ would have it."""

    def __init__(self, array):
        self._array = array

    def __getitem__(self, key):
        selectors, _ = expand(key, self._array.shape)
        for d, s in enumerate(selectors):
            if isinstance(s, np.ndarray) and s.ndim != 1:
                raise IndexError(f"oindex takes one-dimensional arrays; that for axis {d} has {s.ndim} dimensions")
        return read_orthogonal(self._array, selectors)

    def __setitem__(self, key, value):
        selectors, _ = expand(key, self._array.shape)
        shape = tuple(len(s) for s in selectors if not isinstance(s, int))
        write_orthogonal(self._array, selectors, values_for(value, self._array.dtype, shape, self._array))


class Points:
    """a.vindex[...]: points, given by arrays that are broadcast together; their dimensions come first, slices after."""

    def __init__(self, array):
        self._array = array

    def __getitem__(self, key):
        selectors, _ = expand(key, self._array.shape)
        if all(isinstance(s, range) for s in selectors):
            return self._array[tuple(_slice(s) for s in selectors)]
        return _read(self._array, selectors, front=True)

    def __setitem__(self, key, value):
        selectors, _ = expand(key, self._array.shape)
        if all(isinstance(s, range) for s in selectors):
            self._array[tuple(_slice(s) for s in selectors)] = value
        else:
            _write(self._array, selectors, value, front=True)
