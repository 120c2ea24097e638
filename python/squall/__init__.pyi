"""What users of the package see; the docstrings are with the code."""

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from datetime import timedelta
from os import PathLike
from types import EllipsisType, TracebackType
from typing import Any, Literal, NamedTuple, Self, TextIO, TypedDict, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from squall import _squall

__version__: str
_Path = str | bytes | PathLike[str] | PathLike[bytes]
_Durability = Literal["none", "data", "full"]
_T = TypeVar("_T")

# what the functions and methods that make or open something take
class _OpenOptions(TypedDict, total=False):
    durability: _Durability
    write_empty_chunks: bool
    aligned_only: bool

class _GroupOptions(TypedDict, total=False):
    attributes: Mapping[str, Any] | None
    zarr_format: Literal[2, 3] | None
    consolidated: bool
    overwrite: bool

_Lengths = int | Sequence[int] | Sequence[int | Sequence[int]]

class _ArrayOptions(TypedDict, total=False):
    shape: int | tuple[int, ...] | None
    dtype: DTypeLike | str | Mapping[str, Any] | None
    data: ArrayLike | Array | None
    chunks: _Lengths | Literal["auto"] | None
    shards: _Lengths | None
    dims: Sequence[str | None] | None
    fill_value: Any
    attributes: Mapping[str, Any] | None
    codecs: list[dict[str, Any]] | dict[str, Any] | str | None
    filters: list[dict[str, Any]] | str | None
    index_codecs: list[dict[str, Any]] | str | None
    index_location: Literal["start", "end"]
    order: Literal["C", "F"]
    chunk_key_encoding: Literal["default", "v2"] | Mapping[str, str] | None
    separator: Literal["/", "."] | None
    zarr_format: Literal[2, 3] | None
    overwrite: bool

class _StoreOptions(TypedDict, total=False):
    mode: Literal["w", "w-", "a", "a-", "r+"] | None
    group: str | None
    encoding: Mapping[str, Mapping[str, Any]] | None
    region: Mapping[str, slice | Literal["auto"]] | Literal["auto"] | None
    append_dim: str | None
    consolidated: bool | None
    safe_chunks: bool
    align_chunks: bool
    zarr_format: Literal[2, 3] | None
    write_empty_chunks: bool | None

class Status(enum.IntEnum):
    EIO = -1
    ENOMEM = -2
    ECORRUPT = -3
    EUNSUPPORTED = -4
    ENOTFOUND = -5
    EINVAL = -6
    ECANCELLED = -7
    EREFUSED = -8
    ERANGE = -9

class Error(OSError):
    status: Status
    path: str | None
    def __init__(self, message: str, status: int = ..., path: str | None = None, errno: int | None = None) -> None: ...

class Attributes(MutableMapping[str, Any]):
    def __getitem__(self, name: str) -> Any: ...
    def __setitem__(self, name: str, value: Any) -> None: ...
    def __delitem__(self, name: str) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def put(self, values: Mapping[str, Any]) -> None: ...
    def asdict(self) -> dict[str, Any]: ...

class _Selection:
    def __getitem__(self, key: Any) -> NDArray[Any]: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...

class Array(_squall.Array):
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def basename(self) -> str: ...
    @property
    def mode(self) -> Literal["r", "r+"]: ...
    @property
    def attrs(self) -> Attributes: ...
    @property
    def fill_value(self) -> Any: ...
    @property
    def oindex(self) -> _Selection: ...
    @property
    def vindex(self) -> _Selection: ...
    @overload
    def read(self, key: Any = ..., out: None = None, device: Literal["cpu"] | None = None) -> Any: ...
    @overload
    def read(self, key: Any = ..., *, out: _T, device: Literal["cpu"] | None = None) -> _T: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
    def resize(self, *shape: int | tuple[int, ...]) -> None: ...
    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]: ...
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...

class Group(Mapping[str, Any]):
    def __init__(self, tree: Any, name: str = "") -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def problems(self) -> tuple[str, ...]: ...
    @property
    def arrays(self) -> Mapping[str, Array]: ...
    @property
    def groups(self) -> Mapping[str, Group]: ...
    @property
    def attrs(self) -> Attributes: ...
    @property
    def dims(self) -> dict[str, int]: ...
    def __getitem__(self, name: str) -> Any: ...  # an Array or a Group
    def __delitem__(self, name: str) -> None: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
    def create_array(self, name: str, **how: Unpack[_ArrayOptions]) -> Array: ...
    def create_group(self, name: str, **how: Unpack[_GroupOptions]) -> Group: ...

