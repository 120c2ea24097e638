"""Random HDF5 files made by h5py: datasets with the layouts and chunk indexes of all library versions, filters and masks of them, types,
fill values, what was written and what was not, and sizes changed afterwards; in groups with few members and with many. They are drawn by
hypothesis, which makes what fails smaller."""

import ctypes
import glob
import math
import os

import h5py
import hdf5plugin
import numpy as np
from hypothesis import strategies as st

VERSIONS = "earliest v108 v110 v112 v114 latest".split()
TEXTS = ["", "a", "Zürich", "🎉", "x" * 40]
EDGES_UNFILTERED = 2  # H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS


def library():
    """The libhdf5 that h5py brought, for what h5py does not call."""
    return ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(h5py.__file__), "..", "h5py.libs", "libhdf5-*"))[0])


def region_text(f, reference):
    """The object, and the blocks or points that h5py finds selected."""
    space, name = h5py.h5r.get_region(reference, f.id), f[reference].name
    if space.get_select_type() == h5py.h5s.SEL_ALL:
        return f"{name}[...]"
    if space.get_select_type() == h5py.h5s.SEL_POINTS:
        return f"{name}[{'; '.join(', '.join(map(str, point)) for point in space.get_select_elem_pointlist())}]"
    blocks = space.get_select_hyper_blocklist()
    return f"{name}[{'; '.join(', '.join(f'{a}:{b + 1}' for a, b in zip(*block, strict=True)) for block in blocks)}]"


def set_fill_value(plist, low, value):
    """Of types that h5py does not take fill values of; value holds one element."""
    assert library().H5Pset_fill_value(ctypes.c_int64(plist.id), ctypes.c_int64(low.id), value.ctypes.data_as(ctypes.c_void_p)) == 0


# ---- types -----------------------------------------------------------------------------------------------------------------------------


def number(rng):
    return np.dtype(rng.choice("<>") + rng.choice("i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f4 f4 f8".split()))


def structure(rng, depth=0):
    kinds = [lambda: number(rng), lambda: np.dtype("S3"), lambda: np.dtype((number(rng), (2,))), lambda: np.dtype(bool)]
    if depth == 0:
        kinds.append(lambda: structure(rng, 1))
    fields = [(f"f{i}", rng.choice(kinds)()) for i in range(rng.randint(1, 4))]
    return np.dtype(fields, align=rng.random() < 0.3)


def any_type(rng):
    if rng.random() < 0.55:
        return "number", number(rng)
    return rng.choice(
        [
            lambda: ("complex", np.dtype(rng.choice(["<c8", "<c16", ">c8"]))),
            lambda: ("bool", np.dtype(bool)),
            lambda: ("enum", h5py.enum_dtype({"A": 0, "B": 1, "C": -5}, np.dtype(rng.choice("<>") + rng.choice(["i1", "i2", "i4"])))),
            lambda: ("text", h5py.string_dtype("utf-8")),
            lambda: ("bytes", np.dtype(f"S{rng.choice([1, 5, 12])}")),
            lambda: ("raw", np.dtype(f"V{rng.choice([1, 3, 8])}")),
            lambda: ("sequence", h5py.vlen_dtype(number(rng).newbyteorder("<"))),  # h5py does not turn others
            lambda: ("structure", structure(rng)),
            lambda: ("array", np.dtype((number(rng), rng.choice([(2,), (3, 2)])))),
            lambda: ("reference", h5py.ref_dtype),
        ]
    )()


def stored_type(rng, kind, dtype):
    """What h5py has no numpy type for: texts padded in other ways, numbers of odd sizes and bits."""
    low = h5py.h5t.py_create(dtype, logical=True)
    if kind == "bytes":
        low.set_strpad(rng.choice([h5py.h5t.STR_NULLTERM, h5py.h5t.STR_NULLPAD, h5py.h5t.STR_SPACEPAD]))
    if kind == "number" and dtype.kind in "iu" and rng.random() < 0.1 and dtype.itemsize > 1:
        low = low.copy()
        low.set_precision(dtype.itemsize * 8 - rng.randint(1, 7))
        low.set_offset(rng.randint(0, 1))
    return low


