#!/usr/bin/env python3
"""The tables of a CSV of jobs/keys.sh: how many times as fast as the faster of the other libraries.

    jobs/keys_table.py CSV [MARKDOWN]

By size: a line for each number of keys, and for each type three columns: uniform keys; the worst of the other distributions,
with its name; of the mixtures the worst, the 10th percentile and the median. By input: a line for each distribution of
the largest size that has mixtures, with milliseconds and the ratio. What was wrong counts as 0. They are printed; or put
into MARKDOWN, between <!-- keys MACHINE --> and <!-- /keys MACHINE -->, where MACHINE is the folder of the CSV.
"""

import os
import statistics
import sys

from tables import link, note, one, origin, power_of, read, replace, select, table


def ratio_of(row):
    return float(row["ratio"]) if row["result"] == "right" else 0.0


def is_mixture(row):
    return row["input"].startswith("mixture")


def mixture_ratios(rows):
    """The worst, the 10th percentile and the median."""
    ratios = sorted(ratio_of(row) for row in rows if is_mixture(row))
    return [ratios[0], ratios[(len(ratios) - 1) // 10], statistics.median(ratios)] if ratios else []


def worst_other(rows):
    return min((row for row in rows if row["input"] != "uniform" and not is_mixture(row)), key=ratio_of, default=None)


def columns(rows):
    uniform = one(rows, input="uniform")
    worst = worst_other(rows)
    return [
        f"{ratio_of(uniform):.2f}" if uniform else "",
        f"{ratio_of(worst):.2f} {worst['input']}" if worst else "",
        ", ".join(f"{ratio:.2f}" for ratio in mixture_ratios(rows)),
    ]


def types_of(rows):
    return list(dict.fromkeys(row["type"] for row in rows))


def by_size(rows):
    types = types_of(rows)
    head = ["keys"] + [f"{kind} {what}" for kind in types for what in ("uniform", "worst other", "mixtures")]
    lines = []
    for keys in sorted({row["keys"] for row in rows}):
        line = [power_of(keys)]
        for kind in types:
            line += columns(select(rows, keys=keys, type=kind))
        lines.append(line)
    return table(head, lines)


def largest_with_mixtures(rows):
    return max((row["keys"] for row in rows if is_mixture(row)), default=0)


def by_input(rows):
    keys = largest_with_mixtures(rows)
    rows = [row for row in rows if row["keys"] == keys and not is_mixture(row)]
    types = types_of(rows)
    lines = []
    for word in dict.fromkeys(row["input"] for row in rows):
        found = [one(rows, input=word, type=kind) for kind in types]
        lines.append([word] + [f"{row['ms']:.2f} ({ratio_of(row):.2f})" if row else "" for row in found])
    return table([f"{power_of(keys)} keys, ms"] + types, lines)


def read_rows(path):
    notes, rows = read(path, ("ms",))
    return notes, [row for row in rows if row["ratio"]]


def main(path, markdown=None):
    notes, rows = read_rows(path)
    if not rows:
        print("no row has another library beside it")
        return
    about = [f"{origin(notes)}; inputs of seed {note(notes, 'seed')}"]
    if markdown:
        about[0] += f". [Rows]({link(path, markdown)}), by `jobs/keys.sh`."
    lines = about + [""] + by_size(rows) + [""] + by_input(rows)
    if markdown:
        replace(markdown, f"keys {os.path.basename(os.path.dirname(os.path.abspath(path)))}", lines)
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
