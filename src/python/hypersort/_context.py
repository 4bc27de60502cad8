"""A context of the library, and how its ranks keep together.

Each call prepares what it needs, so that whatever may fail on one rank fails before the ranks begin. Then all ranks
agree (_agreement.py). Only then do they call the library, which agrees by itself.
"""

from __future__ import annotations

import ctypes
import os
import warnings
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar, Union

from mpi4py import MPI

from . import _abi, _library
from ._abi import Status
from ._agreement import together
from ._arrays import Array, stream_of
from ._errors import Error, error_of
from ._options import make_options

Count = Union[None, int, str]
T = TypeVar("T", bound="Context")


def require_mpi() -> None:
    """Raise Error if there is no MPI to communicate by. Not collective."""
    if not MPI.Is_initialized() or MPI.Is_finalized():
        raise Error(Status.MPI, "MPI is not initialised, or is finalised already")


def communicator_of(comm: Optional[MPI.Intracomm]) -> MPI.Intracomm:
    """The communicator; COMM_WORLD for None. Not collective, because there is no communicator to agree over."""
    comm = MPI.COMM_WORLD if comm is None else comm
    if isinstance(comm, MPI.Comm) and comm == MPI.COMM_NULL:
        raise TypeError("comm is MPI.COMM_NULL: it was freed, or this rank is not one of its ranks")
    if not isinstance(comm, MPI.Intracomm):
        raise TypeError(f"comm is {comm!r}, not an intracommunicator of mpi4py")
    return comm


