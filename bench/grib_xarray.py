"""xr.open_dataset of GRIB files: engine="squall" beside cfgrib.

    python bench/grib_xarray.py [FOLDER]      default: a temporary folder

Two files are made: 5,000 fields of one variable (members, steps, levels), and 344 different variables. What is timed is opening
alone, best of 5 (cfgrib without its index file: once). A line of JSON for each.
"""

import json
import logging
import pathlib
import sys
import tempfile
import time
import warnings

import eccodes as ec
import xarray as xr


def write(path, fields):
    """fields: dictionaries of keys to be set."""
    with open(path, "wb") as file:
        sample = ec.codes_grib_new_from_samples("regular_ll_pl_grib2")
        for keys in fields:
            handle = ec.codes_clone(sample)
            for key, value in keys.items():
                ec.codes_set(handle, key, value)
            ec.codes_write(handle, file)
            ec.codes_release(handle)
        ec.codes_release(sample)


def many_fields():
    for number in range(10):
        for step in range(50):
            for level in range(100, 1100, 100):
                yield {"productDefinitionTemplateNumber": 1, "shortName": "t", "number": number, "endStep": step, "level": level}


def many_variables(count=344):
    names = set()
    for discipline, categories in ((0, 20), (10, 5), (2, 5)):
        for category in range(categories):
            for number in range(60):
                keys = {"discipline": discipline, "parameterCategory": category, "parameterNumber": number, "typeOfLevel": "surface"}
                handle = ec.codes_grib_new_from_samples("regular_ll_pl_grib2")
                for key, value in keys.items():
                    ec.codes_set(handle, key, value)
                name = ec.codes_get(handle, "shortName")
                ec.codes_release(handle)
                if name not in names and name != "unknown" and len(names) < count:
                    names.add(name)
                    yield keys


def best_s(path, times=5, **options):
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        xr.open_dataset(path, **options)
        found.append(time.perf_counter() - begin)
    return min(found)


def main(folder):
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    for name, fields in (("fields-5000", many_fields), ("variables-344", many_variables)):
        path = folder / f"{name}.grib2"
        if not path.exists():
            write(path, fields())
        ours = best_s(path, engine="squall")
        index = str(folder / "{short_hash}.idx")
        engines = {
            "squall": ours,
            "cfgrib": best_s(path, 1, engine="cfgrib", indexpath=""),
            "cfgrib with its index": best_s(path, engine="cfgrib", indexpath=f"{index}.{name}"),
        }
        for engine, seconds in engines.items():
            print(json.dumps({"file": name, "engine": engine, "open_s": round(seconds, 4), "ratio": round(seconds / ours, 1)}), flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(pathlib.Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            main(pathlib.Path(made))
