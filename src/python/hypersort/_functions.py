"""The functions of the module: those of the Sorter that is kept for a communicator.

Every one is collective: all ranks of the communicator call it, with arrays of one dtype and the same arguments, but
for the arrays themselves, `out` and `out_count`. An array stands for one rank's part of a distributed array, which is
all parts, one rank after the other. A rank without elements passes an empty array of the dtype.
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
        This rank's keys: of NumPy or what `numpy.asarray` takes, PyTorch, or anything that has
        ``__cuda_array_interface__``. Not changed.
    comm : mpi4py.MPI.Intracomm, optional
        COMM_WORLD if not given.
    descending : bool
        NaNs are last all the same.
    out : array, optional
        Written; of the dtype of `a`, and of as many keys as this rank is to have. It may be `a`; else the two share no
        memory, or it is an ArgumentError and nothing is written.
    out_count : int or "even", optional
        Keys that this rank is to have: as many as it brought, if not given. All ranks' add up to those of `a`.
        "even": each has its share of all keys.

    Returns
    -------
    array
        This rank's part of the result, of the library of `a` and where `a` lies, or `out`.

    Notes
    -----
    Of floats -0.0 is less than +0.0, and NaNs are ordered by their bits, which is the one difference from
    ``numpy.sort``. A NumPy array that is not contiguous, not aligned or in the other byte order is copied first; the
    result is in this machine's byte order. A NumPy `out` that is not aligned (keys of 4 bytes to 8) is written by way of
    a copy.

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
        Overwritten. Contiguous, and in this machine's byte order. One that is not aligned (to its keys, of 4 bytes
        to 8) is sorted in a copy.
    comm, descending
        As of `sort`.
    """
    sorter_of(comm).sort_in_place(a, descending=descending)


def argsort(a: Any, comm: Comm = None, *, descending: bool = False, out: Any = None, out_count: Count = None) -> Any:
    """The order of a distributed array, without moving it.

    Parameters
    ----------
    a, comm, descending, out_count
        As of `sort`.
    out : array of int64, optional
        Written; shares no memory with `a`.

    Returns
    -------
    array of int64
        Global positions in `a`, of all ranks together: of the key that belongs here. Equal keys keep their order,
        also in descending order. `take` brings any array into this order.
    """
    return sorter_of(comm).argsort(a, descending=descending, out=out, out_count=out_count)


def argsort_columns(
    columns: Sequence[Any], comm: Comm = None, *, descending: Union[bool, Sequence[bool]] = False, out: Any = None,
    out_count: Count = None,
) -> Any:  # fmt: skip
    """The order of a table by several columns: by the first one, where equal by the second one, and so on.

    Parameters
    ----------
    columns : sequence of arrays
        1 to 8, of 16 bytes together, of one length. Those of NumPy may be of the dtype S, and in either byte order.
    descending : bool or sequence of bool
        Of all, or of each.
    comm, out, out_count
        As of `argsort`.

    Returns
    -------
    array of int64
        As of `argsort`.
    """
    return sorter_of(comm).argsort_columns(columns, descending=descending, out=out, out_count=out_count)


def sort_by_key(
    keys: Any, *values: Any, comm: Comm = None, descending: bool = False, out_count: Count = None
) -> Tuple[Any, ...]:
    """Sort keys, and bring other arrays into the same order.

    Parameters
    ----------
    keys : array of one dimension
        As `a` of `sort`.
    *values : arrays
        As long as `keys`; of any dtype, and of any shape behind the first axis, up to 65536 bytes an element.
    comm, descending, out_count
        As of `sort`. A communicator may also stand behind the values, without its name.

    Returns
    -------
    tuple of arrays
        The keys, and each of the values. Equal keys keep their order.
    """
    if comm is None and values and isinstance(values[-1], MPI.Comm):
        comm, values = values[-1], values[:-1]
    return sorter_of(comm).sort_by_key(keys, *values, descending=descending, out_count=out_count)


def sort_by_key_in_place(keys: Any, values: Any, comm: Comm = None, *, descending: bool = False) -> None:
    """As `sort_by_key` of one array of values, with both overwritten."""
    sorter_of(comm).sort_by_key_in_place(keys, values, descending=descending)


def sort_records(a: Any, order: Order = None, comm: Comm = None, *, out: Any = None, out_count: Count = None) -> Any:
    """Sort a structured NumPy array by some of its fields.

    Parameters
    ----------
    a : structured array of one dimension
        Not changed. In any layout and byte order.
    order : str or sequence of str, optional
        Up to 8 names of fields, of 16 bytes together; "-name" is descending. ``"pos.x"`` is a field of a field,
        ``"pos[2]"`` an item of one. Numbers and bytes (S, V). Not given: all fields, as they are declared.
    comm, out, out_count
        As of `sort`.

    Returns
    -------
    structured array
        Records with equal keys keep their order.
    """
    return sorter_of(comm).sort_records(a, order, out=out, out_count=out_count)


def sort_records_in_place(a: Any, order: Order = None, comm: Comm = None) -> None:
    """As `sort_records`, with `a` overwritten."""
    sorter_of(comm).sort_records_in_place(a, order)


def take(a: Any, index: Any, comm: Comm = None, *, out: Any = None) -> Any:
    """``a[index]`` over all ranks.

    Parameters
    ----------
    a : array
        Elements of any dtype and shape behind the first axis, 1 to 65536 bytes each.
    index : array of int64
        Global positions in `a`, any, also repeated, but none negative; of NumPy any integers.
    out : array, optional
        Written; as long as `index`. Shares no memory with `a` and `index`.
    comm
        As of `sort`.

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
        Overwritten at these positions. As of `take`.
    index : array of int64
        Global positions in `a`, each once at most.
    values : array
        As long as `index`; of the dtype of `a`, and of its shape behind the first axis.
    comm
        As of `sort`.
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
        As of `sort`.
    return_index, return_inverse, return_counts : bool
        What is wanted besides.
    assume_sorted : bool
        The keys are in order over all ranks, in either direction. Of others each run counts for itself.
    comm
        As of `sort`.

    Returns
    -------
    keys : array
        Those of which the first one, in order, is on this rank: ranks may have any number of them.
    index : array of int64
        Of each the first position in `a`, of all ranks together.
    inverse : array of int64
        As long as `a`: which of the keys of all ranks each one is.
    counts : array of int64
        How often each is there, on all ranks.
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
        As of `sort`.
    positions : int or array of int
        The same on every rank; -1 is the last one.
    comm, descending
        As of `sort`.

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
        As of `sort`.
    q : float or array of float
        0 to 1; the same on every rank.
    method : {"linear", "lower", "higher"}
        What lies between two keys: a double between them, or one of them.
    comm
        As of `sort`.

    Returns
    -------
    scalar or array in host memory
        Of the shape of `q`, the same on every rank. NaN if any key is.
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
        As of `sort`.
    values : array, optional
        What belongs to the keys, as of `sort_by_key`; it is then part of the fingerprints.
    index : array of int64, optional
        Where each was before, as `argsort` says: of keys with values only. Its own position if not given.
    comm, descending
        As of `sort`.

    Returns
    -------
    CheckResult
        The same on every rank. Equal fingerprints before and after: the same elements.
    """
    return sorter_of(comm).check(a, values, index, descending=descending)


def check_records(a: Any, order: Order = None, index: Any = None, comm: Comm = None) -> CheckResult:
    """As `check`, of records by an order as of `sort_records`."""
    return sorter_of(comm).check_records(a, order, index)
