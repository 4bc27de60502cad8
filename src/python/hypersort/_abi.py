"""hypersort.h as ctypes sees it: lists, structs and functions, in the order of the header.

A test of the source compares all of it with the headers, by a C program that prints sizes and offsets.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from enum import IntEnum

PHASES_MAX, TRANSPORTS_MAX, FIELDS_MAX = 8, 8, 8

# In the header's order: the place of a word in its list is the value of the enum.
TYPES = "u32 i32 f32 u64 i64 f64 u128 u8 i8 u16 i16 f16 bf16".split()
ENGINES = "auto host cuda".split()
EXCHANGES = "auto bitonic direct partition".split()
TRANSPORTS = "auto staged mpi ipc".split()
BINDINGS = "auto none".split()
CHOICES = "auto off on".split()
PHASES = "h2d local_sort exchange merge d2h gather".split()


class Status(IntEnum):
    """How a call of the library ended: hsort_status."""

    OK = 0
    STOPPED = 1
    MISMATCH = 2
    ARGUMENT = 3
    FORMAT = 4
    IO = 5
    NO_DEVICE = 6
    LAUNCH = 7
    DEVICE_MEMORY = 8
    HOST_MEMORY = 9
    CUDA = 10
    MPI = 11
    INTERNAL = 12


class Options(ctypes.Structure):
    """hsort_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("engine", c_int),
        ("local_rung", c_int),
        ("exchange", c_int),
        ("transport", c_int),
        ("peer_memory", c_int),
        ("shared_memory", c_int),
        ("mpi_device_pointers", c_int),
        ("binding", c_int),
        ("threads", c_int),
        ("chunk_bytes", c_size_t),
        ("device_memory_limit", c_size_t),
        ("progress", c_void_p),
        ("progress_user", c_void_p),
        ("should_stop", c_void_p),
        ("should_stop_user", c_void_p),
        ("overwrite_input", c_int),
        ("trace_spans", c_int64),
        ("keep_host_memory", c_int),
    ]


class CheckStruct(ctypes.Structure):
    """hsort_check_result"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("count", c_int64),
        ("first_disorder", c_int64),
        ("fingerprint", c_uint64 * 2),
        ("first_unstable", c_int64),
        ("placed_fingerprint", c_uint64 * 2),
    ]


class Field(ctypes.Structure):
    """hsort_field"""

    _fields_ = [
        ("offset", c_size_t),
        ("type", c_int),
        ("order", c_int),
        ("bytes", c_int),
        ("big_endian", c_int),
    ]


class PathStats(ctypes.Structure):
    """hsort_path_stats"""

    _fields_ = [
        ("pairs", c_int64),
        ("moved_bytes", c_int64),
        ("moved_bytes_largest", c_int64),
        ("seconds", c_double),
    ]


class Stats(ctypes.Structure):
    """hsort_stats"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("keys", c_int64),
        ("moved_bytes", c_int64),
        ("rounds", c_int),
        ("seconds", c_double * PHASES_MAX),
        ("total_seconds", c_double),
        ("paths", PathStats * TRANSPORTS_MAX),
        ("passes", c_int64),
        ("runs", c_int64),
        ("segments", c_int64),
        ("crossed_bytes", c_int64),
        ("crossed_plain_bytes", c_int64),
        ("paths_crossed_bytes", c_int64 * TRANSPORTS_MAX),
        ("engine", c_int),
    ]


class RankInfo(ctypes.Structure):
    """hsort_rank_info"""

    _fields_ = [
        ("host", c_char * 64),
        ("gpu_name", c_char * 64),
        ("gpu_uuid", c_char * 48),
        ("gpu_pci", c_char * 16),
        ("gpu_bytes", c_int64),
        ("gpu_index", c_int),
        ("gpu_sharers", c_int),
        ("numa_node", c_int),
        ("cores", c_int),
        ("cpus", c_char * 64),
        ("bound_by_launcher", c_int),
    ]


