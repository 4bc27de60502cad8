#!/usr/bin/env python3
"""Sorts with an index on many ranks against NumPy: ranks_numpy.py SEED CASES RANKS HYPERSORT MPIRUN...

Each shard is a file of its own, of any length. Bare keys of each type, and records by two fields, in both orders; the oracle is
the stable argsort or lexsort of all shards together. In half of the cases there are at most 500 different keys. CASES 0: all
there are. Runs in an empty directory; exits with 1 if a case failed, and prints the command of each that did.
"""

import itertools
import sys

import numpy as np
from records_numpy import Case, rows_of

TYPES = ["<u4", "<i4", "<f4", "<u8", "<i8", "<f8"]
FIELDS = ["<u4,<f4", "<f8,>u8", ">i8,S8", "S7,S9", ">f4,S12", "S3,S7"]
MOST, FEW = 60000, 500


def draw_values(rng, dtype, count):
    """Any bits of this type, but for NaN and -0.0, of which NumPy thinks otherwise."""
    values = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()
    if dtype.kind == "f":
        values[np.isnan(values) | (values == 0)] = 1
    return values


def places_of(values, descends):
    """Numbers that order as the values do."""
    if values.dtype.kind == "S":  # NumPy overlooks zeros at the end
        texts = [row.tobytes() for row in rows_of(values)]
        place = {text: i for i, text in enumerate(sorted(set(texts)))}
        places = np.array([place[text] for text in texts], np.int64)
    else:
        places = np.unique(values, return_inverse=True)[1].reshape(-1)
    return -places if descends else places


def draw_column(rng, dtype, count, most):
    """Of `most` values, or any."""
    if most is None:
        return draw_values(rng, dtype, count)
    different = int(rng.integers(1, most + 1))
    return draw_values(rng, dtype, different)[rng.integers(0, different, count)]


def draw_array(rng, dtype, few):
    """Keys of a type, or records by all fields but the last; of many keys the first field still has few values."""
    count = int(rng.integers(MOST))
    if dtype.names is None:
        return draw_column(rng, dtype, count, FEW if few else None)
    array = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()
    array["a"] = draw_column(rng, dtype["a"], count, FEW // 22)
    array["b"] = draw_column(rng, dtype["b"], count, 22 if few else None)
    return array


def run_case(rng, case, kind, few, descends):
    """kind: a dtype of keys, or two of fields."""
    fields = kind.split(",")
    dtype = np.dtype(kind if len(fields) == 1 else [("a", fields[0]), ("b", fields[1]), ("rest", "V5")])
    array = draw_array(rng, dtype, few)
    cuts = np.sort(rng.integers(0, len(array) + 1, case.ranks - 1))
    names = [f"in{rank}.npy" for rank in range(case.ranks)]
    for name, shard in zip(names, np.split(array, cuts)):
        np.save(name, shard)
    if len(fields) == 1:
        order, words = np.argsort(places_of(array, descends), kind="stable"), ["-r"] if descends else []
    else:
        order = np.lexsort([places_of(array["b"], not descends), places_of(array["a"], descends)])
        words = ["--key", "a:desc,b" if descends else "a,b:desc"]
    case.run("sort", *names, *words, "-o", "out.%r.npy", "--index", "i.%r.npy")
    case.expect("out.%r.npy", dtype, array.shape, array[order].tobytes())
    case.expect("i.%r.npy", np.dtype("<i8"), order.shape, order.astype("<i8").tobytes())


def main():
    seed, cases, ranks = (int(word) for word in sys.argv[1:4])
    program = sys.argv[5:] + [sys.argv[4]]
    rng, failures = np.random.default_rng(seed), 0
    ways = list(itertools.product(TYPES + FIELDS, (True, False), (False, True)))
    # Drawn: keys and records in turn, and of either few different keys and many.
    drawn = [(rng.choice([TYPES, FIELDS][i % 2]), i // 2 % 2 == 0, rng.random() < 0.5) for i in range(cases)]
    for kind, few, descends in drawn or ways:
        case = Case(program, ranks)
        run_case(rng, case, str(kind), few, descends)
        failures += not case.passed()
    print(f"seed {seed}: {len(drawn or ways)} cases on {ranks} ranks, {failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
