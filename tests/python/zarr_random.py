"""Random Zarr arrays: metadata made here by hand, both versions, with every type, codec and grid that zarr-python takes; chunks written
by zarr-python. A case is made again by its number."""

import base64
import json
import math
import random

import numpy as np
import zarr
from zarr.core.buffer import cpu
from zarr.storage import MemoryStore

NEWEST = tuple(int(n) for n in zarr.__version__.split(".")[:2]) >= (3, 4)
UNITS = "Y M W D h m s ms us ns ps fs as".split()
INTS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = "float16 float32 float64".split()
REFUSED = "pcodec zfpy zfp lzma jenkins_lookup3 optional".split()  # what squall names and does not read, also behind "numcodecs."
MEMORY_ORDER = "delta astype fixedscaleoffset quantize packbits vlen-utf8 vlen-bytes".split()
LOSSY = "fixedscaleoffset quantize bitround cast_value scale_offset astype".split()
TEXTS = ["", "a", "Zürich", "🎉", "x" * 40, 'a,b\n"c"', "a\0b"]


class Type:
    """A data type: numpy's, v3's and v2's spelling of it, fill values as either version spells them."""

    def __init__(self, feature, dtype, v3, fills, v2=None, word=None):
        self.feature, self.dtype, self.v3, self.v2 = feature, dtype, v3, v2 or dtype.str
        self.fills, self.word = fills, word  # (v3's, v2's)


def hexadecimal(value):
    return "0x" + value.tobytes()[::-1].hex()


def number_type(rng, name):
    dtype = np.dtype(name)
    order = rng.choice("<>") if dtype.itemsize > 1 else "|"
    if dtype.kind == "b":
        fills = [False, True]
    elif dtype.kind == "f":
        payload = np.array([0x7E00, 0x7FC00001, 0x7FF8000000000007][dtype.itemsize // 4], f"u{dtype.itemsize}")
        fills = [0, 0.0, -0.0, 1.5, -3, "NaN", "Infinity", "-Infinity", *([hexadecimal(payload)] if rng.random() < 0.5 else [])]
    else:
        info = np.iinfo(dtype)
        fills = [0, 7, info.max, info.min]
    return Type(name, dtype.newbyteorder(order), name, (fills, [*fills, None] if dtype.kind != "f" else [*fills[:8], None]))


def complex_type(rng):
    name = rng.choice(["complex64", "complex128"])
    fills = [[0, 0], [1.5, "NaN"], ["-Infinity", -0.0]]
    return Type("complex", np.dtype(name).newbyteorder(rng.choice("<>")), name, (fills, [*fills, None]), word=name)


def time_type(rng):
    kind, unit, factor = rng.choice("Mm"), rng.choice(UNITS), rng.choice([1, 1, 10, 25])
    name = "numpy.datetime64" if kind == "M" else "numpy.timedelta64"
    dtype = np.dtype(f"{kind}8[{'' if factor == 1 else factor}{unit}]").newbyteorder(rng.choice("<>"))
    fills = [0, -1, "NaT", -(1 << 63), 1 << 40]
    return Type(name, dtype, {"name": name, "configuration": {"unit": unit, "scale_factor": factor}}, (fills, [*fills, None]))


def bytes_type(rng):
    length, kind = rng.choice([1, 3, 8, 17]), rng.choice("SV")
    name = "null_terminated_bytes" if kind == "S" else "raw_bytes"
    fills = [base64.b64encode(b).decode() for b in (bytes(length), bytes(range(1, length + 1)))]
    fills += [base64.b64encode(b"\xff").decode()] if kind == "S" else []
    return Type(name, np.dtype(f"{kind}{length}"), {"name": name, "configuration": {"length_bytes": length}}, (fills, [*fills, None]))


def text_type(rng):
    length = rng.choice([1, 7])
    dtype = np.dtype(f"U{length}").newbyteorder(rng.choice("<>"))
    v3 = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 4 * length}}
    fills = ["", "é🎉"[:length]]
    return Type("fixed_length_utf32", dtype, v3, (fills, [*fills, None]))


