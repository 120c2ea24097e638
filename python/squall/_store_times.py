"""Times are stored so that readers get them back exactly, or are refused."""

import itertools
import warnings

import numpy as np
import pandas as pd
from xarray import Variable

from squall._store_xarray import CFDatetimeCoder, decode_cf_variable, encode_variable

_STEPS = ("days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds")
# xarray's encoder; KeyError where cftime does not count in nanoseconds, TypeError where numbers do not fit the packing
_CANNOT = (ValueError, OverflowError, KeyError, TypeError)
_KINDS = {"M": "moments", "m": "durations"}


def decoded(name, variable, **how):
    return decode_cf_variable(name, variable, concat_characters=False, **how).values


def _calendar(values):
    """Of cftime's dates; None for all others."""
    return getattr(values.flat[0], "calendar", None) if values.dtype.kind == "O" and values.size else None


# ---- what the store counts ------------------------------------------------------------------------------------------------------------


def _counting(store, name):
    """The attributes that tell readers what an array of the store counts: those of bounds are their coordinate's (CF, 7.1)."""
    attrs = store.open_store_variable(name).attrs
    for coordinate in () if "units" in attrs else store.array_keys():
        of_coordinate = store.members[coordinate].attrs
        if of_coordinate.get("bounds") == name and _counts(of_coordinate) == "M":
            return {key: of_coordinate[key] for key in ("units", "calendar") if key in of_coordinate} | attrs
    return attrs


def _counts(attrs):
    """Moments ("M"), durations ("m", though xarray makes them of numbers without a dtype only where asked to), or anything else."""
    units = attrs.get("units")
    if not isinstance(units, str):
        return ""
    return "M" if " since " in units else "m" if units in _STEPS else ""


def _check_kind(name, kind, calendar, attrs):
    """Moments go to moments of the same calendar, durations to durations."""
    if _counts(attrs) != kind:
        raise ValueError(
            f"variable {name!r}: the new values are {_KINDS[kind]}, and the units of the store's are {attrs.get('units')!r}: store them "
            "under another name, or make the store anew with mode='w'"
        )
    stores = {"gregorian": "standard", None: "standard"}.get(attrs.get("calendar"), attrs.get("calendar"))
    if kind == "M" and stores not in ((calendar,) if calendar else ("standard", "proleptic_gregorian")):
        raise ValueError(
            f"variable {name!r}: the store's calendar is {stores!r}, that of the new values {calendar or 'proleptic_gregorian'!r}; to "
            f"make them the store's: ds.convert_calendar({stores!r})"
        )


def _check_numbers(name, given, attrs):
    """Numbers of a dataset that was opened without decoding its times."""
    units = attrs["units"]
    if "units" not in given.attrs:
        raise ValueError(
            f"variable {name!r}: the store counts in {units!r}, and the new values are numbers without units: give moments or "
            f"durations, or, if they count in these: ds[{name!r}].attrs['units'] = {units!r}"
        )
    counting = {key: attrs[key] for key in ("units", "calendar", "dtype") if key in attrs}
    own = {key: given.attrs.get(key, counting[key]) for key in counting}
    if not np.array_equal(*(decoded(name, Variable(("n",), np.arange(2), how)) for how in (own, counting))):
        raise ValueError(
            f"variable {name!r}: its numbers count in {own['units']!r}, the store's in {units!r}: decode them first, xarray.decode_cf(ds)"
        )


# ---- what readers get -----------------------------------------------------------------------------------------------------------------


def _as_read(name, given, numbers, attrs):
    """The arrays that readers may make of these numbers."""

    def read(**how):  # of a copy: xarray scales floats in place
        return decoded(name, Variable([f"axis{n}" for n in range(numbers.ndim)], numbers.copy(), attrs), **how)

    values = read(decode_timedelta=given.dtype.kind == "m")
    if given.dtype.kind == "O":
        return values, read(decode_times=CFDatetimeCoder(use_cftime=True))
    if values.dtype.kind == "O":  # nanoseconds do not reach so far
        values = read(decode_times=CFDatetimeCoder(time_unit=np.datetime_data(given.dtype)[0]))
    return (values,)


def _is_told(name, given, numbers, attrs):
    if given.dtype.kind == "O" and (numbers.astype("f8").astype(numbers.dtype) != numbers).any():
        return False  # xarray reads these as float64
    try:
        found = _as_read(name, given, numbers, attrs)
    except (ValueError, OverflowError, TypeError):  # the last of cftime, of what is missing
        return False
    for values in found:
        wanted = given
        if values.dtype.kind == "M" and given.dtype.kind == "O":
            wanted = np.array([date.isoformat() for date in np.ravel(given)], "M8[us]")
        same = pd.Index(np.ravel(values)).equals(pd.Index(np.ravel(wanted)))
        if not same or _calendar(values) != _calendar(wanted):  # cftime: a day before 1582 is the same one in two calendars
            return False
    return True


