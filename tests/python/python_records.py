#!/usr/bin/env python3
"""sort_records() and its like against NumPy: mpirun -n RANKS python3 -m mpi4py python_records.py SEED CASES

Structures are drawn with padding, structures and arrays inside, and either byte order; orders of up to four fields,
some descending, ties among most of them. Results are compared byte for byte.
"""

import signal
import sys

import numpy as np

import hypersort
from python_oracle import Ranks, bytes_of, draw_counts, draw_keys, in_order, lay_out, order_columns

KINDS = ["u1", "<u2", ">u4", "<u8", "i1", ">i2", "<i4", ">i8", "<f2", ">f4", "<f8", "?", "<M8[s]", "S3", "V2", "S7"]


def draw_dtype(rng):
    """A structure, and the paths in it with what they lead to."""
    fields, paths = [], {}
    for number in range(int(rng.integers(2, 6))):
        kind, name, draw = str(rng.choice(KINDS)), f"f{number}", rng.random()
        if draw < 0.2:
            fields.append((name, kind, (3,)))
            paths[f"{name}[2]"] = kind
        elif draw < 0.4:
            fields.append((name, np.dtype([("x", kind), ("rest", "u1", (2,))], align=rng.random() < 0.5)))
            paths[f"{name}.x"] = kind
            paths[f"{name}.rest[1]"] = "u1"
        else:
            name = f"-{name}" if draw > 0.95 else name  # a field may be called so
            fields.append((name, kind))
            paths[name] = kind
    return np.dtype(fields, align=rng.random() < 0.5), paths


def values_of(array, path):
    """What a path leads to."""
    for word in path.replace("]", "").replace("[", ".").split("."):
        array = array[:, int(word)] if word.isdigit() else array[word]
    return array


def columns_of(values, descends):
    """As order_columns(), of bytes too, which are lists of numbers here: NumPy overlooks zeros at their end."""
    if values.dtype.kind not in "SV":
        return order_columns(np.ascontiguousarray(values), descends)
    rows = np.frombuffer(values.tobytes(), "u1").reshape(len(values), values.dtype.itemsize)
    return [~column if descends else column for column in rows.T[::-1]]


def draw_records(rng, dtype, paths, count):
    records = np.frombuffer(bytearray(rng.bytes(dtype.itemsize * count)), dtype)
    for path, kind in paths.items():
        whole = values_of(records, path)
        whole[...] = draw_keys(rng, kind, count, rng.random() < 0.8)
    return records


def draw_order(rng, paths):
    """Names of the call, and the same as pairs of a path and its direction; of 16 bytes together."""
    names, pairs, room = [], [], 16
    for path in rng.permutation(list(paths))[:4]:
        descends = rng.random() < 0.5
        size = np.dtype(paths[path]).itemsize
        if size <= room:
            names.append(f"-{path}" if descends else str(path))
            pairs.append((str(path), descends))
            room -= size
    return (names[0] if len(names) == 1 and rng.random() < 0.5 else names), pairs


def run_case(ranks):
    rng = ranks.rng
    dtype, paths = draw_dtype(rng)
    total = int(rng.choice([0, 1, rng.integers(1500)]))
    whole = draw_records(rng, dtype, paths, total)
    names, pairs = draw_order(rng, paths)
    order = np.lexsort([column for path, down in pairs[::-1] for column in columns_of(values_of(whole, path), down)])
    counts, wanted = draw_counts(rng, total, ranks.size), draw_counts(rng, total, ranks.size)
    mine = lay_out(rng, ranks.part(whole, counts))
    what = f"{dtype} by {names}, {counts.tolist()}"
    before = hypersort.check_records(mine, names)
    got = hypersort.sort_records(mine, names, out_count=int(wanted[ranks.rank]))
    ranks.equal(what, got, ranks.part(in_order(whole, order), wanted))
    after = hypersort.check_records(got, names, ranks.part(order, wanted))
    ranks.expect(f"{what}: check", after.in_order and after.first_unstable == -1, f"{after}")
    ranks.expect(f"{what}: placed", after.placed_fingerprint == before.placed_fingerprint, f"{before} {after}")
    there = np.frombuffer(bytearray(bytes_of(ranks.part(whole, counts))), dtype)
    hypersort.sort_records_in_place(there, names)
    ranks.equal(f"in place {what}", there, ranks.part(in_order(whole, order), counts))
    columns = [ranks.part(np.ascontiguousarray(values_of(whole, path)), counts) for path, _ in pairs]
    directions, count = [down for _, down in pairs], int(wanted[ranks.rank])
    got = hypersort.argsort_columns(columns, descending=directions, out_count=count)
    ranks.equal(f"columns {what}", got, ranks.part(order, wanted))


def run_all_fields(ranks):
    """Without an order: all fields, as NumPy has it, and as many as can be."""
    whole = ranks.rng.integers(0, 2, (500, 8)).astype("<i2").view([(name, "<i2") for name in "abcdefgh"]).reshape(-1)
    counts = draw_counts(ranks.rng, 500, ranks.size)
    mine = ranks.part(whole, counts)
    ranks.equal("all fields", hypersort.sort_records(mine), ranks.part(np.sort(whole, kind="stable"), counts))
    got = hypersort.argsort_columns([mine[name] for name in whole.dtype.names], descending=np.False_)
    ranks.equal("all columns", got, ranks.part(np.argsort(whole, kind="stable"), counts))


def run_dashes(ranks):
    """A name of a field goes before a direction."""
    whole = ranks.rng.integers(0, 5, (500, 2)).astype("<i4").view([("-a", "<i4"), ("a", "<i4")]).reshape(-1)
    counts = draw_counts(ranks.rng, 500, ranks.size)
    order = np.argsort(whole["-a"], kind="stable")
    got = hypersort.sort_records(ranks.part(whole, counts), "-a")
    ranks.equal("a field -a", got, ranks.part(whole[order], counts))
    order = np.lexsort([whole["a"], -whole["-a"]])
    got = hypersort.sort_records(ranks.part(whole, counts), ["--a", "a"])
    ranks.equal("a field -a, descending", got, ranks.part(whole[order], counts))
    whole = whole.view([("a[0]", "<i4"), ("a", "<i4")])
    got = hypersort.sort_records(ranks.part(whole, counts), ["-a[0]", "a"])
    ranks.equal("a field a[0]", got, ranks.part(whole[order], counts))


def main():
    signal.alarm(240)  # a rank that waits for ever is a failure
    ranks = Ranks(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        run_case(ranks)
    run_all_fields(ranks)
    run_dashes(ranks)
    ranks.finish("records")


if __name__ == "__main__":
    main()
