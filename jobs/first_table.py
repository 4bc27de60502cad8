#!/usr/bin/env python3
"""Rewrite the first tables of README.md from what was measured last, in jobs/results: between <!-- keys --> and <!-- /keys --> by
jobs/keys.sh, h200x1/keys.csv; between <!-- results --> and <!-- /results --> by jobs/exchange.sh and jobs/ladder.sh,
h200x2/exchange.csv and h200x1/ladder.csv."""

import os

from keys_table import is_mixture, largest_with_mixtures, mixture_ratios, ratio_of, read_rows, worst_other
from tables import link, note, number, one, origin, power_of, read, replace, select, table

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
EXCHANGE = os.path.join(ROOT, "jobs/results/h200x2/exchange.csv")
LADDER = os.path.join(ROOT, "jobs/results/h200x1/ladder.csv")
OF_ANY_KIND = os.path.join(ROOT, "jobs/results/h200x1/keys.csv")
KEYS = 1 << 30
LINES = (("u32", "uniform"), ("u64", "uniform"), ("f64", "uniform"), ("u32", "zipf"), ("u64", "zipf"), ("f64", "zipf"))


def keys_of_any_kind(readme):
    notes, rows = read_rows(OF_ANY_KIND)
    keys = largest_with_mixtures(rows)
    rows = select(rows, keys=keys)
    lines = []
    for kind in dict.fromkeys(row["type"] for row in rows):
        of_type = select(rows, type=kind)
        worst, _, median = mixture_ratios(of_type)
        mixtures, others = len([row for row in of_type if is_mixture(row)]), len(of_type)
        other = worst_other(of_type)
        lines.append([kind, f"{ratio_of(one(of_type, input='uniform')):.2f}", f"{median:.2f}", f"{worst:.2f}",
                      f"{ratio_of(other):.2f} {other['input']}"])
    head = [f"{power_of(keys)} keys, 1 GPU, x the faster of CUB and libcusort", "uniform", f"{mixtures} mixtures, median", "worst",
            f"worst of {others - mixtures - 1} other distributions"]
    about = f"{origin(notes)}; every result equal to CUB's, by `jobs/keys.sh` ([rows]({link(OF_ANY_KIND, readme)}))."
    replace(readme, "keys", table(head, lines) + ["", about])


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
    keys_of_any_kind(readme)


if __name__ == "__main__":
    main()
