#!/usr/bin/env python3
"""What is wrong on one rank is one error on all: mpirun -n RANKS python3 -m mpi4py python_errors.py

Each line of WRONG is a call with an argument that is right on all ranks but the last, and a word of the error. Every
rank must raise the same, and the next call must work. A rank that waits for ever ends the test by its alarm.
"""

import contextlib
import ctypes
import gc
import json
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
import types
import warnings
import weakref

import numpy as np
from mpi4py import MPI

import hypersort
from hypersort import _abi, _cache
from python_oracle import Ranks

KEYS = np.arange(40, dtype="f8")[::-1].copy()
INDEX = np.zeros(4, np.int64)
RECORDS = np.zeros(
    5, [("a", "u4"), ("when", "M8[s]"), ("rest", "S60"), ("none", "S0"), ("three", "f4", 3), ("grid", "f4", (2, 2))]
)
DATES = np.zeros(4, "M8[s]")
NAT = np.array(["NaT", 0, 1, 2], "M8[s]")
NAT_RECORDS = RECORDS.copy()
NAT_RECORDS["when"][2] = "NaT"
NO_UNICODE = np.zeros(5, [("\udc80", "u4")])
READ_ONLY = KEYS.copy()
READ_ONLY.flags.writeable = False
ROOM = np.empty(40)
SHARED = np.arange(80, dtype="f8")
ODD = SHARED.view("u1")[4:324].view("f8")
SWAPPED = SHARED.view(">f8")
PLACES = np.arange(40)
SHORT = PLACES.astype("i4")
OBJECTS = np.array([None] * 40)
MASKED = np.ma.masked_array(KEYS, KEYS > 3)