# a Group, or an Array where the path is one
def open(path: _Path, mode: Literal["r", "r+"] = "r", **options: Unpack[_OpenOptions]) -> Any: ...
def open_array(path: _Path, mode: Literal["r", "r+"] = "r", **options: Unpack[_OpenOptions]) -> Array: ...
def consolidate_metadata(path: _Path, name: str = "") -> Group: ...
def create_group(path: _Path, name: str = "", *, durability: _Durability = "none", **how: Unpack[_GroupOptions]) -> Group: ...
def create_array(path: _Path, name: str = "", *, durability: _Durability = "none", **how: Unpack[_ArrayOptions]) -> Array: ...
def open_many(
    paths: _Path | Iterable[_Path],
    concat_dim: str | None = None,
    *,
    order: Literal["coordinates", "given"] = "coordinates",
    drift: Literal["error", "warn", "first"] = "error",
) -> Group: ...
@overload
def store(ds: Any, dest: str | PathLike[str], *, compute: Literal[True] = True, **how: Unpack[_StoreOptions]) -> None: ...
@overload
def store(ds: Any, dest: str | PathLike[str], *, compute: bool, **how: Unpack[_StoreOptions]) -> Any: ...  # False: a dask Delayed

class ManyVariable:
    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fill_value: Any  # None: the template says none
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    def __setitem__(self, key: int | slice | EllipsisType | tuple[Any, ...], value: Any) -> None: ...

class ManyFiles(Mapping[str, ManyVariable]):
    @property
    def paths(self) -> list[str]: ...
    def missing(self) -> dict[str, dict[str, list[tuple[tuple[int, int], ...]]]]: ...
    def finish(self) -> None: ...
    def __getitem__(self, name: str) -> ManyVariable: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None: ...

def create_many(
    template: Any,
    paths: Iterable[_Path] | Mapping[_Path, int],
    dim: str,
    *,
    format: Literal["NETCDF3_64BIT_DATA", "NETCDF4"] = "NETCDF3_64BIT_DATA",
    unlimited_dims: Iterable[str] | None = None,
    overwrite: bool = False,
) -> ManyFiles: ...

class Progress(NamedTuple):
    units_done: int
    units: int
    bytes_in: int
    bytes_out: int
    seconds: float

_ProgressOption = bool | Callable[[Progress], object] | None

class Report(Mapping[str, Any]):
    text: str
    exit_code: int
    seconds: float
    meaning: str
    @property
    def ok(self) -> bool: ...
    def __getattr__(self, name: str) -> Any: ...  # the mapping's values
    def __getitem__(self, key: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

_Length = int | Literal["all"]
_Lengths = Mapping[str, _Length | Mapping[str, _Length]] | str | None
_Term = str | float | Sequence[str | float]

def convert(
    sources: _Path | Iterable[_Path],
    dest: _Path,
    *,
    client: Any = None,
    progress: _ProgressOption = True,
    chunks: _Lengths = None,
    shards: _Lengths = None,
    dtype: DTypeLike | Mapping[str | None, DTypeLike] | None = None,
    bitround: int | Mapping[str | None, int] | str | None = None,
    on_overflow: Literal["error", "inf", "clip"] | None = None,
    codec: list[dict[str, Any]] | dict[str, Any] | str | None = None,
    select: Mapping[str, _Term] | str | Sequence[Mapping[str, _Term] | str] | None = None,
    rename: Mapping[str, str] | str | Sequence[str] | None = None,
    coarsen: Mapping[str, int] | str | None = None,
    schema: Literal["ignore", "grow", "strict"] | None = None,
    y_order: Literal["ascending", "descending"] | None = None,
    every: timedelta | np.timedelta64 | str | None = None,
    stack: Literal["variable"] | None = None,
    stack_name: str | None = None,
    append_dim: str | None = None,
    concat_dim: str | None = None,
    drift: Literal["error", "warn", "first"] | None = None,
    group: str | None = None,
    zarr_format: Literal[2, 3] | None = None,
    part: str | tuple[int, int] | None = None,
    dry_run: bool = False,
    prepend: bool = False,
    overwrite: bool = False,
    strict: bool = False,
    lock_timeout: float | timedelta | None = None,
    threads: int | None = None,
    memory: int | str | None = None,
) -> Report: ...
def status(dest: _Path) -> Report: ...
def verify(dest: _Path, *, progress: _ProgressOption = True, threads: int | None = None, memory: int | str | None = None) -> Report: ...

class _Handles(NamedTuple):
    open: int
    limit: int
    hits: int
    opened: int
    evicted: int

def handles() -> _Handles: ...
def set_options(
    *,
    threads: int | None = ...,
    memory: int | str | None = ...,
    max_open_files: int | None = ...,
    cache_folder: str | PathLike[str] | None = ...,
) -> dict[str, Any]: ...
def show_versions(file: TextIO | None = None) -> None: ...
