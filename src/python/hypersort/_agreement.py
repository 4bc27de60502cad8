"""All ranks or none: an error of one rank becomes the same error on every rank, before any of them waits.

    rank 0   prepare ... ok               | Allreduce | ArgumentError "rank 1 on node7: keys has 2 dimensions"
    rank 1   prepare ... two dimensions   |           | the same
    rank 2   prepare ... ok               |           | the same

The library agrees likewise on what it is given. This module is for what the library never sees: a dtype that it has no
type for, an output that Python cannot make, a rank that calls another function.
"""

from __future__ import annotations

import hashlib
from typing import Any, Callable, Tuple, TypeVar

import numpy as np
from mpi4py import MPI

from ._errors import Error, error_of, status_of

T = TypeVar("T")


def _digest(words: str) -> int:
    return int.from_bytes(hashlib.blake2b(words.encode(errors="surrogatepass"), digest_size=7).digest(), "little")


def _explain(comm: MPI.Intracomm, words: str, failure: Exception | None) -> Error:
    """The error that all ranks raise. Collective."""
    mine = None
    if failure is not None:
        text = failure.text if isinstance(failure, Error) else str(failure) or type(failure).__name__
        mine = (int(status_of(failure)), text.replace("\n", " "))
    heard = comm.allgather((words, mine, MPI.Get_processor_name()))
    failed = [(status, -rank) for rank, (_, what, _) in enumerate(heard) if what for status in what[:1]]
    if failed:
        status, rank = max(failed)  # the last status in the list, and the lowest rank that has it
        _, what, host = heard[-rank]
        return error_of(status, f"rank {-rank} on {host}: {what[1]}")
    other = next(rank for rank, (said, _, _) in enumerate(heard) if said != heard[0][0])
    return error_of(
        status_of(ValueError()),
        f"ranks call differently: rank 0 {heard[0][0]}, rank {other} on {heard[other][2]} {heard[other][0]}",
    )


def together(comm: MPI.Intracomm, prepare: Callable[[], Tuple[str, T]]) -> T:
    """Return what `prepare` has made ready, or raise the same error on every rank. Collective.

    prepare() returns the call in words, which must be the same on every rank, and what this rank has made ready.
    """
    failure, words = None, ""
    work: Any = None
    try:
        words, work = prepare()
    except Exception as error:  # whatever it is, other ranks wait for this one
        failure = error
    digest = _digest(words)
    state = np.array([failure is not None, digest, -digest], np.int64)
    comm.Allreduce(MPI.IN_PLACE, state, op=MPI.MAX)
    if state[0] or state[1] != -state[2]:
        try:
            raise _explain(comm, words, failure) from failure
        finally:
            failure = None  # its traceback has this frame: as a circle they would keep the caller's arrays for long
    return work