# What is called; the argument on most ranks, and on the last one; a word of the error.
WRONG = [
    ("sort", hypersort.sort, KEYS, KEYS.reshape(4, 10), "2 dimensions"),
    ("sort of a number", hypersort.sort, KEYS, 3.0, "no dimensions"),
    ("sort of complex", hypersort.sort, KEYS, KEYS.astype("c16"), "not a key type"),
    ("sort of text", hypersort.sort, KEYS, KEYS.astype("S8"), "argsort_columns()"),
    ("sort of records", hypersort.sort, KEYS, RECORDS, "sort_records()"),
    ("sort of long double", hypersort.sort, KEYS, KEYS.astype("g"), "not a key type"),
    ("sort of objects", hypersort.sort, KEYS, OBJECTS, "objects"),
    ("sort of another dtype", hypersort.sort, KEYS, KEYS.astype("f4"), "differently"),
    ("sort of another unit", hypersort.sort, DATES, DATES.astype("M8[D]"), "differently"),
    ("sort of bytes as bool", hypersort.sort, np.zeros(4, "u1"), np.zeros(4, "?"), "differently"),
    ("sort with a mask", hypersort.sort, KEYS, MASKED, "mask"),
    ("sort of NaT", hypersort.sort, DATES, NAT, "NaT"),
    ("direction", lambda down: hypersort.sort(KEYS, descending=down), False, True, "differently"),
    ("out of another dtype", lambda out: hypersort.sort(KEYS, out=out), ROOM, np.empty(40, "f4"), "float32"),
    ("out of another shape", lambda out: hypersort.sort(KEYS, out=out), ROOM, np.empty((40, 1)), "shape"),
    ("out with strides", lambda out: hypersort.sort(KEYS, out=out), ROOM, np.empty(80)[::2], "contiguous"),
    ("out read-only", lambda out: hypersort.sort(KEYS, out=out), ROOM, READ_ONLY, "read-only"),
    ("out a list", lambda out: hypersort.sort(KEYS, out=out), ROOM, [0.0] * 40, "not an array"),
    ("out that overlaps", lambda out: hypersort.sort(SHARED[:40], out=out), SHARED[40:], SHARED[1:41], "in and out overlap"),
    ("odd out that overlaps", lambda out: hypersort.sort(SHARED[:40], out=out), SHARED[40:], ODD, "in and out overlap"),
    ("out in keys with gaps", lambda out: hypersort.sort(SHARED[::2], out=out), ROOM, SHARED[:40], "in and out overlap"),
    ("out in a buffer with gaps", lambda out: hypersort.sort(memoryview(SHARED)[::2], out=out), ROOM, SHARED[:40], "in and out overlap"),
    ("odd out in a buffer", lambda out: hypersort.sort(memoryview(SHARED)[:40], out=out), SHARED[40:], ODD, "in and out overlap"),
    ("index in a buffer", lambda out: hypersort.take(SHORT.copy(), memoryview(SHORT), out=out), SHORT.copy(), SHORT, "overlap"),
    ("out in swapped keys", lambda out: hypersort.sort(SWAPPED[:40], out=out), ROOM, SHARED[1:41], "in and out overlap"),
    ("out is a part of swapped keys", lambda out: hypersort.sort(SWAPPED[:40], out=out), ROOM, SHARED[:39], "in and out overlap"),
    ("out of another count", lambda n: hypersort.sort(KEYS, out=ROOM, out_count=n), 40, 39, "has 40 elements"),
    ("an index of floats", lambda out: hypersort.argsort(KEYS, out=out), PLACES.copy(), ROOM, "not of int64"),
    ("an index in rows", lambda out: hypersort.argsort(KEYS, out=out), PLACES.copy(), PLACES.reshape(40, 1), "one dimension"),
    ("index in keys with gaps", lambda out: hypersort.argsort(PLACES[::2], out=out), PLACES[:20].copy(), PLACES[:20], "overlap"),
    ("index in a column", lambda out: hypersort.argsort_columns([KEYS, PLACES[::-1]], out=out), PLACES.copy(), PLACES, "overlap"),
    ("out in records", lambda out: hypersort.sort_records(RECORDS[::2], "a", out=out), RECORDS[:3].copy(), RECORDS[:3], "overlap"),
    ("out in elements with gaps", lambda out: hypersort.take(SHARED[::2], INDEX, out=out), ROOM[:4], SHARED[:4], "overlap"),
    ("out in the index", lambda out: hypersort.take(SHORT.copy(), SHORT, out=out), SHORT.copy(), SHORT, "overlap"),
    ("values of what is written", lambda v: hypersort.put(SHARED, PLACES, v), KEYS, SHARED[::-2], "overlap"),
    ("index in what is written", lambda i: hypersort.put(PLACES, i, INDEX), INDEX, PLACES[::10], "overlap"),
    ("index in the keys", lambda out: hypersort.argsort(PLACES, out=out), PLACES.copy(), PLACES, "keys and index overlap"),
    ("keys as values", lambda v: hypersort.sort_by_key_in_place(SHARED[:40], v), SHARED[40:], SHARED[:40], "overlap"),
    ("values in keys", lambda v: hypersort.sort_by_key_in_place(SHARED[:40], v), SHARED[40:], SHARED[39:79], "overlap"),
    ("a count beyond 63 bits", lambda n: hypersort.sort(KEYS, out_count=n), 40, 1 << 70, "out_count is 118059"),
    ("counts", lambda n: hypersort.sort(KEYS, out_count=n), 40, 39, "asked for"),
    ("a count below 0", lambda n: hypersort.sort(KEYS, out_count=n), 40, -1, "out_count"),
    ("a word for a count", lambda n: hypersort.sort(KEYS, out_count=n), "even", "odd", "odd"),
    ("a count or a word", lambda n: hypersort.sort(KEYS, out_count=n), "even", 40, "differently"),
    ("in place with strides", hypersort.sort_in_place, KEYS.copy(), np.empty(80)[::2], "contiguous"),
    ("in place read-only", hypersort.sort_in_place, KEYS.copy(), READ_ONLY, "read-only"),
    ("in place, swapped", hypersort.sort_in_place, KEYS.copy(), KEYS.astype(">f8"), "byte order"),
    ("in place, a list", hypersort.sort_in_place, KEYS.copy(), [1.0], "not an array"),
    ("another call", lambda call: call(KEYS), hypersort.sort, hypersort.argsort, "differently"),
    ("flags", lambda say: hypersort.unique(KEYS, return_index=say), False, True, "differently"),
    ("a flag that is none", lambda say: hypersort.unique(KEYS, return_index=say), False, KEYS > 3, "ambiguous"),
    ("another flag", lambda say: hypersort.unique(KEYS, return_counts=say), False, True, "differently"),
    ("values of another length", lambda v: hypersort.sort_by_key(KEYS, v), KEYS, KEYS[1:], "39 values"),
    ("more values", lambda n: hypersort.sort_by_key(KEYS, *[KEYS] * n), 2, 3, "differently"),
    ("one of two values", lambda v: hypersort.sort_by_key(KEYS, KEYS, v), KEYS, KEYS[1:], "has 39"),
    ("a number beside values", lambda v: hypersort.sort_by_key(KEYS, KEYS, v), KEYS, 3.0, "values 1 has no length"),
    ("a number, spread evenly", lambda a: hypersort.sort(a, out_count="even"), KEYS, 3.0, "a has no length"),
    ("values of another dtype", lambda v: hypersort.sort_by_key(KEYS, v), KEYS, PLACES, "differently"),
    ("two values of another dtype", lambda v: hypersort.sort_by_key(KEYS, KEYS, v), KEYS, PLACES, "differently"),
    ("values in place of another dtype", lambda v: hypersort.sort_by_key_in_place(KEYS.copy(), v), ROOM, PLACES, "differently"),
    ("values with objects", lambda v: hypersort.sort_by_key(KEYS, v), KEYS, OBJECTS, "objects"),
    ("values in place of another length", lambda v: hypersort.sort_by_key_in_place(KEYS.copy(), v), ROOM, ROOM[1:], "39 values"),
    ("values in place with objects", lambda v: hypersort.sort_by_key_in_place(KEYS.copy(), v), ROOM, OBJECTS, "objects"),
    ("values in place", lambda v: hypersort.sort_by_key_in_place(KEYS.copy(), v), KEYS.copy(), READ_ONLY, "read-only"),
    ("index of floats", lambda i: hypersort.take(KEYS, i), INDEX, INDEX + 0.5, "not an integer type"),
    ("index of two dimensions", lambda i: hypersort.take(KEYS, i), INDEX, INDEX.reshape(2, 2), "one dimension"),
    ("index too large", lambda i: hypersort.take(KEYS, i), INDEX, INDEX + 10**9, "4 of 4 positions"),
    ("index below 0", lambda i: hypersort.take(KEYS, i), INDEX, INDEX - 1, "4 of 4 positions"),
    ("elements of another size", lambda a: hypersort.take(a, INDEX), KEYS, KEYS.reshape(20, 2), "differently"),
    ("elements of another dtype", lambda a: hypersort.take(a, INDEX), KEYS, KEYS.astype("i8"), "differently"),
    ("elements in another byte order", lambda a: hypersort.take(a, INDEX), KEYS, KEYS.astype(">f8"), "differently"),
    ("put into another dtype", lambda a: hypersort.put(a, INDEX[:0], a[:0]), ROOM, ROOM.view("i8"), "differently"),
    ("put of another length", lambda v: hypersort.put(ROOM, INDEX, v), KEYS[:4], KEYS, "40 values"),
    ("put of another dtype", lambda v: hypersort.put(ROOM, INDEX, v), KEYS[:4], INDEX, "int64"),
    ("no such field", lambda o: hypersort.sort_records(RECORDS, o), "a", "b", "no field 'b'"),
    ("the command's way to descend", lambda o: hypersort.sort_records(RECORDS, o), "a", "a:desc", "; descending is '-NAME'"),
    ("too large a field", lambda o: hypersort.sort_records(RECORDS, o), "rest", "rest", "60 bytes"),
    ("a field of several numbers", lambda o: hypersort.sort_records(RECORDS, o), "a", "three", "not a key type"),
    ("a field of a number", lambda o: hypersort.sort_records(RECORDS, o), "a", "a.x", "no field"),
    ("an item that is none", lambda o: hypersort.sort_records(RECORDS, o), "a", "three[3]", "no number"),
    ("an item of two dimensions", lambda o: hypersort.sort_records(RECORDS, o), "a", "grid[1]", "no number"),
    ("a name that is empty", lambda o: hypersort.sort_records(RECORDS, o), "a", "", "not a field"),
    ("a field without bytes", lambda o: hypersort.sort_records(RECORDS, o), "a", "none", "no bytes"),
    ("a column without bytes", lambda c: hypersort.argsort_columns([c]), RECORDS["a"][:1], RECORDS["none"][:1], "no bytes"),
    ("another order", lambda o: hypersort.sort_records(RECORDS, o), "a", "-a", "differently"),
    ("an order without fields", lambda o: hypersort.sort_records(RECORDS, o), "a", [], "0 fields"),
    ("an order in figures", lambda o: hypersort.sort_records(RECORDS, o), "a", 1, "order is 1, neither"),
    ("an order of figures", lambda o: hypersort.sort_records(RECORDS, o), ["a"], [0], "order is [0], neither"),
    ("records of another dtype", lambda a: hypersort.sort_records(a, "a"), RECORDS[["a", "rest"]], RECORDS[["a"]], "differently"),
    ("records of two dimensions", hypersort.sort_records, RECORDS[["a"]], RECORDS[["a"]].reshape(5, 1), "one dimension"),
    ("a name that is no Unicode", lambda a: hypersort.sort_records(a, a.dtype.names[0]), RECORDS, NO_UNICODE, "differently"),
    ("records with NaT", lambda a: hypersort.sort_records(a, "when"), RECORDS, NAT_RECORDS, "NaT"),
    ("records without fields", lambda a: hypersort.sort_records(a, None), RECORDS[["a"]], KEYS, "no fields"),
    ("columns of two lengths", lambda c: hypersort.argsort_columns([KEYS, c]), KEYS, KEYS[1:], "lengths"),
    ("a column of two dimensions", lambda c: hypersort.argsort_columns([c]), KEYS, KEYS.reshape(40, 1), "2 dimensions"),
    ("a column with NaT", lambda c: hypersort.argsort_columns([c]), DATES, NAT, "NaT"),
    ("nine columns", hypersort.argsort_columns, [KEYS] * 2, [KEYS] * 9, "9 columns; 1 to 8 are allowed"),
    ("columns that are none", hypersort.argsort_columns, [KEYS], [], "0 columns; 1 to 8 are allowed"),
    ("directions of three columns", lambda d: hypersort.argsort_columns([KEYS] * 2, descending=d), [True] * 2, [True] * 3, "descending has 3"),
    ("a direction that is none", lambda d: hypersort.argsort_columns([KEYS], descending=d), 0, 0.5, "descending is 0.5, no bool"),
    ("no columns, spread evenly", lambda c: hypersort.argsort_columns(c, out_count="even"), [KEYS], [], "0 columns; 1 to 8 are allowed"),
    ("places of another unit", lambda a: hypersort.select(a, 0), DATES, DATES.astype("M8[D]"), "differently"),
    ("unique of another unit", hypersort.unique, DATES, DATES.astype("M8[D]"), "differently"),
    ("checked values of another dtype", lambda v: hypersort.check(KEYS, v), KEYS, PLACES, "differently"),
    ("places that differ", lambda p: hypersort.select(KEYS, p), 3, 4, "differently"),
    ("places of no keys on one rank", lambda p: hypersort.select(KEYS[:0], p), [], [0], "differently"),
    ("a place beyond 63 bits", lambda p: hypersort.select(KEYS, p), 3, np.uint64(2**64 - 1), "beyond 63 bits"),
    ("the first place beyond 63 bits", lambda p: hypersort.select(KEYS, p), 3, 1 << 63, "position 9223372036854775808 is beyond"),
    ("a place too large", lambda p: hypersort.select(KEYS, p), 10**6, 10**6, "no position 1000000: "),
    ("a place too far from the end", lambda p: hypersort.select(KEYS, p), [-1, -(10**6)], [-1, -(10**6)], "no position -1000000: "),
    ("places of floats", lambda p: hypersort.select(KEYS, p), 3, 2.5, "not an integer type"),
    ("a mean of dates", hypersort.median, KEYS, DATES, "no mean of datetime64"),
    ("a mean of pairs", hypersort.median, KEYS, np.zeros(4, hypersort.uint128), "no mean of"),
    ("a quantile below 0", lambda q: hypersort.quantile(KEYS, q), 0.5, -0.5, "between 0 and 1"),
    ("a quantile of NaN", lambda q: hypersort.quantile(KEYS, q), 0.5, np.nan, "between 0 and 1"),
    ("a quantile above 1", lambda q: hypersort.quantile(KEYS, q), 0.5, 1.5, "between 0 and 1"),
    ("a quantile that differs", lambda q: hypersort.quantile(KEYS, q), 0.5, 0.75, "differently"),
    ("no such method", lambda m: hypersort.quantile(KEYS, 0.5, method=m), "lower", "middle", "middle"),
    ("checked values of another length", lambda v: hypersort.check(KEYS, v), KEYS, KEYS[1:], "lengths"),
    ("a checked index of another length", lambda i: hypersort.check_records(RECORDS, "a", i), PLACES[:5], PLACES[:4], "lengths"),
    ("checked records of another dtype", lambda a: hypersort.check_records(a, "a"), RECORDS[["a", "rest"]], RECORDS[["a"]], "differently"),
    ("an index without values", lambda i: hypersort.check(KEYS, None, i), None, INDEX, "without values"),
    ("an engine that is none", lambda e: hypersort.Sorter(engine=e), "host", "hots", "hots"),
    ("an option that is none", lambda o: hypersort.Sorter(**o), {}, {"engines": 1}, "engines"),
    ("options that differ", lambda e: hypersort.Sorter(exchange=e), "direct", "bitonic", "differ"),
    ("threads below 0", lambda n: hypersort.Sorter(threads=n), 1, -5, "-5"),
    ("threads beyond an int", lambda n: hypersort.Sorter(threads=n), 1, 1 << 31, "threads is 2147483648"),
    ("threads that are true", lambda n: hypersort.Sorter(threads=n), 1, True, "threads is True"),
    ("threads in a word", lambda n: hypersort.Sorter(threads=n), 1, "a", "threads is 'a'"),
    ("a part of a thread", lambda n: hypersort.Sorter(threads=n), 1, 2.5, "threads is 2.5"),
    ("memory with a unit", lambda n: hypersort.Sorter(device_memory_limit=n), 0, "8G", "device_memory_limit is '8G'"),
    ("memory below 0", lambda n: hypersort.Sorter(device_memory_limit=n), 0, -1, "device_memory_limit is -1"),
    ("an engine in figures", lambda e: hypersort.Sorter(engine=e), "host", 1, "engine is 1"),
    ("neither yes nor no", lambda e: hypersort.Sorter(overwrite_input=e), False, "x", "overwrite_input is 'x'"),
    ("neither, again", lambda e: hypersort.Sorter(keep_host_memory=e), True, 1, "keep_host_memory is 1"),
    ("places of no keys", lambda p: hypersort.select(KEYS[:0], p), 0, 0, "no keys"),
    ("the median of no keys", lambda a: hypersort.median(a), KEYS[:0], KEYS[:0], "no quantile or median"),
    ("quantiles of no keys", lambda q: hypersort.quantile(KEYS[:0], q), 0.3, 0.3, "no keys"),
]  # fmt: skip

