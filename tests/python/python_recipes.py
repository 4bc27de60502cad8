#!/usr/bin/env python3
"""The recipe of src/python/README.md against NumPy: mpirun -n RANKS python3 -m mpi4py python_recipes.py SEED CASES

The page's lines run as they stand, with tables of few and of many keys, whose lines lie on any ranks.
"""

import pathlib
import signal
import sys

import numpy as np

import hypersort
from python_oracle import Ranks, draw_counts, draw_keys

PAGE = pathlib.Path(__file__).resolve().parents[2] / "src/python/README.md"
HEADING = "## Tables of keys and counts into one"


def recipe():
    """The lines of code below the heading."""
    section = PAGE.read_text().split(HEADING)[1].split("\n## ")[0]
    return section.split("```python\n")[1].split("```")[0]


def run_case(ranks, code):
    rng = ranks.rng
    total = int(rng.integers(0, 3000))
    keys = draw_keys(rng, str(rng.choice(["u4", "u8", "i8"])), total, few=rng.random() < 0.7)
    counts = rng.integers(0, 1 << 20, total).astype(str(rng.choice(["u4", "i4", "i8", "u8"])))
    share = draw_counts(rng, total, ranks.size)
    names = {"hypersort": hypersort, "np": np, "comm": ranks.comm}
    names.update(keys=ranks.part(keys, share), counts=ranks.part(counts, share))
    exec(code, names)
    got = [np.concatenate(ranks.comm.allgather(names[name])) for name in ("keys", "counts")]
    wanted, line_of = np.unique(keys, return_inverse=True)
    sums = np.zeros(wanted.size, np.cumsum(counts).dtype)
    np.add.at(sums, line_of, counts)
    ranks.equal(f"keys of {total} lines on {share}", got[0], wanted)
    ranks.equal(f"sums of {total} lines on {share}", got[1], sums)


def main():
    signal.alarm(240)  # a rank that waits for ever is a failure
    ranks = Ranks(int(sys.argv[1]))
    code = recipe()
    for _ in range(int(sys.argv[2])):
        run_case(ranks, code)
    ranks.finish("recipes")


if __name__ == "__main__":
    main()