def some_values(rng, make, kind, dtype, shape):
    count = math.prod(shape)
    if kind == "text":
        values = [rng.choice(TEXTS) for _ in range(count)]
    elif kind == "sequence":
        base = h5py.check_vlen_dtype(dtype)
        values = [bits(make, (rng.choice([0, 1, 1, 5]),), base) for _ in range(count)]
    elif kind == "bytes":
        values = [bytes(rng.choice(b"ab c\0") for _ in range(rng.randint(0, dtype.itemsize))).rstrip(b" ") for _ in range(count)]
        return np.array(values, dtype).reshape(shape)
    elif kind == "enum":
        return make.choice([0, 1, -5], shape).astype(dtype)
    elif dtype.subdtype:
        return bits(make, shape + dtype.shape, dtype.base)
    else:
        return bits(make, shape, dtype)
    out = np.empty(count, object)
    for i, value in enumerate(values):
        out[i] = value
    return out.reshape(shape)


def bits(make, shape, dtype):
    """Any bits; of small integers, so that filters have something to do, in half of the cases."""
    if dtype.kind == "b":
        return make.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iuf" and make.integers(2):
        return make.integers(0 if dtype.kind == "u" else -50, 50, shape).astype(dtype)
    if dtype.names:
        values = np.zeros(shape, dtype)
        for name in dtype.names:
            field = dtype[name]
            values[name] = bits(make, shape + field.shape, field.base)
        return values
    if dtype.kind == "S":
        return make.choice([b"", b"a", b"abc"], shape).astype(dtype)
    raw = make.integers(0, 256, (math.prod(shape), dtype.itemsize), dtype=np.uint8)
    return np.frombuffer(raw.tobytes(), dtype).reshape(shape)


# ---- filters ---------------------------------------------------------------------------------------------------------------------------


def add_filters(rng, plist, kind, dtype, count):
    """Some filters in h5py's order of them; their names."""
    names = []
    plain = kind in ("number", "bool", "enum") and dtype.itemsize in (1, 2, 4, 8)
    if kind == "number" and dtype.kind in "iu" and rng.random() < 0.15:
        plist.set_scaleoffset(h5py.h5z.SO_INT, rng.choice([0, 0, 5]) if dtype.itemsize > 1 else 0)
        return ["scaleoffset"]
    if plain and rng.random() < 0.06:
        plist.set_filter(h5py.h5z.FILTER_NBIT, 0)
        return ["nbit"]
    if rng.random() < 0.5:
        plist.set_shuffle()
        names.append("shuffle")
    makers = {
        "deflate": lambda: plist.set_deflate(rng.choice([0, 1, 4, 9])),
        "lzf": lambda: plist.set_filter(h5py.h5z.FILTER_LZF, h5py.h5z.FLAG_OPTIONAL),
        "szip": lambda: plist.set_szip(rng.choice([4, 32]), rng.choice([2, 8])),
        "bzip2": lambda: plugin(plist, hdf5plugin.BZip2(blocksize=1)),
        "lz4": lambda: plugin(plist, hdf5plugin.LZ4(nbytes=rng.choice([0, 64]))),
        "zstd": lambda: plugin(plist, hdf5plugin.Zstd(clevel=1)),
        "blosc": lambda: plugin(plist, hdf5plugin.Blosc(cname=rng.choice(["lz4", "zstd", "zlib", "blosclz"]), shuffle=rng.randint(0, 2))),
        "bitshuffle": lambda: plugin(plist, hdf5plugin.Bitshuffle(cname=rng.choice(["none", "lz4", "zstd"]))),
    }
    possible = {"szip": plain and count >= 32, "blosc": kind != "text"}  # of elements without a size Blosc's filter crashes
    names.append(rng.choice(["deflate"] * 6 + [n for n in makers if possible.get(n, True)]))
    if names[-1] == "bitshuffle" and "shuffle" in names:
        names.remove("shuffle")
        plist.remove_filter(h5py.h5z.FILTER_SHUFFLE)
    makers[names[-1]]()
    if kind != "text" and rng.random() < 0.2:
        plist.set_fletcher32()
        names.append("fletcher32")
    return names


