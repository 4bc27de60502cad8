"""Arrays of NumPy, CuPy, Numba and PyTorch, as the library sees them: an address, a count, a stream.

Only NumPy is imported: an array of another library brings its library along.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any, Iterable, Optional, Tuple

import numpy as np

from . import _library
from ._types import KeyType, key_type_of, refuse_nat, type_by_name

_TORCH_TYPES = {
    "bool": "u8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip
_LEGACY_STREAM = 1  # cudaStreamLegacy; NULL is the same one


@dataclass(frozen=True)
class Array:
    """One rank's part of a distributed array, contiguous."""

    source: Any  # the object that holds the memory, of the caller's library
    library: str  # "numpy", "cupy", "numba", "torch", or another that has only the interface
    pointer: int
    shape: Tuple[int, ...]
    dtype: Any  # of the caller's library
    element_bytes: int  # of everything at one place of the first axis
    key: Any = None  # the KeyType, where it holds keys
    on_device: bool = False
    stream: Optional[int] = None  # after whose work the array is ready; None: it is ready
    read_only: bool = False
    given: Any = None  # the caller's memory as a NumPy array, of which `source` may be a copy

    @property
    def count(self) -> int:
        """Elements, or keys, of this rank."""
        return self.shape[0]

    @property
    def kind(self) -> str:
        """The dtype in words. Ranks must agree on it, because one key type or size may belong to several dtypes."""
        return dtype_words(self.dtype)

    def empty(self, count: int, dtype: Any = None, on_host: bool = False) -> "Array":
        """A new array of `count` elements like this one; of one dimension with a `dtype`, "int64" or one of NumPy."""
        shape = (count, *(self.shape[1:] if dtype is None else ()))
        source = _empty(self, shape, self.dtype if dtype is None else dtype, on_host)
        made = view(source, "a result")
        return replace(made, key=self.key) if dtype is None else made

    def first(self, count: int) -> Any:
        """The first `count` elements; a copy if a view would keep much memory that nobody uses."""
        part = self.source[:count]
        if 2 * count < self.count:
            part = part.clone() if self.library == "torch" else part.copy() if hasattr(part, "copy") else part
        return part


def _home(a: Any) -> str:
    """The library of an array, by its class or a base class."""
    for kind in type(a).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in ("numpy", "cupy", "torch", "numba"):
            return name
    return type(a).__module__.partition(".")[0]


def _empty(like: Array, shape: Tuple[int, ...], dtype: Any, on_host: bool) -> Any:
    if like.library == "torch":
        torch = sys.modules["torch"]
        device = "cpu" if on_host else like.source.device
        return torch.empty(shape, dtype=getattr(torch, dtype) if isinstance(dtype, str) else dtype, device=device)
    if like.library == "numpy" or on_host:
        return np.empty(shape, dtype)
    if like.library == "cupy":
        return sys.modules["cupy"].empty(shape, dtype)
    if like.library == "numba":
        return sys.modules["numba.cuda"].device_array(shape, dtype)
    raise TypeError(f"cannot make a result for arrays of {like.library}: give one by out=")


def _contiguous_strides(shape: Iterable[int], itemsize: int) -> Tuple[int, ...]:
    strides = [itemsize]
    for length in reversed(tuple(shape)[1:]):
        strides.append(strides[-1] * length)
    return tuple(reversed(strides))


def _view_interface(a: Any, name: str) -> Array:
    """An array that has __cuda_array_interface__, version 2 or 3."""
    face = a.__cuda_array_interface__
    shape, (pointer, read_only), strides = tuple(face["shape"]), face["data"], face.get("strides")
    dtype = getattr(a, "dtype", None)
    dtype = dtype if isinstance(dtype, np.dtype) else np.dtype(face["typestr"])
    if face.get("mask") is not None:
        raise TypeError(f"{name} has a mask")
    if strides is not None and 0 not in shape and tuple(strides) != _contiguous_strides(shape, dtype.itemsize):
        raise ValueError(f"{name} is not contiguous: copy it first")
    if not dtype.isnative:
        raise TypeError(f"{name} is not in this machine's byte order")
    stream = face.get("stream") if face.get("version", 0) >= 3 else _LEGACY_STREAM
    if stream == 0:
        raise ValueError(f"{name}: its interface names the stream 0, which is not a stream")
    return Array(a, _home(a), pointer or 0, shape, dtype, 0, None, True, stream, bool(read_only))


