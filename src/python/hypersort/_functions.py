"""The functions of the module: those of the Sorter that is kept for a communicator.

Every function is collective: all ranks of the communicator call it, with arrays of one dtype and the same arguments,
except the arrays themselves, `out` and `out_count`. An array is one rank's part of a distributed array, which consists
of all parts, one rank after the other. A rank without elements passes an empty array of the dtype.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Union

from mpi4py import MPI

from ._cache import sorter_of
from ._context import Count
from ._looks import CheckResult
from ._records import Order

Comm = Optional[MPI.Intracomm]


def sort(a: Any, comm: Comm = None, *, descending: bool = False, out: Any = None, out_count: Count = None) -> Any:
    """Sort a distributed array into a new one.

    Parameters
    ----------
    a : array of one dimension
        This rank's keys: an array of NumPy or what `numpy.asarray` takes, a tensor of PyTorch, or anything that has
        ``__cuda_array_interface__``. Not changed.
    comm : mpi4py.MPI.Intracomm, optional
        COMM_WORLD if not given.
    descending : bool
        Whether the greatest key comes first. NaNs are last in either order.
    out : array, optional
        The result is written here: an array of the dtype of `a`, with as many keys as this rank is to have. It may be
        `a`; otherwise the two share no memory, or an ArgumentError is raised and nothing is written.
    out_count : int or "even", optional
        Keys that this rank is to have: as many as it brought, if not given. The counts of all ranks add up to the
        number of keys on all ranks. "even": each rank has an even share of all keys.

    Returns
    -------
    array
        This rank's part of the result: `out`, or a new array of the library of `a`, in host or GPU memory as `a` is.

    Notes
    -----
    Among floats -0.0 is less than +0.0, and NaNs are ordered by their bits. This is the one difference from
    ``numpy.sort``. A NumPy array that is not contiguous, not aligned or in the other byte order is copied first; the
    result is in this machine's byte order. A NumPy `out` that is not aligned (keys of 4 bytes: to 8) is written by way
    of a copy.

    Examples
    --------
    >>> mine = numpy.random.default_rng(comm.rank).random(1000)
    >>> hypersort.sort(mine, comm)
    """
    return sorter_of(comm).sort(a, descending=descending, out=out, out_count=out_count)


def sort_in_place(a: Any, comm: Comm = None, *, descending: bool = False) -> None:
    """Sort a distributed array where it is; each rank keeps its count.

    Parameters
    ----------
    a : array of one dimension
        Overwritten. Contiguous, and in this machine's byte order. An array that is not aligned to the size of its keys
        (keys of 4 bytes: to 8) is sorted in a copy.
    comm, descending
        As for `sort`.
    """
    sorter_of(comm).sort_in_place(a, descending=descending)


def argsort(a: Any, comm: Comm = None, *, descending: bool = False, out: Any = None, out_count: Count = None) -> Any:
    """The order of a distributed array, without moving it.

    Parameters
    ----------
    a, comm, descending, out_count
        As for `sort`.
    out : array of int64, optional
        The result is written here; shares no memory with `a`.

    Returns
    -------
    array of int64
        For each place of the result, the position in `a`, counted over all ranks, of the key that belongs there. Equal
        keys keep their order, also in descending order. `take` brings any array into this order.
    """
    return sorter_of(comm).argsort(a, descending=descending, out=out, out_count=out_count)


def argsort_columns(
    columns: Sequence[Any], comm: Comm = None, *, descending: Union[bool, Sequence[bool]] = False, out: Any = None,
    out_count: Count = None,
) -> Any:  # fmt: skip
    """The order of a table by several columns: by the first column, where that is equal by the second, and so on.

    Parameters
    ----------
    columns : sequence of arrays
        1 to 8 columns of one length, of at most 16 bytes together. NumPy columns may have the dtype S, and either byte
        order.
    descending : bool or sequence of bool
        For all columns, or for each.
    comm, out, out_count
        As for `argsort`.

    Returns
    -------
    array of int64
        As for `argsort`.
    """
    return sorter_of(comm).argsort_columns(columns, descending=descending, out=out, out_count=out_count)


def sort_by_key(
    keys: Any, *values: Any, comm: Comm = None, descending: bool = False, out_count: Count = None
) -> Tuple[Any, ...]:
    """Sort keys, and bring other arrays into the same order.

    Parameters
    ----------
    keys : array of one dimension
        As `a` for `sort`.
    *values : arrays
        As long as `keys`; of any dtype, and of any shape after the first axis, up to 65536 bytes an element.
    comm, descending, out_count
        As for `sort`. A communicator may also follow the values, without its name.

    Returns
    -------
    tuple of arrays
        The keys, then each array of values. Equal keys keep their order.
    """
    if comm is None and values and isinstance(values[-1], MPI.Comm):
        comm, values = values[-1], values[:-1]
    return sorter_of(comm).sort_by_key(keys, *values, descending=descending, out_count=out_count)


def sort_by_key_in_place(keys: Any, values: Any, comm: Comm = None, *, descending: bool = False) -> None:
    """As `sort_by_key` with one array of values; both arrays are overwritten."""
    sorter_of(comm).sort_by_key_in_place(keys, values, descending=descending)


def sort_records(a: Any, order: Order = None, comm: Comm = None, *, out: Any = None, out_count: Count = None) -> Any:
    """Sort a structured NumPy array by some of its fields.

    Parameters
    ----------
    a : structured array of one dimension
        Not changed. In any layout and byte order.
    order : str or sequence of str, optional
        Up to 8 names of fields, of at most 16 bytes together; "-name" is descending. ``"pos.x"`` is a field of a field,
        ``"pos[2]"`` an item of one. The fields are numbers or bytes (S, V). If not given: all fields, as they are
        declared.
    comm, out, out_count
        As for `sort`.

    Returns
    -------
    structured array
        Records with equal keys keep their order.
    """
    return sorter_of(comm).sort_records(a, order, out=out, out_count=out_count)


def sort_records_in_place(a: Any, order: Order = None, comm: Comm = None) -> None:
    """As `sort_records`, but `a` is overwritten."""
    sorter_of(comm).sort_records_in_place(a, order)


def take(a: Any, index: Any, comm: Comm = None, *, out: Any = None) -> Any:
    """``a[index]`` over all ranks.

    Parameters
    ----------
    a : array
        Elements of any dtype, and of any shape after the first axis, 1 to 65536 bytes each.
    index : array of int64
        Global positions in `a`: any, also repeated, but none negative. A NumPy array may hold any integers.
    out : array, optional
        The result is written here; as long as `index`. Shares no memory with `a` and `index`.
    comm
        As for `sort`.

    Returns
    -------
    array
        As long as `index`, of the library of `a`.
    """
    return sorter_of(comm).take(a, index, out=out)


def put(a: Any, index: Any, values: Any, comm: Comm = None) -> None:
    """``a[index] = values`` over all ranks.

    Parameters
    ----------
    a : array
        As for `take`, but overwritten at the positions.
    index : array of int64
        Global positions in `a`, each once at most.
    values : array
        As long as `index`; of the dtype of `a`, and of its shape after the first axis.
    comm
        As for `sort`.
    """
    sorter_of(comm).put(a, index, values)


def unique(
    a: Any, comm: Comm = None, *, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, assume_sorted: bool = False,
) -> Any:  # fmt: skip
    """One of each key, in order. Keys are equal if their bits are.

    Parameters
    ----------
    a : array of one dimension
        As for `sort`.
    return_index, return_inverse, return_counts : bool
        What is wanted besides the keys.
    assume_sorted : bool
        The keys are already in order over all ranks, in either direction. If they are not, each run of equal keys
        counts for itself.
    comm
        As for `sort`.

    Returns
    -------
    keys : array
        The keys whose first occurrence, in the sorted order, is on this rank. A rank may have any number of them.
    index : array of int64
        The first position of each key in `a`, counted over all ranks.
    inverse : array of int64
        As long as `a`: the number of each of its keys among the keys that all ranks return.
    counts : array of int64
        How often each key occurs, on all ranks.
    """
    return sorter_of(comm).unique(
        a, return_index=return_index, return_inverse=return_inverse, return_counts=return_counts,
        assume_sorted=assume_sorted,
    )  # fmt: skip


def select(a: Any, positions: Any, comm: Comm = None, *, descending: bool = False) -> Any:
    """The keys that a sort would put at some global positions, without moving any.

    Parameters
    ----------
    a : array of one dimension
        As for `sort`.
    positions : int or array of int
        The same on every rank; -1 is the last position.
    comm, descending
        As for `sort`.

    Returns
    -------
    scalar or array in host memory
        Of the shape of `positions`, the same on every rank; a PyTorch tensor if `a` is one.
    """
    return sorter_of(comm).select(a, positions, descending=descending)


def quantile(a: Any, q: Any, comm: Comm = None, *, method: str = "linear") -> Any:
    """Quantiles of all keys.

    Parameters
    ----------
    a : array of one dimension
        As for `sort`.
    q : float or array of float
        0 to 1; the same on every rank.
    method : {"linear", "lower", "higher"}
        The quantile if it lies between two keys: a double between them, or one of them.
    comm
        As for `sort`.

    Returns
    -------
    scalar or array in host memory
        Of the shape of `q`, the same on every rank. NaN if any key is NaN.
    """
    return sorter_of(comm).quantile(a, q, method=method)


def median(a: Any, comm: Comm = None) -> Any:
    """The quantile 0.5 of all keys."""
    return sorter_of(comm).median(a)


def check(a: Any, values: Any = None, index: Any = None, comm: Comm = None, *, descending: bool = False) -> CheckResult:
    """Check the order of a distributed array, and take its fingerprint.

    Parameters
    ----------
    a : array of one dimension
        As for `sort`.
    values : array, optional
        What belongs to the keys, as for `sort_by_key`; it is then part of the fingerprints.
    index : array of int64, optional
        Where each element was before, as `argsort` says; only with values. If not given, each element's own position.
    comm, descending
        As for `sort`.

    Returns
    -------
    CheckResult
        The same on every rank. Equal fingerprints before and after a sort mean the same elements.
    """
    return sorter_of(comm).check(a, values, index, descending=descending)


def check_records(a: Any, order: Order = None, index: Any = None, comm: Comm = None) -> CheckResult:
    """As `check`, for records, with an order as for `sort_records`."""
    return sorter_of(comm).check_records(a, order, index)
