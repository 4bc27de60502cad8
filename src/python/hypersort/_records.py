"""Which bytes of a structured array, or of several columns, are its keys."""

from __future__ import annotations

import re
from typing import Any, List, Sequence, Tuple, Union

import numpy as np

from ._abi import FIELDS_MAX, Field
from ._arrays import Array, key_of_tensor
from ._types import find_key_type, is_bytes, refuse_nat, type_by_name

Order = Union[None, str, Sequence[str]]


def _steps(dtype: np.dtype, path: str) -> List[Union[str, int]]:
    """The steps of a path: in.x[2] is the field in, its field x, and item 2 of that. A field may have such a name."""
    if path in (dtype.names or ()):
        return [path]
    words = re.findall(r"([^.\[\]]+)|\[(\d+)\]", path)
    if not re.fullmatch(r"[^.\[\]]+(\.[^.\[\]]+|\[\d+\])*", path):
        raise ValueError(f"order: {path!r} is not a field")
    return [int(place) if place else word for word, place in words]


def _find(dtype: np.dtype, path: str) -> Tuple[int, np.dtype]:
    """Offset and dtype of what a path leads to."""
    offset, found = 0, dtype
    for step in _steps(dtype, path):
        if isinstance(step, int):
            base, shape = found.subdtype or (found, ())
            if len(shape) != 1 or step >= shape[0]:
                raise ValueError(f"order: {path!r} leads to no number of {dtype}")
            offset, found = offset + step * base.itemsize, base
        else:
            if found.names is None or step not in found.names:
                advice = "; descending is '-NAME'" if ":" in path else ""
                raise ValueError(f"order: there is no field {path!r} in {dtype}{advice}")
            found, more = dict(found.fields or {})[step][:2]
            offset += more
    return offset, found


def _values(records: np.ndarray, path: str) -> np.ndarray:
    """What a path leads to, in every record."""
    for step in _steps(records.dtype, path):
        records = records[:, step] if isinstance(step, int) else records[step]
    return records


def make_field(dtype: np.dtype, offset: int, descending: bool, name: str) -> Field:
    """A key of this dtype: a number of either byte order, or bytes."""
    if dtype.itemsize == 0:  # which the library would take for a number of the type
        raise TypeError(f"order: {name!r} has the dtype {dtype}, which has no bytes to sort by")
    if is_bytes(dtype):
        return Field(offset, type_by_name("u8").code, descending, dtype.itemsize, 0)
    key = find_key_type(dtype)
    if key is None:
        raise TypeError(f"order: {name!r} has the dtype {dtype}, which is not a key type")
    return Field(offset, key.code, descending, 0, 0 if dtype.isnative else 1)


def _names_of(dtype: np.dtype, order: Order) -> List[str]:
    """The names of an order, with what says that a field is descending."""
    try:
        names = list(dtype.names or () if order is None else [order] if isinstance(order, str) else order)
    except TypeError:
        names = [order]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"order is {order!r}, neither the name of a field nor a sequence of names")
    return names


def read_order(records: np.ndarray, order: Order) -> Tuple[List[Field], str]:
    """The fields of an order, and the order in words. None: all fields, as they are declared."""
    dtype = records.dtype
    if dtype.names is None:
        raise TypeError(f"records of the dtype {dtype}: they have no fields")
    names = _names_of(dtype, order)
    if not 1 <= len(names) <= FIELDS_MAX:
        raise ValueError(f"order has {len(names)} fields; 1 to {FIELDS_MAX} are allowed")
    fields = []
    for name in names:
        descending = name.startswith("-") and name not in dtype.names
        path = name[1:] if descending else name
        offset, found = _find(dtype, path)
        if found.kind in "mM":
            refuse_nat(_values(records, path), path)
        fields.append(make_field(found, offset, descending, path))
    return fields, f"{dtype} by {', '.join(names)}"


def read_records(records: Array, order: Order) -> Tuple[List[Field], str]:
    """As read_order(), of an array that must be NumPy's."""
    if records.library != "numpy" or len(records.shape) != 1:
        raise TypeError("records are not a structured NumPy array of one dimension")
    return read_order(records.source, order)


def column_field(column: Array, descending: bool, i: int) -> Field:
    """The key that a whole column is."""
    if len(column.shape) != 1:
        raise ValueError(f"column {i} has {len(column.shape)} dimensions, not 1")
    if column.library == "torch":
        return Field(0, key_of_tensor(column, f"column {i}").code, descending, 0, 0)
    if column.library == "numpy":
        refuse_nat(column.source, f"column {i}")
    return make_field(column.dtype, 0, descending, f"column {i}")


def field_array(fields: Sequence[Field]) -> Any:
    """What the library takes."""
    return (Field * len(fields))(*fields)