def _view_tensor(a: Any, name: str) -> Array:
    """A tensor of PyTorch, whose interface never tells bf16 from f16, and leaves out the stream."""
    if not a.is_contiguous():
        raise ValueError(f"{name} is not contiguous: copy it first")
    if any(getattr(a, bit, bool)() for bit in ("is_conj", "is_neg")):  # PyTorch conjugates when it reads, not in memory
        raise ValueError(f"{name} is not yet conjugated or negated in memory: resolve_conj() or resolve_neg() it first")
    if a.device.type not in ("cpu", "cuda"):
        raise TypeError(f"{name} is on the device {a.device}")
    on_device = a.device.type == "cuda"
    stream = None
    if on_device:
        stream = sys.modules["torch"].cuda.current_stream(a.device).cuda_stream or _LEGACY_STREAM
    return Array(a, "torch", a.data_ptr(), tuple(a.shape), a.dtype, 0, None, on_device, stream, False)


def _view_numpy(a: Any, name: str) -> Array:
    a = _as_numpy(a, name)
    if not a.flags.c_contiguous:
        raise ValueError(f"{name} is not contiguous: copy it first")
    if a.dtype.hasobject:
        raise TypeError(f"{name} holds Python objects")
    return Array(a, "numpy", a.ctypes.data, a.shape, a.dtype, 0, None, False, None, not a.flags.writeable)


def view(a: Any, name: str) -> Array:
    """An array where it is; nothing is copied."""
    if _home(a) == "torch":
        found, item_bytes = _view_tensor(a, name), a.element_size()
    else:
        found = _view_interface(a, name) if _is_foreign(a) else _view_numpy(a, name)
        item_bytes = found.dtype.itemsize
    if not found.shape:
        raise ValueError(f"{name} has no dimensions")
    tail_items = int(np.prod(found.shape[1:], dtype=np.int64))
    return replace(found, element_bytes=item_bytes * tail_items)


def _is_foreign(a: Any) -> bool:
    """Whether an array is of another library than NumPy. Lists and the like count as NumPy's."""
    home = _home(a)
    return home == "torch" or (home != "numpy" and hasattr(a, "__cuda_array_interface__"))


def _as_numpy(a: Any, name: str) -> np.ndarray:
    if isinstance(a, np.ma.MaskedArray):
        raise TypeError(f"{name} has a mask")
    a = np.asarray(a)
    if a.ndim == 0:
        raise ValueError(f"{name} has no dimensions")
    return a


def _taken(a: Any, name: str) -> Any:
    """What NumPy makes of an array, a buffer or a list, in the same memory if it has any; other arrays as they are."""
    return a if _is_foreign(a) else _as_numpy(a, name)


def length_of(a: Any, name: str) -> int:
    """How many elements an array has, or what one is made of."""
    try:
        return len(a)
    except TypeError:
        raise TypeError(f"{name} has no length") from None


def dtype_words(dtype: Any) -> str:
    """A dtype in words, the same for all libraries: torch.int64 is int64."""
    return str(dtype).replace("torch.", "")


def _same_dtype(one: Any, other: Any) -> bool:
    return one == other or dtype_words(one) == dtype_words(other)


def _copied(a: Any, name: str, of_keys: bool) -> Any:
    """NumPy arrays contiguous, keys also aligned and in this machine's byte order; other arrays as they are."""
    if _is_foreign(a):
        return a
    if a.dtype.hasobject:
        raise TypeError(f"{name} holds Python objects")
    if not a.flags.c_contiguous:  # copied as bytes: NumPy may leave out what lies between fields
        a = np.ascontiguousarray(a.view(f"V{a.dtype.itemsize}") if a.dtype.names else a).view(a.dtype)
    if of_keys:
        if not a.dtype.isnative:
            a = a.astype(a.dtype.newbyteorder("="))
        if a.ctypes.data % key_type_of(a.dtype, name).alignment != 0:
            a = a.copy()
    return a


def key_of_tensor(found: Array, name: str) -> KeyType:
    """The key type of a PyTorch tensor, or TypeError."""
    word = str(found.dtype).partition(".")[2]
    if word not in _TORCH_TYPES:
        raise TypeError(f"{name} has the dtype {found.dtype}, which is not a key type")
    return type_by_name(_TORCH_TYPES[word])


def _given(found: Array, a: Any) -> Array:
    return replace(found, given=a) if isinstance(a, np.ndarray) else found


def _with_key(found: Array, name: str) -> Array:
    if len(found.shape) != 1:
        raise ValueError(f"{name} has {len(found.shape)} dimensions, not 1")
    if found.library == "torch":
        return replace(found, key=key_of_tensor(found, name))
    if found.library == "numpy":
        refuse_nat(found.source, name)
    return replace(found, key=key_type_of(found.dtype, name))


def read_keys(a: Any, name: str = "keys") -> Array:
    """Keys that are only read; a copy if they are a NumPy array that the library cannot take as it is."""
    a = _taken(a, name)
    return _given(_with_key(view(_copied(a, name, True), name), name), a)