def struct_type(rng):
    names = rng.sample(["float32", "int16", "uint8", "float64", "int64", "bool"], rng.randint(1, 3))
    dtype = np.dtype([(f"f{i}", np.dtype(n).newbyteorder("<")) for i, n in enumerate(names)])
    fields = [[f"f{i}", n] for i, n in enumerate(names)]
    name = "struct" if NEWEST and rng.random() < 0.5 else "structured"
    fills = [base64.b64encode(b).decode() for b in (bytes(dtype.itemsize), bytes(i % 7 for i in range(dtype.itemsize)))]
    if "bool" in names:
        fills = fills[:1]
    v3_fills = fills
    if name == "struct":
        fields = [{"name": n, "data_type": t} for n, t in fields]
        v3_fills = [{f["name"]: True if f["data_type"] == "bool" else 3 for f in fields}]
    v2_order = rng.choice("<>")
    v2 = [[n, t.newbyteorder(v2_order).str] for n, (t, _) in dtype.fields.items()]
    return Type("struct", dtype, {"name": name, "configuration": {"fields": fields}}, (v3_fills, [*fills, None]), v2)


def object_type(rng):
    if rng.random() < 0.6:
        return Type("string", np.dtype(object), "string", (["", "fill é"], ["", "fill", 0, None]), "|O")
    fills = [base64.b64encode(b).decode() for b in (b"", b"\0\xff")]
    return Type("variable_length_bytes", np.dtype(object), "variable_length_bytes", (fills, fills), "|O")


def random_type(rng):
    makers = [complex_type, time_type, bytes_type, text_type, struct_type, object_type]
    if rng.random() < 0.6:
        return number_type(rng, rng.choice(["bool", *INTS, *FLOATS]))
    return rng.choice(makers)(rng)


def random_values(rng, number, kind, shape, tame):
    """Any bits; tame: numbers that lossy filters can work on."""
    make, count = np.random.default_rng(number), math.prod(shape)
    dtype = kind.dtype
    if dtype.kind == "O":
        some = [t if kind.feature == "string" else t.encode() + b"\0\xff"[: rng.randint(0, 2)] for t in TEXTS]
        values = np.empty(count, object)
        values[:] = [rng.choice(some) for _ in range(count)]
        return values.reshape(shape)
    if dtype.kind == "U":
        return np.array([rng.choice(TEXTS) for _ in range(count)], dtype=dtype).reshape(shape)
    if dtype.kind == "b":
        return make.integers(0, 2, shape).astype(bool)
    if tame and dtype.kind in "iuf":
        return make.integers(0 if dtype.kind == "u" else -50, 50, shape).astype(dtype)
    if rng.random() < 0.2 and dtype.kind in "iufc":
        return make.integers(0, 2, shape).astype(dtype)  # what packs well
    bits = make.integers(0, 256, (count, dtype.itemsize), dtype=np.uint8)
    if dtype.names:
        for field, at in dtype.fields.values():
            bits[:, at] &= 1 if field.kind == "b" else 0xFF
    return np.frombuffer(bits.tobytes(), dtype).reshape(shape)


# ---- codecs ----------------------------------------------------------------------------------------------------------------------------


def blosc(rng, version, itemsize):
    cname = rng.choice(["zstd", "lz4", "lz4hc", "blosclz", "zlib"])
    block = rng.choice([0, 0, 64, 256, 4096])
    if version == 2:
        return {"id": "blosc", "cname": cname, "clevel": rng.choice([0, 1, 5, 9]), "shuffle": rng.choice([-1, 0, 1, 2]), "blocksize": block}
    shuffle = rng.choice(["noshuffle", "shuffle", "bitshuffle"])
    options = {"cname": cname, "clevel": rng.choice([0, 1, 5, 9]), "shuffle": shuffle, "blocksize": block}
    return {"name": "blosc", "configuration": {**options, "typesize": rng.choice([itemsize, 1, 2, 4, 8, 7, 255])}}


def numcodec(version, codec, **options):
    """A codec of numcodecs, as either version spells it."""
    return {"id": codec, **options} if version == 2 else {"name": f"numcodecs.{codec}", "configuration": options}


