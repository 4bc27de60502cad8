"""Calls that look at keys: places, quantiles, order."""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import dataclass
from typing import Any, Tuple

import numpy as np

from . import _abi
from ._arrays import Array, read_elements, read_index, read_keys
from ._context import Context
from ._errors import error_of
from ._records import Order, field_array, read_records

QUANTILE_METHODS = ("linear", "lower", "higher")


@dataclass(frozen=True)
class CheckResult:
    """What a check has found; the same on every rank."""

    count: int  #: elements of all ranks
    first_disorder: int  #: global position of the first key that is less than the one before it; -1: none
    fingerprint: int  #: 128 bits of the multiset of elements, whatever their order
    first_unstable: int  #: of elements: position of the first with an equal key before it that came later; -1: none
    placed_fingerprint: int  #: of elements: 128 bits of the multiset of elements, each with its index

    @property
    def in_order(self) -> bool:
        """Whether no key is less than the one before it."""
        return self.first_disorder < 0


def _result_of(found: _abi.CheckStruct) -> CheckResult:
    low_high = (found.fingerprint, found.placed_fingerprint)
    fingerprint, placed = (pair[0] | pair[1] << 64 for pair in low_high)
    return CheckResult(found.count, found.first_disorder, fingerprint, found.first_unstable, placed)


def _as_doubles(selected: Any) -> np.ndarray:
    """Selected keys, NumPy's or PyTorch's, as doubles."""
    if hasattr(selected, "double"):
        return selected.double().numpy()
    if selected.dtype.names is not None or selected.dtype.kind in "mM":
        raise TypeError(f"there is no mean of {selected.dtype}: use the method 'lower' or 'higher'")
    with np.errstate(invalid="ignore"):  # here a signalling NaN is like any other
        return selected.astype(np.float64)


