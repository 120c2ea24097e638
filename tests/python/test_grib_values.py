"""Values of GRIB fields against ecCodes: equal to the bit, as double and as float32 of the double, with and without the wide kernels."""

import itertools
import struct
import subprocess

import eccodes as ec
import numpy as np
import pytest
from conftest import SHARED
from oracle import MISSING, doubles, handles, in_output_order, same

FOLDER = SHARED / "data" / "grib"
FILES = sorted(p.name for p in FOLDER.iterdir()) if FOLDER.is_dir() else []
# what is not read yet, by the words that name it
REFUSED = {
    "iris_second_order_FRANX01.grib1": "second-order packing",
    "jma_nowcast_run_length.grib2": "run length packing",
    "spherical_harmonics.grib": "spectral coefficients",
}


@pytest.fixture(scope="session")
def decode(support):
    """decode(path, tmp, *options) → [(offset, rows, columns, mode, values) or (offset, message)] and the raw bytes."""

    def call(path, tmp, kind, *options):
        out = tmp / "values"
        done = subprocess.run([support / "grib_values", path, out, kind, *options], capture_output=True, text=True, check=True)
        raw, at, fields = out.read_bytes(), 0, []
        dtype = np.dtype(kind)
        for line in done.stdout.splitlines():
            offset, _, rest = line.split(" ", 2)
            if rest.startswith("error: "):
                fields.append((int(offset), rest[7:]))
                continue
            rows, columns, points, mode = map(int, rest.split())
            fields.append((int(offset), rows, columns, mode, np.frombuffer(raw, dtype, points, at)))
            at += points * dtype.itemsize
        assert at == len(raw)
        return fields, raw

    return call


def reference(path):
    """(offset, values with NaN where missing) of each field that ecCodes finds; None where it cannot decode."""
    for handle in handles(path):
        yield ec.codes_get(handle, "offset"), doubles(handle)


def compare(path, tmp, decode):
    """How many fields were compared; fails at the first that differs."""
    wide, _ = decode(path, tmp, "float64")
    narrow, raw = decode(path, tmp, "float32")
    flipped, _ = decode(path, tmp, "float32", "flip")
    assert decode(path, tmp, "float32", "plain")[1] == raw
    count = 0
    for ours, ours32, ours_flipped, theirs in itertools.zip_longest(wide, narrow, flipped, reference(path)):
        assert ours is not None and theirs is not None, "another number of fields"
        assert ours[0] == theirs[0]
        if len(ours) == 2:
            continue
        _, rows, columns, mode, values = ours
        assert theirs[1] is not None, f"offset {ours[0]}: ecCodes cannot decode it"
        with np.errstate(over="ignore"):
            want = in_output_order(theirs[1], rows, columns, mode)
            want32 = want.astype("f4")
        assert same(values, want), f"field {count + 1} at {ours[0]}"
        assert same(ours32[4], want32), f"field {count + 1} at {ours[0]}, float32"
        assert same(ours_flipped[4], in_output_order(want32, rows, columns, 0, flip=True)), f"field {count + 1} at {ours[0]}, flipped"
        count += 1
    return count


@pytest.mark.parametrize("name", FILES or [pytest.param("", marks=pytest.mark.skip("../shared is not there: no real files to test with"))])
def test_real_files_have_ecCodes_values(name, tmp_path, decode):
    count = compare(FOLDER / name, tmp_path, decode)
    refused = [f[1] for f in decode(FOLDER / name, tmp_path, "float32")[0] if len(f) == 2]
    if name in REFUSED:
        assert count == 0 and all(REFUSED[name] in message for message in refused)
    else:
        assert not refused and (count > 0 or name.endswith(".idx"))


def field(rows, columns, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:rows, 0:columns]
    return 270 + 15 * np.sin(x / 7) + y * 0.3 + rng.normal(0, 0.3, (rows, columns))


def message(packing, bits, *, edition=2, rows=23, columns=31, decimal=None, missing=None, mode=0, values=None, **keys):
    """One field by ecCodes; None where it does not encode that. missing: the share of points without a value."""
    handle = ec.codes_grib_new_from_samples(f"regular_ll_sfc_grib{edition}")
    try:
        for key, value in {
            "Ni": columns,
            "Nj": rows,
            "iScansNegatively": mode >> 7,
            "jScansPositively": mode >> 6 & 1,
            "jPointsAreConsecutive": mode >> 5 & 1,
            "alternativeRowScanning": mode >> 4 & 1,
        }.items():
            if value or key[0] == "N":
                ec.codes_set(handle, key, value)
        seed = bits or 0
        v = field(rows, columns, seed) if values is None else values
        if missing is not None:
            ec.codes_set(handle, "bitmapPresent", 1)
            ec.codes_set(handle, "missingValue", MISSING)
            v = np.where(np.random.default_rng(seed + 1).random(v.shape) < missing, MISSING, v)
        if packing != "grid_simple":
            ec.codes_set(handle, "packingType", packing)
        for key, value in keys.items():
            ec.codes_set(handle, key, value)
        if bits is not None:
            ec.codes_set(handle, "bitsPerValue", bits)
        if decimal is not None:
            ec.codes_set(handle, "changeDecimalPrecision", decimal)
        ec.codes_set_values(handle, v.ravel())
        return ec.codes_get_message(handle)
    except ec.CodesInternalError:
        return None
    finally:
        ec.codes_release(handle)