def bytes_codec(rng, version, itemsize, multiple):
    """One that makes bytes of bytes, whose count is a multiple of this."""
    both = [
        lambda: numcodec(version, "zlib", level=rng.choice([0, 1, 9])),
        lambda: numcodec(version, "lz4", acceleration=rng.choice([1, 5])),
        lambda: numcodec(version, "bz2", level=rng.choice([1, 9])),
        lambda: numcodec(version, "shuffle", elementsize=multiple),
        lambda: numcodec(version, rng.choice(["crc32", "adler32"]), **rng.choice([{}, {"location": "start"}, {"location": "end"}])),
        lambda: numcodec(version, "fletcher32"),
        lambda: rng.choice([numcodec(version, "jenkins_lookup3", initval=0), numcodec(version, "lzma")]),
        lambda: blosc(rng, version, itemsize),
    ]
    own = {
        2: [
            lambda: {"id": "zstd", "level": rng.choice([-3, 0, 9]), **rng.choice([{}, {"checksum": True}])},
            lambda: {"id": "gzip", "level": 1},
        ],
        3: [
            lambda: {"name": "zstd", "configuration": {"level": rng.choice([-3, 0, 9]), "checksum": rng.random() < 0.5}},
            lambda: {"name": "gzip", "configuration": {"level": rng.choice([0, 1, 9])}},
            lambda: {"name": "crc32c"},
            lambda: numcodec(3, "zstd", level=1),
            lambda: numcodec(3, "gzip", level=1),
            lambda: numcodec(3, "blosc", cname="lz4", clevel=5, shuffle=rng.choice([0, 1, 2]), blocksize=0),
        ],
    }[version]
    return rng.choice([*own, *own, *own, *both])()


def lossy_filter(rng, version, dtype):
    """One that makes an array of an array of numbers (tame ones), or None."""
    if version == 3:
        dtype = dtype.newbyteorder("<")  # arrays of v3 have no order; zarr-python takes one for a request to read their bytes anew
    name, makers = dtype.str, []
    if dtype.kind in "iu":
        makers += [lambda: numcodec(version, "delta", dtype=name)]
        wider = f"{name[0] if name[0] != '|' else '<'}i8"
        if dtype.itemsize > 1 or version == 2 or NEWEST:  # zarr-python 3.1 forgets that wider numbers have a byte order
            makers += [lambda: numcodec(version, "delta", dtype=name, astype=wider)]
            makers += [lambda: numcodec(version, "astype", encode_dtype=rng.choice(["<i8", "<f8"]), decode_dtype=name)]
        makers += [lambda: numcodec(version, "fixedscaleoffset", offset=-60 if dtype.kind == "i" else 0, scale=1, dtype=name, astype="|u1")]
    if dtype.kind == "f":
        makers += [lambda: numcodec(version, "delta", dtype=name)]
        makers += [lambda: numcodec(version, "fixedscaleoffset", offset=-60.5, scale=rng.choice([1, 2.5, 10]), dtype=name, astype="<u2")]
        makers += [lambda: numcodec(version, "fixedscaleoffset", offset=-60, scale=100, dtype=name, astype="<i4")]
        makers += [lambda: numcodec(version, "quantize", digits=rng.choice([0, 1, 3]), dtype=name)]
        if dtype.byteorder != ">":
            makers += [lambda: numcodec(version, "bitround", keepbits=rng.randint(1, 10))]
    if dtype.kind == "b":
        makers += [lambda: numcodec(version, "packbits")]
    if NEWEST and version == 3 and dtype.kind in "iuf":
        offset = rng.choice([0] if dtype.kind == "u" else [-3, 0, 5])
        makers += [lambda: {"name": "scale_offset", "configuration": {"offset": offset, "scale": rng.choice([1, 2])}}] * 2
        makers += [lambda: cast_value(rng, dtype)] * 2
    return rng.choice(makers)() if makers else None


def cast_value(rng, dtype):
    options = {"data_type": rng.choice(["int8", "int16", "float32", "float64"]), "out_of_range": "clamp"}
    options["rounding"] = rng.choice("nearest-even towards-zero towards-positive towards-negative nearest-away".split())
    if rng.random() < 0.3 and dtype.kind == "f":
        options["scalar_map"] = {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]}
    return {"name": "cast_value", "configuration": options}


