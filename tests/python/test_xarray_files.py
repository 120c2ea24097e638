"""engine="squall" against xarray's own engines, on files that other programs made: what they open right is identical."""

import os
import pathlib
import subprocess
import sys
import warnings

import pytest

xr = pytest.importorskip("xarray")
import squall  # noqa: E402, F401

HERE = pathlib.Path(__file__).parent

# (engine, file) → why the two differ: what the other one does not read, or reads wrongly
DIFFERENT = {
    ("netcdf4", "jhdf_bitfield_datasets.hdf5"): "netCDF-C leaves bitfields out",
    ("netcdf4", "jhdf_multidim_string_datasest.hdf5"): "texts of fixed length are bytes, as h5netcdf has them",
    ("netcdf4", "jhdf_opaque_datasets_earliest.hdf5"): "netCDF-C leaves opaque values out",
    ("netcdf4", "jhdf_opaque_datasets_latest.hdf5"): "netCDF-C leaves opaque values out",
    ("netcdf4", "jhdf_space_padding_problem.hdf5"): "spaces are padding here",
    ("netcdf4", "jhdf_test_string_datasets_earliest.hdf5"): "texts of fixed length are bytes, as h5netcdf has them",
    ("netcdf4", "jhdf_test_string_datasets_latest.hdf5"): "texts of fixed length are bytes, as h5netcdf has them",
    ("netcdf4", "jhdf_utf8-fixed-length.hdf5"): "texts of fixed length are bytes, as h5netcdf has them",
    ("netcdf4", "kerchunk_air_linked.nc"): "netCDF-C takes links for the dimensions that they lead to",
    ("netcdf4", "ncrust_nc4_groups.nc"): "two groups give out one dimension number, which netCDF-C takes for one dimension",
    ("netcdf4", "ncrust_compound_type.h5"): "netCDF-C takes texts within compounds for single characters, or crashes",
    ("netcdf4", "pyfive_attr_datatypes.hdf5"): "netCDF-C leaves attributes of complex numbers and sequences out",
    ("netcdf4", "pyfive_opaque_datetime.hdf5"): "netCDF-C leaves opaque values out",
    ("netcdf4", "pyfive_opaque_fixed.hdf5"): "netCDF-C leaves opaque values out",
    ("netcdf4", "pyfive_references.hdf5"): "netCDF-C leaves references out",
    ("h5netcdf", "jhdf_bitfield_datasets.hdf5"): "h5netcdf hides an attribute CLASS of what is no scale",
    ("h5netcdf", "jhdf_test_fill_value_earliest.hdf5"): "phony dimensions have netCDF-C's numbers",
    ("h5netcdf", "jhdf_test_fill_value_latest.hdf5"): "phony dimensions have netCDF-C's numbers",
    ("h5netcdf", "kerchunk_air_linked.nc"): "h5netcdf takes links for the dimensions that they lead to",
    ("h5netcdf", "pyfive_attr_datatypes.hdf5"): "xarray cannot compare attributes that are sequences",
    ("h5netcdf", "pyfive_earliest.hdf5"): "phony dimensions have netCDF-C's numbers",
    ("h5netcdf", "pyfive_enum_h5variable.hdf5"): "phony dimensions have netCDF-C's numbers",
    ("h5netcdf", "pyfive_latest.hdf5"): "phony dimensions have netCDF-C's numbers",
    ("h5netcdf", "pyfive_resizable.hdf5"): "phony dimensions have netCDF-C's numbers",
}
COMPOUNDS = [f"{a}{b}_compound" for a in ("", "vlen_", "array_vlen_") for b in ("chunked", "contiguous")]
# variables that squall lists with the reason why it does not read them
REFUSED = {
    "jhdf_compound_datasets_earliest.hdf5": COMPOUNDS,
    "jhdf_compound_datasets_latest.hdf5": COMPOUNDS,
    "kerchunk_vlen2.h5": ["vlen_str"],
    "pyfive_references.hdf5": ["chunked_regionref_dataset", "regionref_dataset"],
}
# xarray cannot compare objects that are arrays
INCOMPARABLE = {"jhdf_test_vlen_datasets_earliest.hdf5", "jhdf_test_vlen_datasets_latest.hdf5"}


def compare(engine, paths):
    """Prints a line for each path: its name, and "same", "more" (the other engine fails) or what is wrong."""
    warnings.simplefilter("ignore")
    for path in paths:
        name = os.path.basename(path)
        print(name, _compared(engine, path, REFUSED.get(name)), flush=True)


def _compared(engine, path, drop):
    try:
        expected = xr.open_dataset(path, engine=engine, drop_variables=drop).load()
    except Exception:
        return "more"
    try:
        found = xr.open_dataset(path, engine="squall", drop_variables=drop).load()
        xr.testing.assert_identical(found, expected)
    except Exception as problem:
        return f"{type(problem).__name__}: {str(problem)[:300]!r}"
    unequal = [v for v in found.variables if found[v].encoding.get("chunksizes") != expected[v].encoding.get("chunksizes")]
    return f"chunksizes of {unequal}" if unequal else "same"


def compared_apart(engine, paths):
    """The lines of compare in another process: fewer than paths where it crashed."""
    code = "import sys, hdf5plugin, test_xarray_files as t; t.compare(sys.argv[1], sys.argv[2:])"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), os.environ["PYTHONPATH"]])}
    return subprocess.run([sys.executable, "-c", code, engine, *paths], capture_output=True, text=True, env=environment).stdout.splitlines()


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf", "zarr"])
def test_what_other_engines_open_is_identical(shared, engine):
    pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
    data = shared / "data"
    if engine == "zarr":
        names = ("zarr.json", ".zgroup")
        paths = sorted({str(p.parent) for name in names for p in data.joinpath("zarr").rglob(name)})
    else:
        paths = sorted(map(str, [*data.joinpath("hdf5").iterdir(), *data.joinpath("netcdf3").iterdir()]))
    found = {}
    while paths:
        lines = compared_apart(engine, paths)
        if len(lines) < len(paths):  # a library crashed, perhaps for what it did to an earlier file
            path = paths[len(lines)]
            lines += compared_apart(engine, [path]) or [f"{os.path.basename(path)} more"]
        found |= dict(line.split(" ", 1) for line in lines)
        paths = paths[len(lines) :]
    wrong = {name: what for name, what in found.items() if what not in ("same", "more")}
    expected = {name for of, name in DIFFERENT if of == engine} | INCOMPARABLE
    assert {name: what for name, what in wrong.items() if name not in expected} == {}
    assert [name for of, name in DIFFERENT if of == engine and found.get(name) == "same"] == []
    assert list(found.values()).count("same") >= {"netcdf4": 100, "h5netcdf": 110, "zarr": 5}[engine]
