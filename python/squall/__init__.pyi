"""What users of the package see; the docstrings are with the code."""

import enum
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from os import PathLike
from typing import Any, Literal, NamedTuple, TextIO, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__version__: str
_Path = str | bytes | PathLike[str] | PathLike[bytes]
_Durability = Literal["none", "data", "full"]
_T = TypeVar("_T")

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

class Array:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def chunks(self) -> tuple[int, ...]: ...
    @property
    def shards(self) -> tuple[int, ...] | None: ...
    @property
    def dims(self) -> tuple[str | None, ...]: ...
    @property
    def name(self) -> str: ...
    @property
    def basename(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def mode(self) -> Literal["r", "r+"]: ...
    @property
    def codecs(self) -> str: ...
    @property
    def type_name(self) -> str: ...
    @property
    def unsupported(self) -> str | None: ...
    @property
    def attrs(self) -> Attributes: ...
    @property
    def fill_value(self) -> Any: ...
    @property
    def oindex(self) -> _Selection: ...
    @property
    def vindex(self) -> _Selection: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    @overload
    def read(self, key: Any = ..., out: None = None, device: Literal["cpu"] | None = None) -> Any: ...
    @overload
    def read(self, key: Any = ..., *, out: _T, device: Literal["cpu"] | None = None) -> _T: ...
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
    def create_array(
        self,
        name: str,
        *,
        shape: int | tuple[int, ...] | None = None,
        dtype: DTypeLike | str | None = None,
        data: ArrayLike | Array | None = None,
        chunks: int | tuple[int, ...] | Literal["auto"] | None = "auto",
        shards: int | tuple[int, ...] | None = None,
        dims: tuple[str | None, ...] | list[str | None] | None = None,
        fill_value: Any = None,
        attributes: Mapping[str, Any] | None = None,
        codecs: list[dict[str, Any]] | dict[str, Any] | str | None = None,
        filters: list[dict[str, Any]] | str | None = None,
        index_codecs: list[dict[str, Any]] | str | None = None,
        index_location: Literal["start", "end"] = "end",
        order: Literal["C", "F"] = "C",
        separator: Literal["/", "."] | None = None,
        zarr_format: Literal[2, 3] | None = None,
        overwrite: bool = False,
    ) -> Array: ...
    def create_group(
        self,
        name: str,
        *,
        attributes: Mapping[str, Any] | None = None,
        zarr_format: Literal[2, 3] | None = None,
        consolidated: bool = False,
        overwrite: bool = False,
    ) -> Group: ...

def open(
    path: _Path,
    mode: Literal["r", "r+"] = "r",
    *,
    durability: _Durability = "none",
    write_empty_chunks: bool = False,
    aligned_only: bool = False,
) -> Any: ...  # a Group, or an Array where the path is one
def open_array(
    path: _Path,
    mode: Literal["r", "r+"] = "r",
    *,
    durability: _Durability = "none",
    write_empty_chunks: bool = False,
    aligned_only: bool = False,
) -> Array: ...
def consolidate_metadata(path: _Path, name: str = "") -> Group: ...
def create_group(
    path: _Path,
    name: str = "",
    *,
    attributes: Mapping[str, Any] | None = None,
    zarr_format: Literal[2, 3] | None = None,
    consolidated: bool = False,
    overwrite: bool = False,
    durability: _Durability = "none",
) -> Group: ...
def create_array(
    path: _Path,
    name: str = "",
    *,
    shape: int | tuple[int, ...] | None = None,
    dtype: DTypeLike | str | None = None,
    data: ArrayLike | Array | None = None,
    chunks: int | tuple[int, ...] | Literal["auto"] | None = "auto",
    shards: int | tuple[int, ...] | None = None,
    dims: tuple[str | None, ...] | list[str | None] | None = None,
    fill_value: Any = None,
    attributes: Mapping[str, Any] | None = None,
    codecs: list[dict[str, Any]] | dict[str, Any] | str | None = None,
    filters: list[dict[str, Any]] | str | None = None,
    index_codecs: list[dict[str, Any]] | str | None = None,
    index_location: Literal["start", "end"] = "end",
    order: Literal["C", "F"] = "C",
    separator: Literal["/", "."] | None = None,
    zarr_format: Literal[2, 3] | None = None,
    overwrite: bool = False,
    durability: _Durability = "none",
) -> Array: ...
def open_many(
    paths: _Path | Iterable[_Path],
    concat_dim: str | None = None,
    *,
    order: Literal["coordinates", "given"] = "coordinates",
    drift: Literal["error", "warn", "first"] = "error",
) -> Group: ...

class _Handles(NamedTuple):
    open: int
    limit: int
    hits: int
    opened: int
    evicted: int

def handles() -> _Handles: ...
def set_options(*, threads: int | None = ..., memory: int | str | None = ..., max_open_files: int | None = ...) -> dict[str, Any]: ...
def show_versions(file: TextIO | None = None) -> None: ...