try:
    import ml_dtypes

    BYTES = np.zeros(4, "V1")
    FLOATS = np.zeros(4, ml_dtypes.float8_e4m3fn)  # of the kind V for NumPy
    WRONG += [
        ("sort of small floats", hypersort.sort, KEYS, FLOATS, "float8_e4m3fn, which is not a key type"),
        ("a column of small floats", lambda c: hypersort.argsort_columns([c]), BYTES, FLOATS, "not a key type"),
    ]
except ImportError:
    pass


class Broken:
    """NumPy asks it for an array."""

    def __init__(self, failure):
        self.failure = failure

    def __array__(self, *_, **__):
        raise self.failure


FAILURES = [
    (MemoryError(), "HOST_MEMORY", "MemoryError", hypersort.OutOfMemoryError),
    (type("OutOfMemoryError", (RuntimeError,), {})("of CuPy"), "DEVICE_MEMORY", "of CuPy", hypersort.OutOfMemoryError),
    (BufferError("exported"), "ARGUMENT", "exported", hypersort.ArgumentError),
    (KeyError("shape"), "ARGUMENT", "shape", hypersort.ArgumentError),
    (RuntimeError("broken\nin two lines"), "INTERNAL", "broken in two lines", hypersort.Error),
]


def raised(call, *arguments):
    """What a call raises; None if nothing."""
    try:
        call(*arguments)
    except hypersort.Error as error:
        return error
    return None


