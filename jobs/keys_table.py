#!/usr/bin/env python3
"""The table of a CSV of jobs/keys.sh: how many times as fast as the faster of the other libraries.

    jobs/keys_table.py CSV

A line for each number of keys, and for each type three columns: uniform keys; the worst of the other distributions, with
its name; of the mixtures the worst, the 10th percentile and the median. What was wrong counts as 0.
"""

import sys

from tables import power_of, read, table


def ratio_of(row):
    return float(row["ratio"]) if row["result"] == "right" else 0.0


def columns(rows):
    uniform = [ratio_of(row) for row in rows if row["input"] == "uniform"]
    mixtures = sorted(ratio_of(row) for row in rows if row["input"].startswith("mixture"))
    others = [row for row in rows if row["input"] != "uniform" and not row["input"].startswith("mixture")]
    worst = min(others, key=ratio_of, default=None)
    return [
        f"{uniform[0]:.2f}" if uniform else "",
        f"{ratio_of(worst):.2f} {worst['input']}" if worst else "",
        ", ".join(f"{mixtures[at]:.2f}" for at in (0, len(mixtures) // 10, len(mixtures) // 2)) if mixtures else "",
    ]


def main(path):
    notes, rows = read(path, ("ms",))
    rows = [row for row in rows if row["ratio"]]
    if not rows:
        print("no row has another library beside it")
        return
    types = list(dict.fromkeys(row["type"] for row in rows))
    head = ["keys"] + [f"{kind} {what}" for kind in types for what in ("uniform", "worst other", "mixtures")]
    lines = []
    for keys in sorted({row["keys"] for row in rows}):
        line = [power_of(keys)]
        for kind in types:
            line += columns([row for row in rows if row["keys"] == keys and row["type"] == kind])
        lines.append(line)
    print("\n".join(table(head, lines)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