def plugin(plist, options):
    plist.set_filter(options.filter_id, h5py.h5z.FLAG_OPTIONAL, options.filter_options)


# ---- cases -----------------------------------------------------------------------------------------------------------------------------


class Case:
    """A dataset that make() writes into a file; self.features say what was drawn."""

    def __init__(self, rng, version):
        self.rng, self.version = rng, version
        self.seed = rng.randint(0, 2**32 - 1)  # of values
        self.kind, self.dtype = any_type(rng)
        self.rank = rng.choice([0, 1, 1, 2, 2, 3, 4])
        self.shape = tuple(rng.choice([0, *range(1, 20)] if self.rank < 3 else range(1, 7)) for _ in range(self.rank))
        layouts = ["contiguous", "compact"] if self.rank == 0 else ["contiguous", "compact", *["chunked"] * 8]
        if any(n == 0 for n in self.shape):
            layouts = ["chunked"]
        self.layout = rng.choice(layouts)
        self.chunks = tuple(rng.randint(1, max(1, n + 2)) for n in self.shape)
        self.features = [self.kind, self.layout]

    def __repr__(self):
        return f"{', '.join(self.features)}, {self.dtype}, shape {self.shape}, chunks {self.chunks}, values {self.seed}"

    def make(self, f, group, name):
        low = stored_type(self.rng, self.kind, self.dtype)
        space = h5py.h5s.create_simple(self.shape, self.draw_maximum()) if self.rank else h5py.h5s.create(h5py.h5s.SCALAR)
        dset = h5py.Dataset(h5py.h5d.create(group.id, name.encode(), low, space, self.plist(low)))
        self.write(f, dset)

    def draw_maximum(self):
        """The greatest shape decides which index a dataset of newer versions has."""
        if self.layout != "chunked":
            return self.shape
        self.index = self.rng.choice(["fixed", "fixed", "extensible", "extensible", "tree", "single", "implicit"])
        self.features.append(self.index)
        if self.index == "single":
            self.chunks = tuple(max(1, n) for n in self.shape)
            return self.shape
        unlimited = {"extensible": 1, "tree": 2}.get(self.index, 0)
        places = self.rng.sample(range(self.rank), min(unlimited, self.rank))
        greatest = [h5py.h5s.UNLIMITED if d in places else max(1, n + self.rng.choice([0, 0, 3])) for d, n in enumerate(self.shape)]
        self.chunks = tuple(c if d in places else min(c, greatest[d]) for d, c in enumerate(self.chunks))
        return tuple(greatest)

    def plist(self, low):
        rng, plist = self.rng, h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        self.filters = []
        kinds = {"compact": h5py.h5d.COMPACT, "contiguous": h5py.h5d.CONTIGUOUS, "chunked": h5py.h5d.CHUNKED}
        plist.set_layout(kinds[self.layout])
        if self.layout == "chunked":
            plist.set_chunk(self.chunks)
            if self.index == "implicit":
                plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            elif rng.random() < 0.65 and self.kind != "sequence":
                self.filters = add_filters(rng, plist, self.kind, self.dtype, math.prod(self.chunks))
                self.features += self.filters
                if rng.random() < 0.3 and self.version not in ("earliest", "v108"):
                    library().H5Pset_chunk_opts(ctypes.c_int64(plist.id), EDGES_UNFILTERED)
                    self.features.append("edges unfiltered")
        if self.layout != "compact" and self.kind not in ("sequence", "reference", "array") and rng.random() < 0.5:
            self.draw_fill(plist)
        return plist

    def draw_fill(self, plist):
        make = np.random.default_rng(self.seed)
        value = some_values(self.rng, make, self.kind, self.dtype, (1,))
        if self.kind == "text":
            plist.set_fill_value(np.array([self.rng.choice(TEXTS[1:])], dtype=self.dtype))
        elif self.kind == "bytes":  # of which h5py takes what lies somewhere else
            set_fill_value(plist, h5py.h5t.py_create(self.dtype), value)
        else:
            plist.set_fill_value(value.reshape(()))
        self.features.append("fill")

    def write(self, f, dset):
        """All of it or boxes of it, from none on; other sizes; chunks past the filters."""
        rng, make = self.rng, np.random.default_rng(self.seed)
        parts = rng.choice([0, 1, 1, 2]) if rng.random() < 0.5 else "all"
        for _ in range(1 if parts == "all" else parts):
            box = tuple(slice(None) if parts == "all" else self.a_slice(n) for n in dset.shape)
            count = tuple(len(range(*s.indices(n))) for s, n in zip(box, dset.shape, strict=True))
            if 0 in count:
                continue
            if self.kind == "reference":
                values = np.empty(math.prod(count), h5py.ref_dtype)
                for i in range(len(values)):
                    values[i] = rng.choice([f.ref, f["group"].ref, h5py.Reference()])
                values = values.reshape(count)
            else:
                values = some_values(rng, make, self.kind, self.dtype, count)
            if self.kind == "sequence":
                for index in np.ndindex(count):
                    dset[tuple(i + s.indices(n)[0] for i, s, n in zip(index, box, dset.shape, strict=True))] = values[index]
            else:
                dset[box] = values
        if self.layout == "chunked" and rng.random() < 0.3 and "edges unfiltered" not in self.features:  # libhdf5 2.0 loses its way there
            for d, most in enumerate(dset.maxshape):
                dset.resize(rng.randint(0, 30 if most is None else min(most, 30)), d)
            self.features.append("resized")
        if self.filters and self.kind == "number" and rng.random() < 0.4 and 0 not in dset.shape:
            self.write_past_filters(dset)

    def write_past_filters(self, dset):
        """A chunk that no filter touched: its mask says so."""
        dtype = dset.id.get_type().dtype
        chunk = bits(np.random.default_rng(self.seed), self.chunks, dtype)
        at = tuple(self.rng.randrange(0, n, c) for n, c in zip(dset.shape, self.chunks, strict=True))
        dset.id.write_direct_chunk(at, chunk.tobytes(), (1 << len(self.filters)) - 1)
        self.features.append("masked")

    def a_slice(self, n):
        begin = self.rng.randint(0, n)
        return slice(begin, self.rng.randint(begin, n))