def one_error(ranks, name, error, word, kind):
    """Whether all ranks have the same error of a kind, with a word in its text."""
    texts = ranks.comm.allgather(None if error is None else (str(error), error.status))
    ranks.expect(name, len(set(texts)) == 1 and isinstance(error, kind) and word in error.text, f"{texts[::-1]}")


def goes_on(ranks, name):
    mine = hypersort.sort(KEYS + ranks.rank)
    ranks.expect(f"{name}, then a sort", bool((np.diff(mine) >= 0).all()) and hypersort.check(mine).in_order)


def run_errors(ranks):
    """One rank alone cannot differ from others."""
    for name, call, right, wrong, word in WRONG:
        if ranks.size == 1 and (word == "differently" or name == "options that differ"):
            continue
        error = raised(call, wrong if ranks.rank == ranks.size - 1 else right)
        one_error(ranks, name, error, word, hypersort.ArgumentError)
        goes_on(ranks, name)
    # More memory than any machine has, and a failure that is no argument.
    most = 1 << 55 if ranks.rank == ranks.size - 1 else 40
    one_error(ranks, "memory", raised(lambda: hypersort.sort(KEYS, out_count=most)), "", hypersort.OutOfMemoryError)

    # Two failures: the later status of the list wins, and of equal ones the lower rank.
    if ranks.size > 1:
        given = {0: 1 << 55, ranks.size - 1: -1}
        error = raised(lambda: hypersort.sort(KEYS, out_count=given.get(ranks.rank, 40)))
        one_error(ranks, "two failures", error, "", hypersort.OutOfMemoryError)
        error = raised(lambda: hypersort.sort(KEYS, out_count=-2 if ranks.rank == 0 else -1))
        one_error(ranks, "two of a kind", error, "-2", hypersort.ArgumentError)
        ranks.expect("named", error.text.startswith("rank 0 on "), error.text)

    for failure, status, word, kind in FAILURES:
        error = raised(hypersort.sort, Broken(failure) if ranks.rank == ranks.size - 1 else KEYS)
        one_error(ranks, "a failure of another kind", error, word, kind)
        ranks.expect("its status", error is not None and error.status.name == status, f"{error!r}")
        ranks.expect("its cause", error.__cause__ is (failure if ranks.rank == ranks.size - 1 else None))
    again = pickle.loads(pickle.dumps(error))
    ranks.expect("pickled", type(again) is type(error) and (again.text, again.status) == (error.text, error.status))
    goes_on(ranks, "memory")


