"""Find the shared library, load it, and refuse one that does not fit.

pkg-config and ctypes.util.find_library() are not used: both start processes, which an MPI process may not do
everywhere.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Iterator, Optional

from mpi4py import MPI

from . import _abi, _built
from ._abi import Status
from ._errors import Error

VERSION: str = _built.VERSION
_TEXT_BYTES = 8192  # MPI_MAX_LIBRARY_VERSION_STRING of MPICH, which has the longest
_loaded: Optional[ctypes.CDLL] = None


def _soname() -> str:
    """Until 1.0 the soname has the minor version, as CMakeLists.txt says."""
    major, minor, _ = VERSION.split(".")
    return f"libhypersort.so.{major}" if major != "0" else f"libhypersort.so.{major}.{minor}"


def _candidates() -> Iterator[str]:
    """Where the library may be, best first. A bare name is left to the loader."""
    given = os.environ.get("HYPERSORT_LIBRARY")
    if given:
        place = os.path.join(given, _soname()) if os.path.isdir(given) else given
        # The loader does not look in the current folder for a name without a folder.
        yield os.path.abspath(place) if os.path.exists(place) else place
        return
    here = Path(__file__).resolve().parent
    places = [here / _soname(), Path(sys.prefix) / "lib" / _soname()]
    if _built.LIBRARY:
        places.insert(0, (here / _built.LIBRARY).resolve())
    yield from (str(place) for place in places if place.exists())
    yield _soname()


def _open() -> ctypes.CDLL:
    causes = []
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            causes.append(str(error))
    raise Error(
        Status.IO,
        f"{_soname()} was not found ({'; '.join(causes)}): set HYPERSORT_LIBRARY to its path, or LD_LIBRARY_PATH",
    )


def _check_version(library: ctypes.CDLL) -> None:
    version = library.hsort_version()
    major, minor, _ = (int(word) for word in VERSION.split("."))
    if version // 100 != major * 100 + minor:
        raise Error(
            Status.ARGUMENT,
            f"this package is of hypersort {VERSION}, but the library {library._name} is "
            f"{version // 10000}.{version // 100 % 100}.{version % 100}",
        )


def _mpi_of(library: ctypes.CDLL) -> tuple[int, str]:
    """The address of the MPI_Get_library_version() that this library finds, and its text; 0 and "" if it finds none."""
    try:
        function = library.MPI_Get_library_version
    except AttributeError:
        return 0, ""
    text, length = ctypes.create_string_buffer(_TEXT_BYTES), ctypes.c_int()
    function(text, ctypes.byref(length))
    return ctypes.cast(function, ctypes.c_void_p).value or 0, text.value.decode(errors="replace")


def _check_mpi(library: ctypes.CDLL) -> None:
    """Refuse an mpi4py of another MPI: a communicator of one is no communicator of the other."""
    _, ours = _mpi_of(library)
    theirs = MPI.Get_library_version()
    # Two copies of MPI, each of which believes that it is alone, may have the same text.
    places = {place for place in (_mpi_of(library)[0], _mpi_of(ctypes.CDLL(MPI.__file__))[0]) if place}
    if ours and (ours.strip("\0 \n") != theirs.strip("\0 \n") or len(places) > 1):
        first, second = (" ".join(text.replace(",", "\n").splitlines()[0].split()) for text in (theirs, ours))
        raise Error(
            Status.MPI,
            f"mpi4py uses {first}, and {library._name} uses {second}"
            f"{' from another place' if first == second else ''}: both must use one MPI",
        )


def load() -> ctypes.CDLL:
    """The library, checked and with its functions declared. Not collective; raises Error."""
    global _loaded
    if _loaded is None:
        library = _open()
        for name, (result, arguments) in _abi.FUNCTIONS.items():
            try:
                function = getattr(library, name)
            except AttributeError:
                raise Error(Status.ARGUMENT, f"{library._name} has no {name}(): is it hypersort {VERSION}?") from None
            function.restype, function.argtypes = result, arguments
        _check_version(library)
        _check_mpi(library)
        _loaded = library
    return _loaded


def synchronize(library: ctypes.CDLL, stream: int) -> None:
    """Wait for a CUDA stream, by the runtime that the library uses."""
    try:
        function = library.cudaStreamSynchronize
    except AttributeError:
        raise Error(Status.NO_DEVICE, f"{library._name} is built without CUDA") from None
    code = function(ctypes.c_void_p(stream))
    if code != 0:
        raise Error(Status.CUDA, f"cudaStreamSynchronize: error {code}")
