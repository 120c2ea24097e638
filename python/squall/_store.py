"""squall.store: xarray's datasets into Zarr stores. The work is in _store_zarr.py, which needs xarray and zarr-python."""


def store(
    ds,
    dest,
    *,
    mode=None,
    group=None,
    encoding=None,
    region=None,
    append_dim=None,
    compute=True,
    consolidated=None,
    safe_chunks=True,
    align_chunks=False,
    zarr_format=None,
    write_empty_chunks=None,
):
    """Store an xarray.Dataset, DataArray or DataTree in a Zarr store: Dataset.to_zarr's parameters, meaning and result.

    dest           path of a folder
    mode           "w": begin anew; "w-" (the default): dest must not be there; "a" (the default with append_dim): variables that are
                   there are written over; "a-": so, but those without append_dim stay; "r+" (the default with region): values only
    group          within the store, "a/b"
    encoding       {variable: {"chunks": …, "shards": …, "compressors": …, "dtype": …, "units": …, …}}, for variables that are new
    region         {dimension: slice or "auto"}, or "auto": where in the arrays that are there; "auto" looks the coordinate's values up
    append_dim     the dimension that the dataset goes behind
    compute        False: metadata and what is in memory are written, and one dask Delayed is returned, which writes the rest. Any
                   number of these may be computed by one dask.compute
    consolidated   None, True: consolidated metadata are made anew (with "r+": are used)
    safe_chunks    refuse Dask chunks of which two lie in the same chunk or shard of the store, and with "r+" regions that cut one
    align_chunks   make such Dask chunks fit instead
    zarr_format    3 or 2; None: zarr-python's default
    write_empty_chunks  store chunks that hold nothing but the fill value, too

    Each Dask task writes its block itself, where it runs, chunk by chunk, each published whole: values never go through the client or
    the scheduler. A task that runs again, or another order of tasks, leaves the same bytes. An append (unless compute=False) is
    published when all of it is written: one that was killed has changed nothing that readers see, and may be made again.

    Needs xarray and zarr-python 3. Raises as to_zarr does: FileExistsError, ValueError, TypeError; and ValueError where to_zarr goes on
    and loses something: an appended coordinate value that is there already (the message says the call for a region), times that the
    units cannot tell exactly, other coordinates than the store's. squall.Error where a file cannot be written.
    """
    try:
        from squall import _store_zarr
    except ModuleNotFoundError as e:
        raise ImportError(f"squall.store needs xarray and zarr-python 3: pip install xarray zarr ({e})") from e
    return _store_zarr.write(
        ds,
        dest,
        mode=mode,
        group=group,
        encoding=encoding,
        region=region,
        append_dim=append_dim,
        compute=compute,
        consolidated=consolidated,
        safe_chunks=safe_chunks,
        align_chunks=align_chunks,
        zarr_format=zarr_format,
        write_empty_chunks=write_empty_chunks,
    )