def read_elements(a: Any, name: str) -> Array:
    """Elements that are only read: what lies at a place of the first axis. Copied like keys, but in any byte order."""
    a = _taken(a, name)
    return _given(view(_copied(a, name, False), name), a)


def read_index(a: Any, name: str = "index") -> Array:
    """Global positions; a NumPy array may hold any integers."""
    a = given = _taken(a, name)
    if isinstance(a, np.ndarray):
        if a.size == 0 and a.dtype == np.float64:  # what NumPy makes of []
            a = a.astype(np.int64)
        if a.dtype.kind not in "iu":
            raise TypeError(f"{name} has the dtype {a.dtype}, which is not an integer type")
        a = np.require(a, np.int64, ["C", "ALIGNED"])
    found = view(a, name)
    if not _same_dtype(found.dtype, "int64") or len(found.shape) != 1:
        raise TypeError(f"{name} is not of int64 and one dimension")
    return _given(found, given)


def written(a: Any, name: str) -> Array:
    """An array that is written where it is."""
    if not isinstance(a, np.ndarray) and not _is_foreign(a):
        raise TypeError(f"{name} is not an array that can be written")
    found = view(a, name)
    if found.read_only:
        raise ValueError(f"{name} is read-only")
    return found


def written_keys(a: Any, name: str) -> Array:
    """Keys that are written where they are."""
    found = _with_key(written(a, name), name)
    if found.library == "numpy" and not found.dtype.isnative:
        raise TypeError(f"{name} is not in this machine's byte order")
    return found


def check_like(found: Array, like: Array, name: str) -> None:
    """TypeError or ValueError if two arrays do not hold elements of one kind."""
    if not _same_dtype(found.dtype, like.dtype):
        raise TypeError(f"{name} has the dtype {found.dtype}, not {like.dtype}")
    if found.shape[1:] != like.shape[1:]:
        raise ValueError(f"{name} has the shape {found.shape}, of other elements than {like.shape}")


def output(out: Any, like: Array, count: Optional[int], dtype: Any = None, name: str = "out") -> Array:
    """`out`, if it is given and fits, or a new array: elements like those of `like`, or of `dtype`.

    Without `out` and `count`, as many as `like` has.
    """
    if out is None:
        if count is not None and (not isinstance(count, (int, np.integer)) or count < 0):
            raise ValueError(f"out_count is {count!r}, not a count or 'even'")
        if count is not None and count > sys.maxsize:
            raise ValueError(f"out_count is {count!r}, more elements than 63 bits can count")
        return like.empty(like.count if count is None else int(count), dtype)
    found = replace(written(out, name), source=out)  # `out` itself, also of a subclass
    if dtype is None:
        check_like(found, like, name)
    elif not _same_dtype(found.dtype, dtype) or len(found.shape) != 1:
        raise TypeError(f"{name} is not of {dtype} and one dimension")
    if count is not None and found.count != count:
        raise ValueError(f"{name} has {found.count} elements, but out_count is {count}")
    return replace(found, key=like.key) if dtype is None else found


def refuse_overlap(out: Array, *read: Array, in_place: bool = False) -> None:
    """ValueError if `out` shares memory with an array that was copied: the library sees only the copy. in_place: `out`
    may be that array."""
    for array in read:
        given = array.given
        if given is None or given.ctypes.data == array.pointer or out.library != "numpy":
            continue
        same = in_place and given.flags.c_contiguous and given.ctypes.data == out.pointer and len(given) == out.count
        if not same and np.shares_memory(given, out.source):
            raise ValueError("in and out overlap")


def aligned_output(out: Array, keys: Array) -> Array:
    """Where the library writes keys: `out`, or, if NumPy has not aligned it, a new array that is copied to `out` after
    the call. ValueError if `out` then overlaps `keys`, the input of the sort: nobody else would see that.
    """
    if out.library != "numpy" or out.pointer % out.key.alignment == 0:
        return out
    elsewhere = keys.given is not None and keys.given.ctypes.data != out.pointer
    if elsewhere and np.shares_memory(keys.given, out.source):
        raise ValueError("in and out overlap")
    return out.empty(out.count)


def stream_of(*arrays: Optional[Array]) -> Optional[int]:
    """The stream that the library is to wait for. If arrays name several, this waits for the others."""
    streams = {array.stream for array in arrays if array is not None and array.stream is not None}
    if not streams:
        return None
    chosen = max(streams)
    for stream in streams - {chosen}:
        _library.synchronize(_library.load(), stream)
    return None if chosen == _LEGACY_STREAM else chosen
