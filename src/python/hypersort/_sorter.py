"""The class that users see."""

from __future__ import annotations

import ctypes
from typing import Any, List, Optional, Tuple

from ._arrays import Array, read_keys
from ._looks import Looks
from ._moves import Moves


class Sorter(Moves, Looks):
    """Sorts the arrays of one communicator, and keeps engine, paths and buffers from call to call.

    Making a Sorter is collective, and so are `close` and all other methods except `stats`; the properties are not. The
    methods are the functions of the module without `comm`; see there.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm, optional
        Duplicated; COMM_WORLD if not given.
    **options
        `engine` ("auto", "host", "cuda"), `exchange`, `transport`, `binding`, `peer_memory`, `shared_memory`,
        `mpi_device_pointers`: words of hypersort.h. `local_rung`, `threads`, `chunk_bytes`, `device_memory_limit`,
        `trace_spans`: numbers. `overwrite_input`: bool; if True, `sort` and `sort_records` may leave anything in an
        array that they sort into another one. `keep_host_memory`: bool; if True, host memory that a sort in two passes
        has taken is pinned and kept for the next one. The same on every rank, except `threads`.

    Examples
    --------
    >>> with hypersort.Sorter(MPI.COMM_WORLD, engine="host", threads=4) as sorter:
    ...     for step in steps:
    ...         keys = sorter.sort(step.keys)
    """

    def unique(
        self, a: Any, *, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
        assume_sorted: bool = False,
    ) -> Any:  # fmt: skip
        """As hypersort.unique()."""

        def prepare() -> Tuple[Any, ...]:
            flags = bool(return_index), bool(return_inverse), bool(return_counts)
            return f"{flags}, assume_sorted={bool(assume_sorted)}", flags

        (wanted,) = self._together("unique()", prepare)
        index, in_order = None, a
        # sort() may leave anything in what it sorts, argsort() does not.
        if not assume_sorted and (return_index or return_inverse or self._overwrites_input):
            index, ordered = self._argsort(a, False, None, None, True)
            in_order = ordered.source
        elif not assume_sorted:
            in_order = self.sort(a)
        keys, firsts, ids, counts = self._unique_of(in_order, *wanted)
        results = [keys]
        if return_index:
            results.append(firsts if index is None else self.take(index.source, firsts))
        if return_inverse:
            if index is not None:
                places = self._together("unique()", lambda: ("inverse", index.empty(index.count)))[0].source
                self.put(places, index.source, ids)
                ids = places
            results.append(ids)
        if return_counts:
            results.append(counts)
        return results[0] if len(results) == 1 else tuple(results)

    def _unique_of(self, a: Any, with_first: bool, with_ids: bool, with_counts: bool) -> Tuple[Any, ...]:
        """Of keys in order, one of each run; then first positions, the run of each key and counts, or None instead."""

        def prepare() -> Tuple[Any, ...]:
            keys = read_keys(a, "a")
            outs: List[Optional[Array]] = [keys.empty(keys.count)]
            outs += [keys.empty(keys.count, "int64") if say else None for say in (with_first, with_ids, with_counts)]
            return (keys.kind, keys, outs, self._stream(keys, *outs))

        keys, outs, stream = self._together("unique()", prepare)
        kept = ctypes.c_int64()
        out, first, ids, counts = (array and array.pointer for array in outs)
        self._call("hsort_unique", keys.key.code, keys.pointer, keys.count, out, ctypes.byref(kept), counts, first,
                   ids, stream)  # fmt: skip
        cut = [array and array.first(kept.value) for array in outs]
        cut[2] = outs[2] and outs[2].source  # of all keys
        return tuple(cut)