class File:
    """Groups of datasets: a group with few members is compact, one with many is dense, where the version knows these."""

    def __init__(self, rng, version, sizes):
        self.version = version
        self.userblock = rng.choice([0, 0, 0, 512])
        self.compact = rng.choice([0, 2, 8])  # as many members at most are kept in the header
        self.groups = [[Case(rng, version) for _ in range(size)] for size in sizes]

    def __repr__(self):
        cases = "\n".join(f"  g{i}/x{k}: {case}" for i, group in enumerate(self.groups) for k, case in enumerate(group))
        return f"libver {self.version}, user block {self.userblock}, groups compact up to {self.compact}\n{cases}"

    def make(self, path):
        with h5py.File(path, "w", libver=(self.version, "latest"), userblock_size=self.userblock) as f:
            f.create_group("group")
            for i, cases in enumerate(self.groups):
                plist = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
                library().H5Pset_link_phase_change(ctypes.c_int64(plist.id), self.compact, self.compact // 2)
                group = h5py.Group(h5py.h5g.create(f.id, f"g{i}".encode(), gcpl=plist))
                for k, case in enumerate(cases):
                    case.make(f, group, f"x{k}")
        return path


def files(version):
    """Each with its source of further draws."""
    sizes = st.lists(st.integers(1, 8), min_size=1, max_size=3)
    return st.builds(lambda rng, sizes: (rng, File(rng, version, sizes)), st.randoms(use_true_random=False), sizes)


def selections(rng, shape):
    """Some boxes, with steps."""
    for _ in range(4):
        key = []
        for n in shape:
            begin = rng.randint(0, n)
            key.append(slice(begin, rng.randint(begin, n), rng.choice([1, 1, 2, 3])))
        yield tuple(key)
