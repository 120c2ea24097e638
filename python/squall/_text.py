"""How groups and arrays show themselves: as users of xarray know it."""

WIDTH = 100


def bytes_text(count):
    """xarray's way: 0B, 999B, 1kB, 399MB."""
    units = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
    size, at = float(count), 0
    while size >= 1000 and at < len(units) - 1:
        size, at = size / 1000, at + 1
    return f"{size:.0f}{units[at]}"


def size_text(array):
    try:
        return bytes_text(array.nbytes)
    except TypeError:  # a type that numpy does not know here
        return "?B"


def _shorten(text, width):
    text = text.replace("\n", " ")
    return text if len(text) <= width else text[: width - 3] + "..."


def _attribute_lines(attrs, indent=""):
    if not attrs:
        return []
    width = max(len(k) for k in attrs)
    return [f"{indent}Attributes:"] + [_shorten(f"{indent}    {k + ':':<{width + 3}}{v}", WIDTH) for k, v in attrs.items()]


def _tuple_text(numbers):
    return "(" + ", ".join(map(str, numbers)) + ("," if len(numbers) == 1 else "") + ")"


def array_text(a):
    dims = ", ".join(f"{d or '?'}: {n}" for d, n in zip(a.dims, a.shape, strict=True))
    lines = [f"<squall.Array {a.name!r} ({dims})> {a.type_name} {size_text(a)}"]
    if a.ndim:
        lines.append("Chunks: " + _tuple_text(a.chunks) + (f" in shards {_tuple_text(a.shards)}" if a.shards else ""))
    if a.codecs:
        lines.append("Codecs: " + a.codecs)
    if a.unsupported:
        lines.append("Cannot be read: " + a.unsupported)
    return "\n".join(lines + _attribute_lines(a.attrs))


def group_text(group):
    where = group.path + (f" group {group.name}" if group.name else "")
    lines = [f"<squall.Group> {where} ({group.format})"]
    if group.dims:
        lines.append("Dimensions:  (" + ", ".join(f"{d}: {n}" for d, n in group.dims.items()) + ")")
    arrays = list(group.arrays.values())
    named = {x for a in arrays for x in str(a.attrs.get("coordinates", "")).split()}
    coordinates = [a for a in arrays if a.dims == (a.basename,) or a.basename in named]
    variables = [a for a in arrays if a not in coordinates]
    width = max((len(a.basename) for a in arrays), default=0) + 2
    for title, some in (("Coordinates:", coordinates), ("Data variables:", variables)):
        lines += [title] if some else []
        for a in some:
            star = "*" if a.dims == (a.basename,) else " "
            dims = f"({', '.join(d or '?' for d in a.dims)}) " if a.ndim else ""
            chunks = f" chunks {_tuple_text(a.chunks)}" if a.ndim else ""
            cannot = f"  cannot be read: {a.unsupported}" if a.unsupported else ""
            lines.append(_shorten(f"  {star} {a.basename:<{width}}{dims}{a.type_name} {size_text(a)}{chunks}{cannot}", WIDTH))
    if group.groups:
        lines.append("Groups: " + ", ".join(group.groups))
    return "\n".join(lines + _attribute_lines(group.attrs))