def to_bytes(kind, filtered):
    if kind.feature == "string":
        return {"name": "vlen-utf8"}
    if kind.feature == "variable_length_bytes":
        return {"name": "vlen-bytes"}
    if kind.dtype.itemsize == 1 and not filtered or kind.dtype.kind in "SV" and kind.feature != "struct":
        return {"name": "bytes"}
    big = kind.dtype.byteorder == ">" and (NEWEST or not filtered)  # zarr-python 3.1 gives filters bytes in the wrong order
    return {"name": "bytes", "configuration": {"endian": "big" if big else "little"}}


def index_codecs(rng):
    endian = {"name": "bytes", "configuration": {"endian": rng.choice(["little", "little", "big"])}}
    return [endian, {"name": "crc32c"}] if rng.random() < 0.8 else [endian]


def v3_codecs(rng, kind, rank, chunk, tame, depth=0):
    """A chain, and the shape that it leaves to be sharded."""
    codecs, whole, filtered = [], chunk, False
    if rank and rng.random() < 0.25:
        order = rng.sample(range(rank), rank)
        codecs.append({"name": "transpose", "configuration": {"order": order}})
        chunk = [chunk[i] for i in order]
    sharded = rng.random() < (0.3, 0.2, 0)[depth] and rank and math.prod(chunk)
    if sharded and (kind.dtype.kind != "V" or NEWEST):  # zarr-python 3.1 shards no struct and no raw bytes
        both = [math.gcd(a, b) for a, b in zip(chunk, whole, strict=True)]  # zarr-python compares with the chunk before it is transposed
        inner = [rng.choice([d for d in range(1, n + 1) if n % d == 0]) for n in both]
        options = {"chunk_shape": inner, "codecs": v3_codecs(rng, kind, rank, inner, tame, depth + 1), "index_codecs": index_codecs(rng)}
        if rng.random() < 0.6:
            options["index_location"] = rng.choice(["start", "end"])
        codecs.append({"name": "sharding_indexed", "configuration": options})
        more = 1 if rng.random() < 0.1 else 0
    else:
        if tame and (filter_ := lossy_filter(rng, 3, kind.dtype)):
            codecs.append(filter_)
            filtered = True
        codecs.append(to_bytes(kind, filtered))
        more = rng.choice([0, 1, 1, 1, 2, 3])
        if any(c["name"] == "cast_value" for c in codecs):  # zarr-python's panics where bytes are not aligned
            return [*codecs, {"name": "gzip", "configuration": {"level": 1}}]
    itemsize = 1 if kind.dtype.kind == "O" else kind.dtype.itemsize
    return [*codecs, *(bytes_codec(rng, 3, itemsize, itemsize if i == 0 and not (filtered or sharded) else 1) for i in range(more))]


# ---- metadata --------------------------------------------------------------------------------------------------------------------------


