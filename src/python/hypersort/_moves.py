"""Calls that move elements between ranks."""

from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _records
from ._abi import FIELDS_MAX
from ._arrays import (
    aligned_output, check_like, length_of, output, read_elements, read_index, read_keys, refuse_overlap, written,
    written_keys,
)  # fmt: skip
from ._context import Context, Count
from ._records import Order, field_array


class Moves(Context):
    """Documented by the functions of hypersort with the same names."""

    # ---- keys ----------------------------------------------------------------------------------------------------

    def sort(self, a: Any, *, descending: bool = False, out: Any = None, out_count: Count = None) -> Any:
        """As hypersort.sort()."""
        count = self._out_count(lambda: length_of(a, "a"), out_count)

        def prepare() -> Tuple[Any, ...]:
            keys = read_keys(a, "a")
            self._refuse_overwriting(keys)
            result = output(out, keys, count)
            refuse_overlap(result, keys, in_place=True)
            aligned = aligned_output(result, keys)
            return f"{keys.kind}, descending={bool(descending)}", keys, result, aligned, self._stream(keys, result)

        keys, result, aligned, stream = self._together("sort()", prepare)
        self._call("hsort_sort_to", keys.key.code, bool(descending), keys.pointer, keys.count, aligned.pointer,
                   aligned.count, stream)  # fmt: skip
        if aligned is not result:
            result.source[...] = aligned.source
        return result.source

    def sort_in_place(self, a: Any, *, descending: bool = False) -> None:
        """As hypersort.sort_in_place()."""

        def prepare() -> Tuple[Any, ...]:
            keys = written_keys(a, "a")
            aligned = keys
            if keys.library == "numpy" and keys.pointer % keys.key.alignment != 0:
                aligned = read_keys(keys.source, "a")  # a copy
            return f"{keys.kind}, descending={bool(descending)}", keys, aligned, self._stream(keys)

        keys, aligned, stream = self._together("sort_in_place()", prepare)
        self._call("hsort_sort", keys.key.code, bool(descending), aligned.pointer, keys.count, stream)
        if aligned is not keys:
            keys.source[...] = aligned.source

    def argsort(self, a: Any, *, descending: bool = False, out: Any = None, out_count: Count = None) -> Any:
        """As hypersort.argsort()."""
        return self._argsort(a, descending, out, self._out_count(lambda: length_of(a, "a"), out_count), False)[0].source

    def _argsort(self, a: Any, descending: bool, out: Any, count: Optional[int], with_keys: bool) -> Any:
        """The index, and the keys in order or None."""

        def prepare() -> Tuple[Any, ...]:
            keys = read_keys(a, "a")
            index = output(out, keys, count, "int64")
            refuse_overlap(index, keys)
            in_order = keys.empty(index.count) if with_keys else None
            stream = self._stream(keys, index, in_order)
            return f"{keys.kind}, descending={bool(descending)}", keys, index, in_order, stream

        keys, index, in_order, stream = self._together("argsort()", prepare)
        self._call("hsort_argsort", keys.key.code, bool(descending), keys.pointer, keys.count, index.pointer,
                   in_order.pointer if in_order else None, index.count, stream)  # fmt: skip
        return index, in_order

    def argsort_columns(
        self, columns: Sequence[Any], *, descending: Union[bool, Sequence[bool]] = False, out: Any = None,
        out_count: Count = None,
    ) -> Any:  # fmt: skip
        """As hypersort.argsort_columns()."""
        count = self._out_count(lambda: length_of(columns[0], "column 0") if len(columns) else 0, out_count)

        def prepare() -> Tuple[Any, ...]:
            arrays = [read_elements(column, f"column {i}") for i, column in enumerate(columns)]
            if not 1 <= len(arrays) <= FIELDS_MAX:
                raise ValueError(f"{len(arrays)} columns; 1 to {FIELDS_MAX} are allowed")
            turned = _directions(descending, len(arrays))
            if len({array.count for array in arrays}) != 1:
                raise ValueError(f"columns of different lengths: {[array.count for array in arrays]}")
            fields = [_records.column_field(array, bool(turned[i]), i) for i, array in enumerate(arrays)]
            index = output(out, arrays[0], count, "int64")
            refuse_overlap(index, *arrays)
            words = ", ".join(f"{array.kind}{' descending' * field.order}" for array, field in zip(arrays, fields))
            return words, arrays, fields, index, self._stream(*arrays, index)

        arrays, fields, index, stream = self._together("argsort_columns()", prepare)
        pointers = (ctypes.c_void_p * len(arrays))(*(array.pointer for array in arrays))
        self._call("hsort_argsort_columns", pointers, field_array(fields), len(fields), arrays[0].count, index.pointer,
                   index.count, stream)  # fmt: skip
        return index.source

    # ---- what travels with keys ----------------------------------------------------------------------------------

    def sort_by_key(
        self, keys: Any, *values: Any, descending: bool = False, out_count: Count = None
    ) -> Tuple[Any, ...]:
        """As hypersort.sort_by_key()."""
        count = self._out_count(lambda: length_of(keys, "keys"), out_count)
        if len(values) == 1:
            return self._sort_pairs(keys, values[0], descending, count)
        self._together("sort_by_key()", lambda: self._same_lengths(keys, values))
        index, in_order = self._argsort(keys, descending, None, count, True)
        return (in_order.source, *(self.take(value, index.source) for value in values))

    @staticmethod
    def _same_lengths(keys: Any, values: Sequence[Any]) -> Tuple[str]:
        for i, value in enumerate(values):
            count, beside = length_of(keys, "keys"), length_of(value, f"values {i}")
            if beside != count:
                raise ValueError(f"{count} keys, but values {i} has {beside}")
        return (f"{len(values)} arrays of values",)

    def _sort_pairs(self, a: Any, b: Any, descending: bool, count: Optional[int]) -> Tuple[Any, Any]:
        def prepare() -> Tuple[Any, ...]:
            keys, values = read_keys(a), read_elements(b, "values")
            if values.count != keys.count:
                raise ValueError(f"{keys.count} keys, but {values.count} values")
            outs = output(None, keys, count), output(None, values, count)
            words = f"{keys.kind} and {values.element_bytes} bytes of {values.kind}, descending={bool(descending)}"
            return words, keys, values, *outs, self._stream(keys, values, *outs)

        keys, values, keys_out, values_out, stream = self._together("sort_by_key()", prepare)
        self._call("hsort_sort_pairs_to", keys.key.code, bool(descending), keys.pointer, values.pointer,
                   values.element_bytes, keys.count, keys_out.pointer, values_out.pointer, keys_out.count,
                   stream)  # fmt: skip
        return keys_out.source, values_out.source

    def sort_by_key_in_place(self, keys: Any, values: Any, *, descending: bool = False) -> None:
        """As hypersort.sort_by_key_in_place()."""

        def prepare() -> Tuple[Any, ...]:
            first, second = written_keys(keys, "keys"), written(values, "values")
            if second.count != first.count:
                raise ValueError(f"{first.count} keys, but {second.count} values")
            words = f"{first.kind} and {second.element_bytes} bytes of {second.kind}, descending={bool(descending)}"
            return words, first, second, self._stream(first, second)

        first, second, stream = self._together("sort_by_key_in_place()", prepare)
        self._call("hsort_sort_pairs", first.key.code, bool(descending), first.pointer, second.pointer,
                   second.element_bytes, first.count, stream)  # fmt: skip

    def sort_records(self, a: Any, order: Order = None, *, out: Any = None, out_count: Count = None) -> Any:
        """As hypersort.sort_records()."""
        count = self._out_count(lambda: length_of(a, "a"), out_count)

        def prepare() -> Tuple[Any, ...]:
            records = read_elements(a, "a")
            self._refuse_overwriting(records)
            fields, words = _records.read_records(records, order)
            result = output(out, records, count)
            refuse_overlap(result, records)
            return words, records, fields, result, self._stream(records, result)

        records, fields, result, stream = self._together("sort_records()", prepare)
        self._call("hsort_sort_records_to", records.pointer, records.element_bytes, field_array(fields), len(fields),
                   records.count, result.pointer, result.count, stream)  # fmt: skip
        return result.source

    def sort_records_in_place(self, a: Any, order: Order = None) -> None:
        """As hypersort.sort_records_in_place()."""

        def prepare() -> Tuple[Any, ...]:
            records = written(a, "a")
            fields, words = _records.read_records(records, order)
            return words, records, fields, self._stream(records)

        records, fields, stream = self._together("sort_records_in_place()", prepare)
        self._call("hsort_sort_records", records.pointer, records.element_bytes, field_array(fields), len(fields),
                   records.count, stream)  # fmt: skip

    def take(self, a: Any, index: Any, *, out: Any = None) -> Any:
        """As hypersort.take()."""

        def prepare() -> Tuple[Any, ...]:
            elements, places = read_elements(a, "a"), read_index(index)
            result = output(out, elements, places.count)
            refuse_overlap(result, elements, places)
            words = f"{elements.element_bytes} bytes of {elements.kind}"
            return words, elements, places, result, self._stream(elements, places, result)

        elements, places, result, stream = self._together("take()", prepare)
        self._call("hsort_gather", elements.pointer, elements.count, elements.element_bytes, places.pointer,
                   result.pointer, result.count, stream)  # fmt: skip
        return result.source

    def put(self, a: Any, index: Any, values: Any) -> None:
        """As hypersort.put()."""

        def prepare() -> Tuple[Any, ...]:
            target, places, elements = written(a, "a"), read_index(index), read_elements(values, "values")
            check_like(elements, target, "values")
            refuse_overlap(target, places, elements)
            if elements.count != places.count:
                raise ValueError(f"{places.count} positions in index, but {elements.count} values")
            words = f"{target.element_bytes} bytes of {target.kind}"
            return words, target, places, elements, self._stream(target, places, elements)

        target, places, elements, stream = self._together("put()", prepare)
        self._call("hsort_scatter", elements.pointer, elements.count, elements.element_bytes, places.pointer,
                   target.pointer, target.count, stream)  # fmt: skip


def _directions(descending: Any, count: int) -> List[Any]:
    """Whether each of so many columns is descending."""
    if isinstance(descending, (int, np.bool_, np.integer)):
        return [descending] * count
    try:
        turned = list(descending)
    except TypeError:
        raise TypeError(f"descending is {descending!r}, no bool, and not one for each column") from None
    if len(turned) != count:
        raise ValueError(f"{count} columns, but descending has {len(turned)} values")
    return turned
