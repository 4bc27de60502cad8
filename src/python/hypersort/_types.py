"""Which dtype is which key type of the library."""

from __future__ import annotations

from typing import NamedTuple, Optional

import numpy as np

from ._abi import TYPES

#: The dtype of keys of 16 bytes, compared as one unsigned number: the high half first.
uint128 = np.dtype([("low", "<u8"), ("high", "<u8")])

_LETTERS = {"u": "u", "i": "i", "f": "f", "b": "u", "m": "i", "M": "i"}


class KeyType(NamedTuple):
    """A key type of the library."""

    code: int
    name: str
    bytes: int

    @property
    def alignment(self) -> int:
        """The alignment of an array of such keys: their size, but 8 for keys of 4 bytes."""
        return 8 if self.bytes == 4 else self.bytes


def type_by_name(name: str) -> KeyType:
    """The key type that is called "u32" or the like."""
    return KeyType(TYPES.index(name), name, int(name.lstrip("uifb")) // 8)


def find_key_type(dtype: np.dtype) -> Optional[KeyType]:
    """The key type of a dtype, in whatever byte order; None if it has none."""
    if dtype == uint128:
        return type_by_name("u128")
    if dtype.name == "bfloat16":  # of ml_dtypes
        return type_by_name("bf16")
    name = f"{_LETTERS.get(dtype.kind, '?')}{dtype.itemsize * 8}"
    return type_by_name(name) if name in TYPES else None


def is_bytes(dtype: np.dtype) -> bool:
    """Whether elements are bytes without a meaning: S and V. Numbers of other packages say that they are of the kind V, too."""
    return issubclass(dtype.type, (np.bytes_, np.void)) and dtype.names is None and dtype.subdtype is None


def key_type_of(dtype: np.dtype, name: str) -> KeyType:
    """The key type of an array called `name`, or TypeError."""
    found = find_key_type(dtype)
    if found is None:
        hint = ""
        if dtype.names is not None:
            hint = ": give a field, as a['NAME']; sort_records(), argsort_columns() and check_records() take several"
        elif is_bytes(dtype):
            hint = ": argsort_columns() orders such, and take() moves them"
        raise TypeError(f"{name} has the dtype {dtype}, which is not a key type{hint}")
    return found


def refuse_nat(array: np.ndarray, name: str) -> None:
    """Refuse NaT: NumPy sorts it last, but for the library it is the least number, and so the first."""
    if array.dtype.kind in "mM" and np.isnat(array).any():
        raise ValueError(f"{name} has NaT, which is not ordered here: view it as int64 to have NaT first")