class Context:
    """What all calls share; Sorter documents it."""

    def __init__(self, comm: Optional[MPI.Intracomm] = None, **options: Any):
        self._handle = ctypes.c_void_p()
        self._comm: Any = None
        require_mpi()
        self._comm = communicator_of(comm).Dup()
        try:
            self._create(options)
        except BaseException:
            self.close()
            raise

    def _create(self, options: Dict[str, Any]) -> None:
        def prepare() -> Tuple[str, Any]:
            library = _library.load()
            return "Sorter()", (library, make_options(library, options))

        self._library, made = together(self._comm, prepare)
        self._overwrites_input = bool(made.overwrite_input)
        status = self._library.hsort_create_f(self._comm.py2f(), ctypes.byref(made), ctypes.byref(self._handle))
        if status != Status.OK:
            raise error_of(status, self._library.hsort_last_error(None).decode(errors="replace"))
        self._on_gpu = self.engine == "cuda"
        self._gpu_index = self.topology()[self._comm.rank]["gpu_index"] if self._on_gpu else -1

    def close(self) -> None:
        """Free what the library holds. Collective; a second call does nothing.

        After MPI.Finalize() it frees what belongs to this process, and waits for nobody.
        """
        if self._handle:
            self._library.hsort_destroy(ctypes.byref(self._handle))
        if self._comm is not None and not MPI.Is_finalized():
            self._comm.Free()
        self._comm = None

    def __enter__(self: T) -> T:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        # After an exception on this rank alone the others are elsewhere, and would never come to close().
        if kind is None or issubclass(kind, Error):
            self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):  # not freed: ranks drop their last references at different times
            warnings.warn("a hypersort.Sorter was not closed", ResourceWarning, source=self)

    # ---- the ranks together --------------------------------------------------------------------------------------

    def _together(self, words: str, prepare: Callable[[], Any]) -> Any:
        """What prepare() gives, without the text that comes first, which is added to `words`. Collective."""
        if self._comm is None:
            raise ValueError("the Sorter is closed")
        require_mpi()

        def say() -> Tuple[str, Any]:
            work = prepare()
            return f"{words} of {work[0]}", work[1:]

        return together(self._comm, say)

    def _call(self, name: str, *arguments: Any) -> None:
        """Call the library. Collective. The status is the same on every rank, and so is what is raised."""
        status = getattr(self._library, name)(self._handle, *arguments)
        if status != Status.OK:
            raise error_of(status, self._library.hsort_last_error(self._handle).decode(errors="replace"))

    def _stream(self, *arrays: Optional[Array]) -> Optional[int]:
        """For prepare(): the stream to wait for before these arrays are read; TypeError if one cannot be reached."""
        for array in arrays:
            if array is not None and array.on_device and not self._on_gpu:
                raise TypeError("an array lies in GPU memory, but the engine in use is host: pass an array of NumPy")
        return stream_of(*arrays)

    def _refuse_overwriting(self, array: Array) -> None:
        """For prepare(): refuse a read-only array if the sort may leave anything in it."""
        if self._overwrites_input and array.read_only:
            raise ValueError("a is read-only, but with overwrite_input it may be written")

    def _out_count(self, length: Callable[[], int], out_count: Count) -> Optional[int]:
        """The count that is asked for; "even" is this rank's share of all elements. Collective if it is a string.

        length() is the number of this rank's elements.
        """
        if not isinstance(out_count, str):
            return out_count

        def prepare() -> Tuple[str, int]:
            if out_count != "even":
                raise ValueError(f"out_count is {out_count!r}, not a count or 'even'")
            return out_count, length()

        (mine,) = self._together("out_count", prepare)
        each, more = divmod(self._comm.allreduce(mine), self._comm.size)
        return each + (self._comm.rank < more)

    # ---- what happened, and where --------------------------------------------------------------------------------

    @property
    def engine(self) -> str:
        """What sorts: "host" or "cuda"."""
        if not self._handle:
            raise ValueError("the Sorter is closed")
        return _abi.ENGINES[self._library.hsort_engine_in_use(self._handle)]

    @property
    def exchange(self) -> str:
        """The exchange of the last sort; "auto" after one that needs none."""
        if not self._handle:
            raise ValueError("the Sorter is closed")
        return _abi.EXCHANGES[self._library.hsort_exchange_in_use(self._handle)]

    @property
    def gpu_index(self) -> int:
        """The rank's GPU, as CUDA counts GPUs in this process; -1 without one. Arrays in GPU memory must lie there."""
        return self._gpu_index

    @property
    def build_info(self) -> str:
        """Version, commit, compiler, CUDA and MPI that the library was built with."""
        return self._library.hsort_build_info().decode()

    def topology(self) -> List[Dict[str, Any]]:
        """What each rank runs on: the members of hsort_rank_info. Collective."""
        (infos,) = self._together("topology()", lambda: ("all ranks", (_abi.RankInfo * self._comm.size)()))
        self._call("hsort_topology", infos, ctypes.sizeof(_abi.RankInfo))
        names = [field[0] for field in _abi.RankInfo._fields_]
        values = [[getattr(info, name) for name in names] for info in infos]
        return [
            {name: value.decode() if isinstance(value, bytes) else value for name, value in zip(names, row)}
            for row in values
        ]

    def write_trace(self, path: Union[str, "os.PathLike[str]"]) -> Tuple[int, int]:
        """Write a file of what the ranks did when, for ui.perfetto.dev. Needs the option `trace_spans`. Rank 0 writes
        the file. Collective. Returns how many spans of time it has, and for how many more there was no room."""

        def prepare() -> Tuple[str, bytes]:
            name = os.fsencode(path)
            if b"\0" in name:  # where a text of C ends
                raise ValueError(f"path is {path!r}, with a null character")
            return "a trace", name

        (name,) = self._together("write_trace()", prepare)
        spans, lost = ctypes.c_int64(), ctypes.c_int64()
        self._call("hsort_write_trace", name, ctypes.byref(spans), ctypes.byref(lost))
        return spans.value, lost.value

    def stats(self) -> Dict[str, Any]:
        """The members of hsort_stats, for the last call that sorted or moved something. Not collective."""
        found = _abi.Stats(struct_size=ctypes.sizeof(_abi.Stats))
        if not self._handle:
            raise ValueError("the Sorter is closed")
        status = self._library.hsort_get_stats(self._handle, ctypes.byref(found))
        if status != Status.OK:
            raise error_of(status, "there are no statistics yet")
        members = {field[0]: getattr(found, field[0]) for field in _abi.Stats._fields_[1:]}
        members["seconds"] = dict(zip(_abi.PHASES, found.seconds))
        members["engine"] = _abi.ENGINES[found.engine]
        members["paths"] = {
            name: {field[0]: getattr(path, field[0]) for field in _abi.PathStats._fields_}
            for name, path in zip(_abi.TRANSPORTS[1:], found.paths[1:])
        }
        crossed = members.pop("paths_crossed_bytes")
        for name, bytes_of_path in zip(_abi.TRANSPORTS[1:], crossed[1:]):
            members["paths"][name]["crossed_bytes"] = bytes_of_path
        return members