class LaterOptions(_abi.Options):
    """Of a package that is newer than the library."""

    _fields_ = [("more", ctypes.c_int64)]


def run_older_library(ranks):
    ours = _abi.Options
    if ranks.rank == ranks.size - 1:
        _abi.Options = LaterOptions
    error = raised(hypersort.Sorter)
    _abi.Options = ours
    one_error(ranks, "an older library", error, f"options of {ctypes.sizeof(LaterOptions)} bytes", hypersort.ArgumentError)
    ranks.expect("the library's name", "libhypersort.so" in error.text, error.text)


def run_memory(ranks):
    """An error that was handled keeps no array, even if nobody collects garbage: who lacks memory gives it back at once."""
    gc.disable()
    for name, wrong, more in ("two dimensions", KEYS.reshape(4, 10), {}), ("no memory", KEYS, {"out_count": 1 << 55}):
        given = wrong.copy()
        seen = weakref.ref(given)
        ranks.expect(f"an error for {name}", raised(lambda a: hypersort.sort(a, **more), given) is not None)
        del given
        ranks.expect(f"the array is free after {name}", seen() is None)
    gc.enable()


def next_number(comm):
    """Of the next communicator as Fortran knows it: another one if one was left behind."""
    made = comm.Dup()
    number = made.py2f()
    made.Free()
    return number


