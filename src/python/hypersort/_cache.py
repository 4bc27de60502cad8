"""One Sorter for each communicator, kept by MPI as an attribute of it.

So the Sorter goes when the communicator is freed, which is collective, and a new communicator in the place of an old
one has none. At the end of the interpreter nothing is freed: that would wait for ranks that may have died, and keep
`python -m mpi4py` from ending them. The library does not ask for it: a program that exits need not free its contexts.
"""

from __future__ import annotations

import threading
from typing import Any, Optional

from mpi4py import MPI

from ._context import communicator_of, require_mpi
from ._sorter import Sorter

_keyval: Optional[int] = None
_making_keyval = threading.Lock()  # with a key of its own, a thread would not find the Sorter that another has kept


def _dropped(_comm: Any, _keyval_of_it: int, sorter: Sorter) -> None:
    """MPI calls this when the communicator is freed, and for COMM_WORLD in MPI.Finalize()."""
    sorter.close()


def sorter_of(comm: Optional[MPI.Intracomm] = None) -> Sorter:
    """The Sorter that the functions of this module use for a communicator, made at its first use. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm, optional
        COMM_WORLD if not given.

    Returns
    -------
    Sorter
        Has the default options. `close`, its own `close` or `comm.Free()` closes it; then the next call makes another.
    """
    global _keyval
    require_mpi()
    comm = communicator_of(comm)
    with _making_keyval:
        if _keyval is None:
            _keyval = MPI.Comm.Create_keyval(delete_fn=_dropped)
    sorter: Any = comm.Get_attr(_keyval)
    if sorter is None or sorter._comm is None:  # closed by hand
        sorter = Sorter(comm)
        comm.Set_attr(_keyval, sorter)
    return sorter


def close(comm: Optional[MPI.Intracomm] = None) -> None:
    """Free what the functions of this module keep for a communicator: engine and buffers. Collective."""
    require_mpi()
    comm = communicator_of(comm)
    if _keyval is not None and comm.Get_attr(_keyval) is not None:
        comm.Delete_attr(_keyval)
