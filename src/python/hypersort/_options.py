"""Keyword arguments as hsort_options."""

from __future__ import annotations

import ctypes
from typing import Any, Dict

import numpy as np

from . import _abi, _built
from ._errors import ArgumentError

_WORDS = {
    "engine": _abi.ENGINES,
    "exchange": _abi.EXCHANGES,
    "transport": _abi.TRANSPORTS,
    "binding": _abi.BINDINGS,
    "peer_memory": _abi.CHOICES,
    "shared_memory": _abi.CHOICES,
    "mpi_device_pointers": _abi.CHOICES,
}
_YES_OR_NO = ("overwrite_input", "keep_host_memory")
_NUMBERS = ("local_rung", "threads", "chunk_bytes", "device_memory_limit", "trace_spans")


def _set_word(options: _abi.Options, name: str, value: Any) -> None:
    choices = ", ".join(_WORDS[name])
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, not one of the words {choices}")
    if value not in _WORDS[name]:
        raise ValueError(f"{name} is {value!r}, not one of {choices}")
    setattr(options, name, _WORDS[name].index(value))


def _set_number(options: _abi.Options, name: str, value: Any) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, which is not a whole number")
    # ctypes would cut off what does not fit, and make a very large size of -1.
    kind = dict(_abi.Options._fields_)[name]
    least = 0 if kind is ctypes.c_size_t else -1
    if not least <= value < 1 << (8 * ctypes.sizeof(kind) - 1):
        raise ValueError(f"{name} is {value!r}")
    setattr(options, name, int(value))


def make_options(library: Any, given: Dict[str, Any]) -> _abi.Options:
    """The defaults, then what is given. TypeError and ValueError name the option; Error: the library is older."""
    options = _abi.Options()
    bytes_here = ctypes.sizeof(options)
    if library.hsort_options_init(ctypes.byref(options), bytes_here) != _abi.Status.OK:
        text = f"{library._name} does not know options of {bytes_here} bytes: is it hypersort {_built.VERSION}?"
        raise ArgumentError(_abi.Status.ARGUMENT, text)
    for name, value in given.items():
        if name in _WORDS:
            _set_word(options, name, value)
        elif name in _NUMBERS:
            _set_number(options, name, value)
        elif name in _YES_OR_NO:
            if not isinstance(value, (bool, np.bool_)):
                raise TypeError(f"{name} is {value!r}, neither True nor False")
            setattr(options, name, bool(value))
        else:
            raise TypeError(f"there is no option {name!r}")
    return options
