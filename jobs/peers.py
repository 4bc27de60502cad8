#!/usr/bin/env python3
"""How long an argsort of u64 takes on the ranks of one machine, in host memory, beside this library's own sort of the same keys and
beside what Python has for it:

    mpirun -n 2 python3 peers.py LIBRARY KEYS REPEATS INPUT,...

`virgodc` is parallel_sort(return_index=True) of virgo.mpi, `mpsort` its sort of an index by keys; a package that cannot be imported is left
out, with a line on stderr. They take turns. Prints a row for each: the median of REPEATS calls, of the slowest rank, in ms, and
how many times as long as our sort. Our index must be that of NumPy's stable argsort; theirs must name every key once, in order
of keys. Exits with 1 if one is wrong.
"""

import ctypes
import statistics
import sys
import time

import numpy as np
from mpi4py import MPI

U64, ASCENDING = 3, 0  # hypersort.h


class Library:
    """libhypersort, with a context of all ranks."""

    def __init__(self, path, comm):
        self.calls = ctypes.CDLL(path)
        self.calls.hsort_last_error.restype = ctypes.c_char_p
        self.context = ctypes.c_void_p()
        self.must(self.calls.hsort_create(ctypes.c_void_p(MPI._handleof(comm)), None, ctypes.byref(self.context)))

    def must(self, status):
        if status:
            sys.exit("peers.py: " + self.calls.hsort_last_error(self.context).decode())

    def sort(self, keys):
        self.must(self.calls.hsort_sort(self.context, U64, ASCENDING, keys.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(len(keys)),
                                        None))

    def argsort(self, keys, index):
        self.must(self.calls.hsort_argsort(self.context, U64, ASCENDING, keys.ctypes.data_as(ctypes.c_void_p),
                                           ctypes.c_int64(len(keys)), index.ctypes.data_as(ctypes.c_void_p), None,
                                           ctypes.c_int64(len(index)), None))

    def close(self):
        self.calls.hsort_destroy(ctypes.byref(self.context))


def draw_keys(name, count):
    """All keys, the same on every rank."""
    rng = np.random.default_rng(20261124)
    if name == "uniform":
        return rng.integers(0, 1 << 64, count, dtype=np.uint64)
    if name == "few":  # 500 values
        return rng.integers(0, 1 << 64, 500, dtype=np.uint64)[rng.integers(0, 500, count)]
    if name == "sorted":
        return np.arange(count, dtype=np.uint64) * np.uint64(3)
    sys.exit(f"peers.py: no input {name}: uniform, few and sorted can be")


def load_peers(comm):
    """name -> call(keys, index), which gives this rank's part of an index; keys and index may change."""
    peers = {}
    try:
        from virgo.mpi.parallel_sort import parallel_sort
        peers["virgodc"] = lambda keys, index: parallel_sort(keys, comm=comm, return_index=True)
    except ImportError as error:
        peers["virgodc"] = error
    try:
        import mpsort
        peers["mpsort"] = lambda keys, index: mpsort.sort(index, orderby=keys, comm=comm)
    except ImportError as error:
        peers["mpsort"] = error
    for name in [name for name in peers if isinstance(peers[name], ImportError)]:
        error = peers.pop(name)
        if comm.rank == 0:
            print(f"peers.py: left out, {name} cannot be imported: {error}", file=sys.stderr)
    return peers


def time_of(comm, call):
    """What the call returns, and the milliseconds of the slowest rank."""
    comm.Barrier()
    begin = time.perf_counter()
    result = call()
    return result, comm.allreduce(time.perf_counter() - begin, op=MPI.MAX) * 1e3


def is_right(comm, name, keys, part):
    """Is what the ranks have together what it should be? Rank 0 knows."""
    parts = comm.gather(part)
    if comm.rank != 0:
        return True
    whole = np.concatenate(parts)
    if name == "sort":
        return np.array_equal(whole, np.sort(keys))
    if name == "argsort":
        return np.array_equal(whole, np.argsort(keys, kind="stable"))
    ordered = keys[whole]
    return bool(np.array_equal(np.sort(whole), np.arange(len(keys))) and np.all(ordered[1:] >= ordered[:-1]))


def measure(comm, library, peers, name, keys, repeats):
    """Rows of an input; how many are wrong."""
    first, last = (len(keys) * r // comm.size for r in (comm.rank, comm.rank + 1))
    calls = {"sort": lambda own, index: library.sort(own) or own, "argsort": lambda own, index: library.argsort(own, index) or index}
    calls.update(peers)
    times, right = {call: [] for call in calls}, {}
    for turn in range(repeats + 1):
        for call in calls:
            own, index = keys[first:last].copy(), np.arange(first, last, dtype=np.int64)
            result, ms = time_of(comm, lambda: calls[call](own, index))
            if turn == 0:  # not counted: memory is found, and the result looked at
                right[call] = comm.bcast(is_right(comm, call, keys, result))
            else:
                times[call].append(ms)
    for call in calls:
        ms = statistics.median(times[call])
        if comm.rank == 0:
            print(f"{comm.size},{call},u64,{name},{len(keys)},{ms:.1f},{ms / statistics.median(times['sort']):.3f},"
                  f"{'right' if right[call] else 'WRONG'}", flush=True)
    return list(right.values()).count(False)


def main():
    comm = MPI.COMM_WORLD
    path, count, repeats, inputs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].split(",")
    library = Library(path, comm)
    if comm.rank == 0:
        print("ranks,call,type,input,keys,ms,x_sort,result", flush=True)
    peers = load_peers(comm)
    wrong = sum(measure(comm, library, peers, name, draw_keys(name, count), repeats) for name in inputs)
    library.close()
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
