#!/usr/bin/env python3
"""How programs end that have sorted, and begin that cannot: python_ends.py HOW [WORD]

plain      with contexts that were not closed, and are not by the interpreter: ranks may end at different times
finalize   after MPI.Finalize() by hand
raises     rank 0 by an exception, while the others wait for it: ended by `python -m mpi4py`
late       the same when all have sorted: nobody waits for rank 0
refused    the first call is an error on every rank, with WORD in its text
before     MPI is not initialised
"""

import atexit
import os
import signal
import sys

import mpi4py
import numpy as np

if sys.argv[1] == "before":
    mpi4py.rc.initialize = False
from mpi4py import MPI

KEPT = []  # a Sorter that must still be open at the end


@atexit.register  # before the package could do so, thus called after what it registers
def _look():
    if any(not sorter._handle for sorter in KEPT):
        os.write(2, b"failed: a Sorter was closed at the end\n")
        os._exit(3)


import hypersort  # pylint: disable=wrong-import-position # noqa: E402


def expect_error(status, word, call=hypersort.sort, keys=(np.arange(3.0),)):
    """End with 1 unless a call raises this."""
    try:
        call(*keys)
    except hypersort.Error as error:
        if error.status == status and word in error.text:
            return
        sys.exit(f"failed: {error!r}")
    sys.exit("failed: no error")


def main():
    signal.alarm(60)
    how = sys.argv[1]
    if how == "before":
        expect_error(hypersort.Status.MPI, "initialised")
        return
    if how == "refused":
        expect_error(hypersort.Status[sys.argv[2]], sys.argv[3])
        return
    comm = MPI.COMM_WORLD
    hypersort.sort(np.arange(3.0), comm)
    if how == "plain":
        KEPT.append(hypersort.sorter_of(comm))
        hypersort.sort(np.arange(3.0), comm.Dup())
    if how == "finalize":
        sorter = hypersort.Sorter(comm)
        MPI.Finalize()
        expect_error(hypersort.Status.MPI, "finalised")
        expect_error(hypersort.Status.MPI, "finalised", sorter.sort)
        expect_error(hypersort.Status.MPI, "finalised", hypersort.close, ())
        sorter.close()
    if how in ("raises", "late") and comm.rank == 0:
        raise RuntimeError("by intent")
    if how == "raises":
        hypersort.sort(np.arange(3.0), comm)


if __name__ == "__main__":
    main()
