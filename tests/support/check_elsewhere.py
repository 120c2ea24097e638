"""Read arrays of ours with readers that live apart from zarr-python 3: zarr-python 2.18, GDAL (in rasterio) and netcdf-c (in netCDF4).

check_elsewhere.py FOLDER: in it a folder a case, each with case.json {"version", "path"}, a store "ours", and wanted.pickle, what its array
holds. Prints JSON: how many arrays each reader read, and those that it read otherwise."""

import json
import pathlib
import pickle
import sys
import warnings

import netCDF4
import numpy as np
import rasterio
import zarr

warnings.simplefilter("ignore")


def document_of(case, store):
    return json.loads((store / case["path"] / (".zarray" if case["version"] == 2 else "zarr.json")).read_text())


def by_zarr2(case, store, wanted):
    if case["version"] != 2 or (document_of(case, store)["compressor"] or {}).get("id") == "fletcher32":
        return None  # of a checksum in the compressor's place it takes the bytes for the elements
    values = np.asarray(zarr.open(str(store), path=case["path"], mode="r")[...])
    if wanted.dtype == object and wanted.size and isinstance(wanted.flat[0], bytes):
        values = np.asarray(np.frompyfunc(lambda v: v or b"", 1, 1)(values), object)  # the fill value "" is a text to it
    return values.astype(wanted.dtype) if values.dtype.kind in "SU" else values  # of no dimension: as long as it is


def by_gdal(case, store, wanted):
    if wanted.ndim != 2 or wanted.dtype.kind not in "iufc" or not wanted.size:
        return None
    with rasterio.open(f'ZARR:"{store}":/{case["path"]}') as dataset:
        values = dataset.read(1)
        return values.astype("f2") if values.dtype == "f4" and wanted.dtype == "f2" else values  # as some versions of it have no float16


def by_netcdf(case, store, wanted):
    if case["version"] != 2 or not case["path"] or wanted.dtype.kind not in "iuf" or document_of(case, store)["order"] == "F":
        return None  # it takes order F for C
    with netCDF4.Dataset(f"file://{store}#mode=zarr,file") as dataset:
        dataset.set_auto_maskandscale(False)
        return np.asarray(dataset[case["path"]][...])


def bits(values):
    if values.dtype.hasobject:
        return values.ravel().tolist()
    return np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="))).tobytes()


def main():
    readers = {"zarr 2": by_zarr2, "GDAL": by_gdal, "netcdf-c": by_netcdf}
    counts, differ = dict.fromkeys(readers, 0), []
    refusals = {name: [] for name in readers}
    for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        case, wanted = json.loads((folder / "case.json").read_text()), pickle.loads((folder / "wanted.pickle").read_bytes())
        for name, read in readers.items():
            try:
                found = read(case, folder / "ours", wanted)
            except Exception as error:  # what a reader does not know it says in its own way
                refusals[name].append(f"{folder.name}: {error}")
                continue
            if found is None:
                continue
            counts[name] += 1
            if found.shape != wanted.shape or bits(found) != bits(wanted):
                differ.append([name, folder.name, str(found.dtype), str(wanted.dtype)])
    print(json.dumps({"read": counts, "differ": differ, "refused": refusals}))


if __name__ == "__main__":
    main()
