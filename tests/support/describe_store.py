#!/usr/bin/env python3
"""describe_store.py STORE: everything that xarray and zarr-python find in a store, as JSON, with no argument and every warning an
error. Two versions of them that print the same have read the same."""

import hashlib
import json
import sys
import warnings

import numpy as np

warnings.simplefilter("error")

import xarray as xr  # noqa: E402
import zarr  # noqa: E402


def plain(value):
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def describe(values, dims, attributes):
    """Values by their checksum; dates and strings as text, which no version stores its own way."""
    values = np.asarray(values)
    if values.dtype.kind in "mM":
        values = values.astype(f"{values.dtype.kind}8[ns]")
    content = values.tobytes() if values.dtype.kind in "biufmM" else json.dumps(values.tolist()).encode()
    kind = str(values.dtype) if values.dtype.kind in "biufmM" else "text"
    attributes = {key: plain(value) for key, value in sorted(attributes.items())}
    return {"dims": dims, "shape": values.shape, "type": kind, "sha256": hashlib.sha256(content).hexdigest(), "attributes": attributes}


def main():
    store = sys.argv[1]
    with xr.open_zarr(store) as ds:
        found = {name: describe(v.values, v.dims, v.attrs) for name, v in ds.variables.items()}
        found |= {"coordinates": sorted(map(str, ds.coords)), "attributes": ds.attrs}
    raw = {name: describe(a[...], a.metadata.dimension_names, dict(a.attrs)) for name, a in zarr.open(store).arrays()}
    print(json.dumps({"xarray": found, "zarr": raw}, sort_keys=True, indent=1))


if __name__ == "__main__":
    main()