# The structs by their C names; those with a struct_size may be shorter here than in a newer library.
STRUCTS = {
    "hsort_options": Options,
    "hsort_check_result": CheckStruct,
    "hsort_field": Field,
    "hsort_path_stats": PathStats,
    "hsort_stats": Stats,
    "hsort_rank_info": RankInfo,
}

_KEYS = [c_void_p, c_int, c_int]  # context, type, order
_FIELDS = [POINTER(Field), c_int]

# Name: what it returns, and its arguments. Arrays are c_void_p, which takes an address or None.
FUNCTIONS = {
    "hsort_version": (c_int, []),
    "hsort_build_info": (c_char_p, []),
    "hsort_options_init": (c_int, [POINTER(Options), c_size_t]),
    "hsort_create_f": (c_int, [c_int, POINTER(Options), POINTER(c_void_p)]),
    "hsort_destroy": (None, [POINTER(c_void_p)]),
    "hsort_last_error": (c_char_p, [c_void_p]),
    "hsort_sort": (c_int, [*_KEYS, c_void_p, c_int64, c_void_p]),
    "hsort_sort_to": (c_int, [*_KEYS, c_void_p, c_int64, c_void_p, c_int64, c_void_p]),
    "hsort_check": (c_int, [*_KEYS, c_void_p, c_int64, c_void_p, POINTER(CheckStruct)]),
    "hsort_argsort": (c_int, [*_KEYS, c_void_p, c_int64, c_void_p, c_void_p, c_int64, c_void_p]),
    "hsort_sort_pairs": (c_int, [*_KEYS, c_void_p, c_void_p, c_size_t, c_int64, c_void_p]),
    "hsort_sort_pairs_to": (
        c_int,
        [*_KEYS, c_void_p, c_void_p, c_size_t, c_int64, c_void_p, c_void_p, c_int64, c_void_p],
    ),
    "hsort_sort_records": (c_int, [c_void_p, c_void_p, c_size_t, *_FIELDS, c_int64, c_void_p]),
    "hsort_sort_records_to": (
        c_int,
        [c_void_p, c_void_p, c_size_t, *_FIELDS, c_int64, c_void_p, c_int64, c_void_p],
    ),
    "hsort_argsort_columns": (
        c_int,
        [c_void_p, POINTER(c_void_p), *_FIELDS, c_int64, c_void_p, c_int64, c_void_p],
    ),
    "hsort_gather": (c_int, [c_void_p, c_void_p, c_int64, c_size_t, c_void_p, c_void_p, c_int64, c_void_p]),
    "hsort_scatter": (c_int, [c_void_p, c_void_p, c_int64, c_size_t, c_void_p, c_void_p, c_int64, c_void_p]),
    "hsort_check_pairs": (
        c_int,
        [*_KEYS, c_void_p, c_void_p, c_size_t, c_int64, c_void_p, c_void_p, POINTER(CheckStruct)],
    ),
    "hsort_check_records": (
        c_int,
        [c_void_p, c_void_p, c_size_t, *_FIELDS, c_int64, c_void_p, c_void_p, POINTER(CheckStruct)],
    ),
    "hsort_select": (c_int, [*_KEYS, c_void_p, c_int64, c_void_p, c_int64, c_void_p, c_void_p]),
    "hsort_unique": (
        c_int,
        [c_void_p, c_int, c_void_p, c_int64, c_void_p, POINTER(c_int64), c_void_p, c_void_p, c_void_p, c_void_p],
    ),
    "hsort_get_stats": (c_int, [c_void_p, POINTER(Stats)]),
    "hsort_write_trace": (c_int, [c_void_p, c_char_p, POINTER(c_int64), POINTER(c_int64)]),
    "hsort_topology": (c_int, [c_void_p, POINTER(RankInfo), c_size_t]),
    "hsort_engine_in_use": (c_int, [c_void_p]),
    "hsort_exchange_in_use": (c_int, [c_void_p]),
}
