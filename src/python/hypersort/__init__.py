"""Sort arrays that are spread over the ranks of an MPI communicator, on GPUs or on CPU cores.

    mine = hypersort.sort(mine, comm)      # NumPy, CuPy, Numba, PyTorch; each rank has a part

The functions are collective. An error is one exception, `Error`, with one text on every rank. src/python/README.md, in
the source or in share/doc/hypersort, has the design.
"""

from ._abi import Status
from ._cache import close, sorter_of
from ._errors import ArgumentError, Error, OutOfMemoryError
from ._functions import (
    argsort,
    argsort_columns,
    check,
    check_records,
    median,
    put,
    quantile,
    select,
    sort,
    sort_by_key,
    sort_by_key_in_place,
    sort_in_place,
    sort_records,
    sort_records_in_place,
    take,
    unique,
)
from ._library import VERSION as __version__
from ._looks import CheckResult
from ._sorter import Sorter
from ._types import uint128

__all__ = [
    "ArgumentError", "CheckResult", "Error", "OutOfMemoryError", "Sorter", "Status", "__version__", "argsort",
    "argsort_columns", "check", "check_records", "close", "median", "put", "quantile", "select", "sort", "sort_by_key",
    "sort_by_key_in_place", "sort_in_place", "sort_records", "sort_records_in_place", "sorter_of", "take", "uint128",
    "unique",
]  # fmt: skip