def run_threads(ranks):
    """Threads that use the package for the first time at once, each with a communicator of its own, find what each has kept."""
    made, kept = [], _cache._keyval

    def make_slowly(**functions):
        time.sleep(0.1)  # so that every thread is here before there is a key
        made.append(MPI.Comm.Create_keyval(**functions))
        return made[-1]

    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        print(f"left out: threads, because MPI takes one at a time (level {MPI.Query_thread()})")
        return
    comms = [MPI.COMM_SELF.Dup() for _ in range(4)]
    _cache.MPI = types.SimpleNamespace(Comm=types.SimpleNamespace(Create_keyval=make_slowly))
    _cache._keyval = None
    threads = [threading.Thread(target=hypersort.sorter_of, args=(comm,)) for comm in comms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ranks.expect("one key", len(made) == 1, f"{made}")
    ranks.expect("a Sorter each", all(comm.Get_attr(_cache._keyval) is not None for comm in comms))
    for comm in comms:
        comm.Free()
    _cache.MPI, _cache._keyval = MPI, kept


def run_contexts(ranks):
    """A Sorter of a communicator goes with it, and by hand."""
    comm = ranks.comm
    for _ in range(3):  # a freed communicator's number is taken again
        half = comm.Split(ranks.rank % 2)
        mine = hypersort.sort(KEYS, half)
        sorter = hypersort.sorter_of(half)
        ranks.expect("one Sorter", hypersort.sorter_of(half) is sorter and sorter is not hypersort.sorter_of(comm))
        ranks.expect("a half", hypersort.check(mine, comm=half).count == 40 * half.size)
        half.Free()
        ranks.expect("freed with it", not sorter._handle and sorter._comm is None)
    before = next_number(comm)
    raised(lambda: hypersort.Sorter(comm, engine="hots"))
    hypersort.Sorter(comm).close()
    ranks.expect("no communicator is left", next_number(comm) == before)
    kept = hypersort.sorter_of()
    hypersort.close()
    hypersort.close()
    ranks.expect("a new one after close()", hypersort.sorter_of(comm) is not kept)
    hypersort.sorter_of().close()
    goes_on(ranks, "its own close()")
    with hypersort.Sorter(comm.Dup(), engine="host", exchange="direct", threads=np.int64(1), local_rung=-1) as sorter:
        error = raised(sorter.stats)
        one_error(ranks, "statistics of nothing", error, "no statistics", hypersort.ArgumentError)
        sorter.sort(KEYS)
        stats, where = sorter.stats(), sorter.topology()
        ranks.expect("engine of stats", stats["engine"] == "host", f"{stats}")
        ranks.expect("stats", stats["keys"] == 40 * ranks.size and stats["passes"] == 1, f"{stats}")
        ranks.expect("paths", stats["paths"]["mpi"]["moved_bytes"] == stats["moved_bytes"], f"{stats}")
        ranks.expect("seconds of a phase", stats["seconds"]["local_sort"] > 0, f"{stats}")
        ranks.expect("seconds", stats["total_seconds"] > 0 and set(stats["seconds"]) >= {"exchange", "gather"})
        ranks.expect("topology", len(where) == ranks.size and where[ranks.rank]["host"] != "", f"{where}")
        ranks.expect("in use", (sorter.engine, sorter.exchange, sorter.gpu_index) == ("host", "direct", -1))
    with tempfile.TemporaryDirectory() as folder, hypersort.Sorter(engine="host", threads=1, trace_spans=1000) as traced:
        path = comm.bcast(os.path.join(folder, "trace.json"))
        traced.sort(KEYS)
        error = raised(traced.write_trace, path + "\0.json" if ranks.rank == ranks.size - 1 else path)
        one_error(ranks, "a trace with a null character", error, "null character", hypersort.ArgumentError)
        spans, lost = traced.write_trace(path)
        comm.Barrier()
        if ranks.rank == 0:
            with open(path) as file:
                events = json.load(file)["traceEvents"]
            ranks.expect("a trace", lost == 0 and sum(e["ph"] == "X" for e in events) == spans > 0, f"{spans}, {lost}")
        comm.Barrier()
    with hypersort.Sorter(device_memory_limit=2 << 20, engine="host", keep_host_memory=True) as narrow:
        keys = np.random.default_rng(ranks.rank).random(1 << 19)
        for _ in range(2):
            ranks.expect("two passes", narrow.check(narrow.sort(keys)).in_order and narrow.stats()["passes"] == 2)
    with hypersort.Sorter(device_memory_limit=2 << 20, engine="host", overwrite_input=np.True_) as narrow:
        given = keys.copy()
        ours, counts = narrow.unique(given, return_counts=True)
        ranks.expect("unique keeps its input", np.array_equal(given, keys) and counts.sum() > 0 and (np.diff(ours) > 0).all())
        narrow.sort(given)
        ranks.expect("sort may overwrite it", not np.array_equal(given, keys))
        given = keys.copy()
        given.flags.writeable = ranks.rank != ranks.size - 1
        records = given.view([("x", given.dtype)])
        for name, call in ("sort", lambda: narrow.sort(given)), ("sort_records", lambda: narrow.sort_records(records)):
            one_error(ranks, f"{name} may not overwrite what is read-only", raised(call), "a is read-only", hypersort.ArgumentError)
        ranks.expect("what is read-only stays", np.array_equal(given, keys))
    for call in (lambda: sorter.sort(KEYS)), sorter.topology, sorter.stats, (lambda: sorter.engine), (lambda: sorter.exchange):
        try:
            call()
            ranks.expect("closed", False)
        except ValueError as error:
            ranks.expect("closed", "the Sorter is closed" in str(error), str(error))
    for failure, closes in (raised(hypersort.sort, 3), True), (KeyError(), False):  # KeyError: as of one rank
        with contextlib.suppress(type(failure)), hypersort.Sorter(engine="host") as left:
            raise failure
        ranks.expect("closed by `with`", (left._comm is None) == closes, f"{failure!r}")
        left.close()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        forgotten = hypersort.Sorter(MPI.COMM_SELF)
        del forgotten
        gc.collect()
    ranks.expect("a Sorter that was not closed", any(issubclass(w.category, ResourceWarning) for w in seen))
    freed = comm.Dup()
    freed.Free()
    for wrong, word in (3, "comm is 3"), (MPI.COMM_NULL, "COMM_NULL"), (freed, "freed"):
        try:
            hypersort.sort(KEYS, wrong)
            ranks.expect("no communicator", False)
        except TypeError as error:
            ranks.expect("no communicator", word in str(error), str(error))
    for more in (), (KEYS,):
        found = hypersort.sort_by_key(KEYS, KEYS, *more, comm)  # by its place, as of other functions
        ranks.expect("the communicator behind the values", len(found) == 2 + len(more) and (found[0] == found[-1]).all())
    ranks.expect("no positions", len(hypersort.take(KEYS, [])) == 0)
    sorted_in_place = SHARED[::-1].copy()
    hypersort.sort(sorted_in_place, comm, out=sorted_in_place)
    ranks.expect("out is the input", hypersort.check(sorted_in_place).in_order)


def run_functions(ranks):
    """Each function hands on its communicator: a rank alone has its own keys alone."""
    alone, keys = MPI.COMM_SELF, KEYS * (1 + ranks.rank)
    order, in_order, records = np.argsort(keys), np.sort(keys), keys.view([("a", "f8")])
    there = [keys.copy() for _ in range(4)]
    hypersort.sort_in_place(there[0], alone)
    hypersort.sort_by_key_in_place(there[1], keys.copy(), alone)
    hypersort.sort_records_in_place(there[2].view(records.dtype), "a", alone)
    hypersort.put(there[3], PLACES, in_order, alone)
    for i, got in enumerate([
        *there, hypersort.sort(keys, alone), hypersort.sort_by_key(keys, keys, comm=alone)[1], hypersort.unique(keys, alone),
        hypersort.take(keys, order, alone), hypersort.sort_records(records, "a", alone).view("f8"),
        keys[hypersort.argsort(keys, alone)], keys[hypersort.argsort_columns([keys], alone, out_count=40)],
        hypersort.select(keys, PLACES, alone),
    ]):  # fmt: skip
        ranks.expect(f"function {i} alone", np.array_equal(got, in_order), f"{got}")
    ranks.expect("the median alone", hypersort.median(keys, alone) == np.median(keys))
    ranks.expect("a quantile alone", hypersort.quantile(keys, 1, alone) == keys.max())
    ranks.expect("a check alone", hypersort.check(keys, comm=alone).count == 40)
    ranks.expect("a check of records alone", hypersort.check_records(records, "a", comm=alone).count == 40)
    hypersort.close(alone)


def main():
    signal.alarm(240)
    ranks = Ranks(0)
    run_errors(ranks)
    run_memory(ranks)
    run_older_library(ranks)
    run_contexts(ranks)
    run_threads(ranks)
    run_functions(ranks)
    ranks.finish("errors")


if __name__ == "__main__":
    sys.exit(main())