def random_shape(rng):
    rank = rng.choice([0, 1, 1, 2, 2, 2, 3, 4])
    most = (0, 30, 13, 8, 5)[rank]
    shape = [0 if rng.random() < 0.03 else rng.choice([1, rng.randint(1, most), rng.randint(1, most)]) for _ in range(rank)]
    chunks = [rng.choice([rng.randint(1, max(1, n + 2)), max(1, -(-n // 2)), max(1, n)]) for n in shape]
    while math.prod(-(-n // c) for n, c in zip(shape, chunks, strict=True)) > 20:
        d = max(range(rank), key=lambda d: shape[d] // chunks[d])
        chunks[d] *= 2
    return shape, chunks


def rectilinear(rng, shape, multiples):
    """Edges of chunks, which are multiples of these, as they are spelled: lengths, or lengths with how often they come."""
    spelled = []
    for n, multiple in zip(shape, multiples, strict=True):
        lengths, runs = [], []
        while sum(lengths) < n:
            left = -(-(n - sum(lengths)) // multiple)
            lengths.append(multiple * min(rng.randint(1, 5), left))
        for length in lengths:
            if runs and runs[-1][0] == length:
                runs[-1][1] += 1
            else:
                runs.append([length, 1])
        spelled.append(lengths if rng.random() < 0.4 else [run if run[1] > 1 or rng.random() < 0.2 else run[0] for run in runs])
    return spelled


def multiples_of(codecs, rank):
    """What a chunk's lengths must be multiples of, None where that takes thought."""
    if codecs[0]["name"] == "sharding_indexed":
        return codecs[0]["configuration"]["chunk_shape"]
    return None if "sharding_indexed" in codec_names(codecs) else [1] * rank


def attributes(rng):
    return rng.choice([{}, {"units": "K", "list": [1, 2.5, None, {"deep": "é"}]}])


def v3_document(rng, kind, shape, chunks, tame):
    document = {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": kind.v3, "attributes": attributes(rng)}
    document["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": chunks}}
    codecs = v3_codecs(rng, kind, len(shape), chunks, tame)
    if NEWEST and shape and math.prod(shape) and rng.random() < 0.15 and (multiples := multiples_of(codecs, len(shape))):
        spelled = rectilinear(rng, shape, multiples)
        document["chunk_grid"] = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": spelled}}
    encoding = rng.choice([("default", "/"), ("default", "."), ("v2", "."), ("v2", "/"), ("default", None), ("v2", None)])
    document["chunk_key_encoding"] = {"name": encoding[0], **({"configuration": {"separator": encoding[1]}} if encoding[1] else {})}
    document["codecs"], document["fill_value"] = codecs, rng.choice(kind.fills[0])
    if rng.random() < 0.5:
        document["dimension_names"] = [rng.choice([f"d{i}", f"d{i}", None]) for i in range(len(shape))]
    if rng.random() < 0.2:
        document["storage_transformers"] = []
    if rng.random() < 0.1:
        document["squall_test"] = {"name": "x", "must_understand": False}
    return {"zarr.json": document}


def v2_document(rng, kind, shape, chunks, tame):
    document = {"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": kind.v2, "order": rng.choice("CCF")}
    filters = []
    if kind.dtype.kind == "O":
        filters.append({"id": "vlen-utf8" if kind.feature == "string" else "vlen-bytes"})
        document["order"] = "C"
    elif tame and (filter_ := lossy_filter(rng, 2, kind.dtype)):
        filters.append(filter_)
    itemsize = kind.dtype.itemsize
    multiple = 1 if filters else itemsize
    if rng.random() < 0.2:
        filters.append(bytes_codec(rng, 2, itemsize, multiple))
        multiple = 1
    document["filters"] = filters or None
    document["compressor"] = None if rng.random() < 0.2 else bytes_codec(rng, 2, itemsize, multiple)
    document["fill_value"] = rng.choice(kind.fills[1])
    if rng.random() < 0.7:
        document["dimension_separator"] = rng.choice("./")
    given = attributes(rng)
    if rng.random() < 0.3:
        given["_ARRAY_DIMENSIONS"] = [f"d{i}" for i in range(len(shape))]
    return {".zarray": document, **({".zattrs": given} if given or rng.random() < 0.5 else {})}


def codec_names(codecs):
    for codec in codecs:
        name = codec if isinstance(codec, str) else codec.get("name") or codec["id"]
        yield name
        if name == "sharding_indexed":
            options = codec["configuration"]
            yield from codec_names(options["codecs"])


def in_groups(rng, version, path, documents):
    """The documents of a hierarchy with an array at this path; with consolidated metadata, which may be all that there is of groups."""
    if not path:
        return documents
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}} if version == 3 else {"zarr_format": 2}
    name = "zarr.json" if version == 3 else ".zgroup"
    parts = path.split("/")
    parents = ["/".join([*parts[:n], name]) for n in range(len(parts))]
    below = {f"{path}/{k}": v for k, v in documents.items()}
    files = {**{k: dict(group) for k in parents}, **below}
    if rng.random() < 0.5:
        return files
    if version == 2:
        return {**files, ".zmetadata": {"zarr_consolidated_format": 1, "metadata": dict(files)}}
    inner = {k.removesuffix("/zarr.json"): v for k, v in files.items() if k != "zarr.json"}
    root = {**group, "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": inner}}
    return {**files, "zarr.json": root}


def put_files(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Case:
    """A case of a number: documents (file → JSON), the values to write, and what features it has."""

    def __init__(self, number):
        self.number = number
        self.rng = rng = random.Random(number)
        self.version = rng.choice([2, 3, 3])
        self.kind = kind = random_type(rng)
        self.shape, self.chunks = random_shape(rng)
        if kind.feature == "variable_length_bytes" and not self.shape:
            self.shape, self.chunks = [3], [2]  # zarr-python writes none without a dimension
        tame = kind.dtype.kind in "iufb" and rng.random() < 0.35 and (self.shape or kind.dtype.byteorder != ">")
        documents = (v3_document if self.version == 3 else v2_document)(rng, kind, self.shape, self.chunks, tame)
        self.document = document = next(iter(documents.values()))
        if tame and kind.dtype.kind in "iuf":
            document["fill_value"] = rng.choice([0, 7])  # which filters can work on
        self.values = random_values(rng, number, kind, self.shape, tame)
        if self.version == 3 and not kind.dtype.names:
            self.values = self.values.astype(kind.dtype.newbyteorder("="))  # the order is the codec's concern
        codecs = document["codecs"] if self.version == 3 else [*(document["filters"] or []), *filter(None, [document["compressor"]])]
        names = list(codec_names(codecs))
        self.rectilinear = document.get("chunk_grid", {}).get("name") == "rectilinear"
        self.codecs = names
        self.lossy = any(name.removeprefix("numcodecs.") in LOSSY for name in names)
        self.refused = [name for name in names if name.removeprefix("numcodecs.") in REFUSED]
        # these of numcodecs encode in the order of memory, and so zarr-python reads something else than was written to it
        self.scrambled = "transpose" in names and any(name.removeprefix("numcodecs.") in MEMORY_ORDER for name in names)
        if "sharding_indexed" in names and self.lossy:
            self.scrambled = True  # a chunk of nothing but fill values is left out of a shard here, and there it is encoded
        # numcodecs' bitround makes a copy in C order, whatever the order of what it gets
        self.scrambled |= "bitround" in names and document.get("order") == "F"
        attributes = document["attributes"] if self.version == 3 else dict(documents.get(".zattrs", {}))
        self.dims = tuple(attributes.pop("_ARRAY_DIMENSIONS", document.get("dimension_names", [None] * len(self.shape))))
        self.attributes = attributes
        self.path = rng.choice(["", "", "", "", "t", "a/b/t"])
        self.documents = in_groups(rng, self.version, self.path, documents)
        # what is written: all, or boxes that leave chunks missing, or partly fill
        self.empty_chunks = rng.random() < 0.5
        boxes = [tuple(slice(s.start, s.stop) for s in self.slices()) for _ in range(rng.randint(0, 2))]
        self.regions = [...] if rng.random() < 0.6 or not self.values.size else [(*box, ...) for box in boxes]

    def __str__(self):
        return f"case {self.number}: {json.dumps(self.documents)}"

    def write(self, folder):
        """With zarr-python; returns what it reads back, the whole array, and its fill value."""
        files = {name: cpu.Buffer.from_bytes(json.dumps(document).encode()) for name, document in self.documents.items()}
        array = zarr.open_array(MemoryStore(files), path=self.path, mode="r+", zarr_format=self.version)
        array = array.with_config({"write_empty_chunks": self.empty_chunks})
        for region in self.regions:
            array[region] = self.values[region]
        wanted = np.asarray(array[...], dtype=object if self.kind.feature == "string" else array.dtype)
        put_files(folder, {name: content.to_bytes() for name, content in files.items()})
        return wanted, array.fill_value

    def put_documents(self, folder):
        """The array as it is before anything is written to it."""
        put_files(folder, {name: json.dumps(document).encode() for name, document in self.documents.items()})

    def slices(self):
        """A box with steps."""

        def one(n):
            start = self.rng.randint(0, n)
            return slice(start, self.rng.randint(start, n), self.rng.choice([1, 1, 1, 2, 3, 7]))

        return tuple(one(n) for n in self.shape)

    def selection(self):
        """Any basic selection of numpy's; a box mostly."""

        def one(s, n):
            kind = self.rng.random()
            return self.rng.randrange(-n, n) if n and kind < 0.2 else slice(None, None, -1) if kind > 0.92 else s

        return (*map(one, self.slices(), self.shape), ...)
