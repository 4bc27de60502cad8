"""What is raised: one exception, the same on every rank."""

from __future__ import annotations

from ._abi import Status


class Error(Exception):
    """A call failed, on every rank with the same status and text.

    Attributes
    ----------
    status : Status
        The kind of failure; if ranks fail differently, the last one in the list of `Status`.
    text : str
        One line: which rank, on which host, and why.
    """

    def __init__(self, status: Status, text: str):
        super().__init__(f"{text} ({Status(status).name})")
        self.status = Status(status)
        self.text = text

    def __reduce__(self):  # pickled by the arguments of __init__, which are not those of Exception
        return type(self), (self.status, self.text)


class ArgumentError(Error, ValueError):
    """An argument is wrong on some rank; no array was changed."""


class OutOfMemoryError(Error, MemoryError):
    """Host or device memory does not suffice on some rank."""


def error_of(status: int, text: str) -> Error:
    """The exception for a status of the library."""
    if status == Status.ARGUMENT:
        return ArgumentError(Status.ARGUMENT, text)
    if status in (Status.HOST_MEMORY, Status.DEVICE_MEMORY):
        return OutOfMemoryError(Status(status), text)
    return Error(Status(status), text)


def status_of(failure: Exception) -> Status:
    """The status for a Python exception. CuPy and PyTorch have memory errors of their own, known by name."""
    if isinstance(failure, Error):
        return failure.status
    if isinstance(failure, MemoryError):
        return Status.HOST_MEMORY
    if type(failure).__name__ in ("OutOfMemoryError", "CudaAPIError"):
        return Status.DEVICE_MEMORY
    if isinstance(failure, (TypeError, ValueError, LookupError, AttributeError, BufferError)):
        return Status.ARGUMENT
    return Status.INTERNAL