# ---- how they are stored --------------------------------------------------------------------------------------------------------------


class _Exact:
    """Encodes values as an array has them, or refuses them: where they are, so in a task what Dask has. attrs: what readers are told."""

    def __init__(self, name, given, encoded, attrs, dtype, version, is_there):
        self.name, self.dims, self.own_attrs, self.version = name, given.dims, given.attrs, version
        self.attrs, self.dtype, self.is_there = attrs, np.dtype(dtype), is_there
        counting = {key: encoded.attrs[key] for key in ("units", "calendar") if key in encoded.attrs}
        self.encoding = {"dtype": np.dtype("i8")} | {k: v for k, v in given.encoding.items() if k != "chunks"} | counting

    def numbers(self, values, encoding):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other units
            return encode_variable(Variable(self.dims, values, self.own_attrs, encoding), self.name, self.version)

    def check_kind(self, values):
        if not self.is_there:
            return
        if values.dtype.kind == "O" and _calendar(values) is None:
            kind = type(values.flat[0]).__name__
            raise ValueError(f"variable {self.name!r}: the store counts in {self.attrs['units']!r}, and the new values are of type {kind}")
        _check_kind(self.name, "M" if values.dtype.kind == "O" else values.dtype.kind, _calendar(values), self.attrs)

    def check(self, values, encoded):
        self.check_kind(values)
        with np.errstate(invalid="ignore"):
            numbers = np.asarray(encoded.values).astype(self.dtype)
        if not _is_told(self.name, values, numbers, self.attrs):
            raise self.refusal(values)
        return numbers

    def __call__(self, block):
        if not block.size:
            return np.empty(block.shape, self.dtype)
        self.check_kind(block)
        try:
            encoded = self.numbers(block, dict(self.encoding))
        except _CANNOT as e:
            raise self.refusal(block) from e
        return self.check(block, encoded)

    def refusal(self, values):
        units = self.attrs["units"]
        finer = self.finer(values)
        advice = f"encoding={{{self.name!r}: {finer}}}" if finer else "encoding units, of type int64, that do"
        if self.is_there:
            return ValueError(
                f"variable {self.name!r}: the store counts in {units!r} as {self.dtype}, which cannot tell all of the new values "
                f"exactly. Make the store with finer units: {advice}"
            )
        return ValueError(f"variable {self.name!r}: {units!r} as {self.dtype} cannot tell all of its values exactly: give {advice}")

    def finer(self, values):
        """An encoding that tells the values: counted from the same moment if that can be."""
        own, _, since = self.attrs["units"].partition(" ")
        steps = _STEPS[_STEPS.index(own) if own in _STEPS else 0 :]
        origins, calendars = [""], [None]
        if since:
            origins = [f" {since}", " since 1970-01-01", *(f" since {str(date)[:10]}" for date in values.flat[:1])]
            calendars = [self.attrs.get("calendar"), *(["proleptic_gregorian"] if values.dtype.kind == "M" else [])]
        for origin, calendar, step in itertools.product(origins, calendars, steps):
            encoding = {"units": step + origin, "dtype": "int64"} | ({"calendar": calendar} if calendar else {})
            try:
                encoded = self.numbers(values, dict(encoding))
            except _CANNOT:
                continue
            if encoded.attrs["units"] == encoding["units"] and _is_told(self.name, values, np.asarray(encoded.values), encoded.attrs):
                if calendar == self.attrs.get("calendar"):
                    encoding.pop("calendar", None)
                return encoding
        return None


def check(store, name, given):
    """That the values are of the kind that the store counts."""
    if store._mode == "w" or name not in store.members:
        return
    attrs, kind = _counting(store, name), given.dtype.kind
    if kind in "biuf" and (_counts(attrs) == "M" or _counts(attrs) == "m" and "dtype" in attrs):
        _check_numbers(name, given, attrs)
    calendar = _calendar(given.values) if kind == "O" and given.chunks is None else None
    if kind in "mM" or calendar:
        _check_kind(name, "M" if calendar else kind, calendar, attrs)


def exact(store, name, given, encoded):
    """What xarray made of a variable, if readers get the same times from what is stored."""
    is_counted = _counts(encoded.attrs) and "units" not in given.attrs
    if given.dtype.kind not in "mM" and not (given.dtype.kind == "O" and is_counted):
        return encoded
    is_there = store._mode != "w" and name in store.members
    attrs, dtype = (_counting(store, name), store.members[name].dtype) if is_there else (encoded.attrs, encoded.dtype)
    encode = _Exact(name, given, encoded, attrs, dtype, store.zarr_group.metadata.zarr_format, is_there)
    if given.chunks is not None:
        data = given.data.map_blocks(encode, dtype=encode.dtype, meta=np.empty((0,) * given.ndim, encode.dtype))
    else:
        data = encode.check(given.values, encoded) if given.size else encoded.data
    return Variable(encoded.dims, data, encoded.attrs, encoded.encoding, fastpath=True)
