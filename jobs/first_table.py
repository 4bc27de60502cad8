#!/usr/bin/env python3
"""Rewrite the first table of README.md, between <!-- results --> and <!-- /results -->, from what jobs/exchange.sh and jobs/ladder.sh
measured last: h200x2/exchange.csv and h200x1/ladder.csv in jobs/results."""

import os

from tables import link, note, number, one, origin, read, replace, select, table

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
EXCHANGE = os.path.join(ROOT, "jobs/results/h200x2/exchange.csv")
LADDER = os.path.join(ROOT, "jobs/results/h200x1/ladder.csv")
KEYS = 1 << 30
LINES = (("u32", "uniform"), ("u64", "uniform"), ("f64", "uniform"), ("u32", "zipf"), ("u64", "zipf"), ("f64", "zipf"))


def main():
    notes, rows = read(EXCHANGE, ("gkeys_per_s",))
    ladder_notes, ladder = read(LADDER)
    rows = select(rows, memory="device", keys=KEYS, result="right")
    lines = []
    for kind, word in LINES:
        cub = one(ladder, experiment="ladder", what="rung_0_cub", type=kind, keys=KEYS, input=word)
        rates = [cub and cub["gkeys_per_s"]]
        for ranks in ("1", "2"):
            found = select(rows, ranks=ranks, type=kind, input=word)
            rates.append(max((row["gkeys_per_s"] for row in found), default=None))
        lines.append([f"{kind} {word}"] + [number(rate, ".3g") for rate in rates])
    readme = os.path.join(ROOT, "README.md")
    about = [
        f"{origin(notes)}, NVLink. Whole calls of `hsort_sort_to()`,",
        f"every result verified, by `jobs/exchange.sh` ([rows]({link(EXCHANGE, readme)})); CUB by `jobs/ladder.sh`,",
        f"commit {note(ladder_notes, 'commit')} ([rows]({link(LADDER, readme)})).",
    ]
    head = ["2^30 keys in GPU memory, Gkeys/s", "CUB, 1 GPU", "hypersort, 1 GPU", "hypersort, 2 GPUs"]
    replace(readme, "results", table(head, lines) + [""] + about)


if __name__ == "__main__":
    main()
