"""All that squall.store uses of xarray beside its documented interface, so that a version that has it otherwise is told by name."""

import importlib
import inspect

import xarray

_VERSIONS = "2025.12.0 to 2026.9.0"  # tried
_NAMES = {
    "xarray.backends.api": ("DATAARRAY_NAME", "DATAARRAY_VARIABLE"),
    "xarray.backends.common": ("ArrayWriter",),
    "xarray.backends.writers": ("_validate_dataset_names", "dump_to_store"),
    "xarray.backends.zarr": ("ZarrStore", "_choose_default_mode", "encode_zarr_variable", "extract_zarr_variable_encoding"),
    "xarray.coders": ("CFDatetimeCoder",),
    "xarray.conventions": ("decode_cf_variable",),
}
# methods: what squall calls and replaces; the parameters are those that it gives
_METHODS = {
    "ZarrStore": {
        "open_group": ("append_dim", "write_region", "safe_chunks", "align_chunks", "zarr_format", "write_empty"),
        "store": ("variables", "attributes", "check_encoding_set", "writer", "unlimited_dims"),
        "encode": ("variables", "attributes"),
        "set_attributes": ("attributes",),
        "set_variables": ("variables", "check_encoding_set", "writer", "unlimited_dims"),
        "get_child_store": ("group",),
        "open_store_variable": ("name",),
        "array_keys": (),
        "_open_existing_array": ("name",),
        "_validate_and_autodetect_region": ("ds",),
        "_validate_encoding": ("encoding",),
    },
    "ArrayWriter": {"add": ("source", "target", "region"), "sync": ("compute",)},
}
_ATTRIBUTES = ("members", "_append_dim", "_mode", "_safe_chunks", "_write_region", "zarr_group")


def _refuse(name):
    raise ImportError(f"squall.store uses {name} of xarray, which xarray {xarray.__version__} has not; it works with xarray {_VERSIONS}")


def _load():
    found = {}
    for module, names in _NAMES.items():
        for name in names:
            try:
                found[name] = getattr(importlib.import_module(module), name)
            except (AttributeError, ModuleNotFoundError):
                _refuse(f"{module}.{name}")
    for owner, methods in _METHODS.items():
        for method, parameters in methods.items():
            function = getattr(found[owner], method, None)
            if function is None:
                _refuse(f"{found[owner].__module__}.{owner}.{method}()")
            for parameter in parameters:
                if parameter not in inspect.signature(function).parameters:
                    _refuse(f"parameter {parameter!r} of {found[owner].__module__}.{owner}.{method}()")
    for attribute in _ATTRIBUTES:
        if not hasattr(found["ZarrStore"], attribute):  # properties and slots
            _refuse(f"xarray.backends.zarr.ZarrStore.{attribute}")
    return found


_found = _load()
DATAARRAY_NAME, DATAARRAY_VARIABLE = _found["DATAARRAY_NAME"], _found["DATAARRAY_VARIABLE"]
ArrayWriter, ZarrStore = _found["ArrayWriter"], _found["ZarrStore"]
CFDatetimeCoder, decode_cf_variable = _found["CFDatetimeCoder"], _found["decode_cf_variable"]
choose_default_mode, validate_dataset_names = _found["_choose_default_mode"], _found["_validate_dataset_names"]
dump_to_store, extract_zarr_variable_encoding = _found["dump_to_store"], _found["extract_zarr_variable_encoding"]
_TELLS_FORMAT = "zarr_format" in inspect.signature(_found["encode_zarr_variable"]).parameters


def encode_variable(variable, name, zarr_format):
    how = {"zarr_format": zarr_format} if _TELLS_FORMAT else {}
    return _found["encode_zarr_variable"](variable, name=name, **how)