def compare_messages(messages, tmp_path, decode, at_least):
    whole = [m for m in messages if m]
    assert len(whole) >= at_least, f"ecCodes encoded {len(whole)} of {len(messages)}"
    path = tmp_path / "made.grib"
    path.write_bytes(b"".join(whole))
    assert compare(path, tmp_path, decode) == len(whole)


PACKINGS = ["grid_simple", "grid_complex", "grid_complex_spatial_differencing", "grid_ccsds", "grid_jpeg", "grid_png"]


@pytest.mark.parametrize("packing", PACKINGS)
def test_every_width_with_and_without_bitmap(packing, tmp_path, decode):
    blocky = np.floor(field(23, 31, 0) / 4) if packing == "grid_png" else None  # ecCodes has no room for a PNG larger than its values
    messages = [
        message(packing, bits, missing=missing, values=blocky)
        for bits in range(32 if packing == "grid_jpeg" else 33)
        for missing in (None, 0.3, 0.97)
    ]  # ecCodes aborts at 32 bits of JPEG
    compare_messages(messages, tmp_path, decode, at_least=60)


@pytest.mark.parametrize("packing", PACKINGS)
def test_decimal_scales(packing, tmp_path, decode):
    messages = [message(packing, None, decimal=d, missing=missing) for d in range(-2, 6) for missing in (None, 0.4)]
    compare_messages(messages, tmp_path, decode, at_least=4 if packing == "grid_png" else 12)


@pytest.mark.parametrize("order", [1, 2])
def test_differences(order, tmp_path, decode):
    smooth = np.mgrid[0:200, 0:300][1] ** 2 * 0.01 + np.mgrid[0:200, 0:300][0]
    shapes = [(1, 1), (1, 2), (1, 3), (2, 5), (200, 300)]
    messages = [
        message(
            "grid_complex_spatial_differencing",
            bits,
            rows=r,
            columns=c,
            missing=missing,
            orderOfSpatialDifferencing=order,
            values=smooth[:r, :c] + (field(r, c, bits) if noise else 0),
        )
        for bits in (8, 12, 20)
        for r, c in shapes
        for missing in (None, 0.2)
        for noise in (0, 1)
    ]
    compare_messages(messages, tmp_path, decode, at_least=40)


@pytest.mark.parametrize("precision", [1, 2])
def test_ieee(precision, tmp_path, decode):
    messages = [message("grid_ieee", None, missing=missing, precision=precision) for missing in (None, 0.3)]
    messages.append(message("grid_ieee", None, precision=precision, values=np.full((23, 31), 7.25)))
    compare_messages(messages, tmp_path, decode, at_least=2)


def test_edition_1(tmp_path, decode):
    messages = [message("grid_simple", bits, edition=1, missing=missing) for bits in range(32) for missing in (None, 0.3, 0.97)]
    messages += [message("grid_simple", None, edition=1, decimal=d) for d in range(-2, 6)]
    compare_messages(messages, tmp_path, decode, at_least=90)


@pytest.mark.parametrize("packing", PACKINGS)
def test_constant_fields(packing, tmp_path, decode):
    values = np.full((23, 31), 273.125)
    messages = [message(packing, 12, missing=missing, values=values) for missing in (None, 0.3, 1)]
    compare_messages(messages, tmp_path, decode, at_least=1 if packing == "grid_png" else 2)


@pytest.mark.parametrize("edition", [1, 2])
def test_scanning_modes(edition, tmp_path, decode):
    messages = [
        message("grid_simple", 13, edition=edition, mode=mode, missing=missing)
        for mode in range(0, 256, 16 if edition == 2 else 32)
        for missing in (None, 0.5)
    ]
    compare_messages(messages, tmp_path, decode, at_least=len(messages))


def test_ccsds_parameters(tmp_path, decode):
    messages = [
        message("grid_ccsds", bits, ccsdsBlockSize=block, ccsdsRsi=rsi, ccsdsFlags=flags, missing=missing)
        for bits in (7, 12, 16, 21)
        for block in (8, 16, 32, 64)
        for rsi in (1, 16, 128, 300)
        for flags in (6, 14)
        for missing in (None, 0.3)
    ]
    compare_messages(messages, tmp_path, decode, at_least=len(messages))


def test_all_binary_and_decimal_scales(tmp_path, decode):
    """E and D written into section 5 of a message: (X·2^E + R)·10^−D rounds as in ecCodes, to infinity and to zero.

    R is a normal number: ecCodes reads 2^-126 into subnormal ones, and zero for infinity and NaN."""
    template = message("grid_simple", 11)
    five = 16
    while template[five + 4] != 5:
        five += int.from_bytes(template[five : five + 4], "big")

    def patched(reference, binary, decimal):
        m = bytearray(template)
        m[five + 11 : five + 15] = struct.pack(">f", reference)
        for at, n in ((15, binary), (17, decimal)):
            m[five + at : five + at + 2] = struct.pack(">H", abs(n) | (0x8000 if n < 0 else 0))
        return bytes(m)

    cases = [(r, e, d) for r in (0.0, 273.15, -1e-3, 3e38, -1e-37) for e in range(-60, 61, 3) for d in (0, 0, 1, 2, 3, 7, -1, -3)]
    cases += [(r, e, d) for r in (0.0, 1.5) for e in (-1100, -1074, -1030, -150, -127, 127, 200, 1013, 1030) for d in range(-330, 331, 30)]
    compare_messages([patched(*c) for c in cases], tmp_path, decode, at_least=len(cases))