class Looks(Context):
    """Documented by the functions of hypersort with the same names."""

    def select(self, a: Any, positions: Any, *, descending: bool = False) -> Any:
        """As hypersort.select()."""

        def prepare() -> Tuple[Any, ...]:
            keys = read_keys(a, "a")
            wanted = np.asarray(positions)
            if wanted.size and wanted.dtype.kind not in "iu":
                raise TypeError(f"positions have the dtype {wanted.dtype}, which is not an integer type")
            if wanted.size and int(wanted.max()) > np.iinfo(np.int64).max:
                raise ValueError(f"position {wanted.max()} is beyond 63 bits")
            wanted = wanted.astype(np.int64)
            selected = keys.empty(wanted.size, on_host=True)
            digest = hashlib.sha256(wanted.tobytes()).hexdigest()[:16]
            words = f"{keys.kind}, descending={bool(descending)}, positions {wanted.shape} {digest}"
            return words, keys, wanted, selected, self._stream(keys)

        keys, wanted, selected, stream = self._together("select()", prepare)
        total = self._comm.allreduce(keys.count)
        if wanted.size and total == 0:
            raise error_of(_abi.Status.ARGUMENT, "there are no keys on any rank to select from")
        beyond = wanted[(wanted < -total) | (wanted >= total)]
        if beyond.size:
            raise error_of(_abi.Status.ARGUMENT, f"no position {beyond[0]}: there are {total} keys, 0 to {total - 1}")
        wanted = np.array(np.where(wanted < 0, wanted + total, wanted), np.int64, order="C")
        self._call("hsort_select", keys.key.code, bool(descending), keys.pointer, keys.count, wanted.ctypes.data,
                   wanted.size, selected.pointer, stream)  # fmt: skip
        return selected.source.reshape(wanted.shape)[()]

    def quantile(self, a: Any, q: Any, *, method: str = "linear") -> Any:
        """As hypersort.quantile()."""

        def prepare() -> Tuple[Any, ...]:
            keys, wanted = read_keys(a, "a"), np.asarray(q, np.float64)
            if method not in QUANTILE_METHODS:
                raise ValueError(f"method is {method!r}, not one of {', '.join(QUANTILE_METHODS)}")
            if not ((wanted >= 0) & (wanted <= 1)).all():
                raise ValueError("q is not between 0 and 1")
            if method == "linear":
                _as_doubles(keys.empty(0, on_host=True).source)
            return f"{method} {wanted.tolist()}", keys, wanted

        keys, wanted = self._together("quantile()", prepare)
        last = self._comm.allreduce(keys.count) - 1
        if last < 0:
            raise error_of(_abi.Status.ARGUMENT, "there are no keys on any rank, so there is no quantile or median")
        place = wanted.ravel() * last
        low, high = np.floor(place).astype(np.int64), np.ceil(place).astype(np.int64)
        # After all of them the last key: it is NaN if any key is.
        selected = self.select(a, np.concatenate([low, high, [last]]))
        ends, greatest = selected[:-1], selected[-1]
        if greatest != greatest:
            ends = selected[-1:].repeat(2 * wanted.size)
        low_keys, high_keys = ends[: wanted.size], ends[wanted.size :]
        if method != "linear":
            return (low_keys if method == "lower" else high_keys).reshape(wanted.shape)[()]
        below, above = _as_doubles(low_keys), _as_doubles(high_keys)
        return np.where(below == above, below, _between(below, above, place - low)).reshape(wanted.shape)[()]

    def median(self, a: Any) -> Any:
        """As hypersort.median()."""
        return self.quantile(a, 0.5)

    def check(self, a: Any, values: Any = None, index: Any = None, *, descending: bool = False) -> CheckResult:
        """As hypersort.check()."""
        found = _abi.CheckStruct(struct_size=ctypes.sizeof(_abi.CheckStruct))

        def prepare() -> Tuple[Any, ...]:
            keys = read_keys(a, "a")
            elements = None if values is None else read_elements(values, "values")
            if elements is None and index is not None:
                raise ValueError("an index without values")
            places = self._same_count(keys, elements, index)
            beside = elements and f"{elements.element_bytes} bytes of {elements.kind}"
            words = f"{keys.kind}, descending={bool(descending)}, {beside}"
            return words, keys, elements, places, self._stream(keys, elements, places)

        keys, elements, places, stream = self._together("check()", prepare)
        if elements is None:
            self._call("hsort_check", keys.key.code, bool(descending), keys.pointer, keys.count, stream,
                       ctypes.byref(found))  # fmt: skip
        else:
            self._call("hsort_check_pairs", keys.key.code, bool(descending), keys.pointer, elements.pointer,
                       elements.element_bytes, keys.count, places and places.pointer, stream,
                       ctypes.byref(found))  # fmt: skip
        return _result_of(found)

    def check_records(self, a: Any, order: Order = None, index: Any = None) -> CheckResult:
        """As hypersort.check_records()."""
        found = _abi.CheckStruct(struct_size=ctypes.sizeof(_abi.CheckStruct))

        def prepare() -> Tuple[Any, ...]:
            records = read_elements(a, "a")
            fields, words = read_records(records, order)
            places = self._same_count(records, None, index)
            return words, records, fields, places, self._stream(records, places)

        records, fields, places, stream = self._together("check_records()", prepare)
        self._call("hsort_check_records", records.pointer, records.element_bytes, field_array(fields), len(fields),
                   records.count, places and places.pointer, stream, ctypes.byref(found))  # fmt: skip
        return _result_of(found)

    @staticmethod
    def _same_count(first: Array, second: Any, index: Any) -> Any:
        """The index, or None; ValueError where the arrays differ in length."""
        places = None if index is None else read_index(index)
        counts = [array.count for array in (first, second, places) if array is not None]
        if len(set(counts)) != 1:
            raise ValueError(f"arrays of different lengths: {counts}")
        return places


def _between(below: np.ndarray, above: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Interpolate from the nearer end, as NumPy does, so that rounding misses neither end."""
    with np.errstate(invalid="ignore", over="ignore"):
        step = above - below
        return np.where(part < 0.5, below + step * part, above - step * (1 - part))
