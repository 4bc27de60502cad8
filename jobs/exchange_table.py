#!/usr/bin/env python3
"""The tables of a CSV of jobs/exchange.sh.

    jobs/exchange_table.py CSV             print every row as a table
    jobs/exchange_table.py CSV MARKDOWN    rewrite the parts of mpi/measured.md, each between <!-- PART --> and <!-- /PART -->:
                                             exchange   every row
                                             scaling    from one GPU to all
"""

import sys

from tables import link, number, one, origin, power_of, read, replace, select, table

MEASURED = ("ms", "gkeys_per_s", "h2d_ms", "local_sort_ms", "exchange_ms", "merge_ms", "d2h_ms")
HEAD = ["ranks", "memory", "exchange", "path", "input", "keys", "ms", "Gkeys/s", "to GPU", "local sort", "exchange", "merge",
        "from GPU", "moved, GB"]


def every_row(rows):
    lines = []
    for row in rows:
        lines.append(
            [row["ranks"], row["memory"], row["exchange"], row["path"], f"{row['type']} {row['input']}", power_of(row["keys"])]
            + [number(row["ms"], ".2f"), number(row["gkeys_per_s"], ".1f")]
            + ["" if row[column] < 0.005 else f"{row[column]:.2f}" for column in MEASURED[2:]]
            + ["" if row["moved_bytes"] == "0" else f"{int(row['moved_bytes']) / 1e9:.2f}"]
        )
    return table(HEAD, lines)


def fastest(rows, **wanted):
    return min(select(rows, memory="device", input="uniform", **wanted), key=lambda row: row["ms"], default=None)


def scaling(rows):
    """Strong: the same keys on one GPU and on all. Weak: as many keys on each."""
    rows = [row for row in rows if row["result"] == "right"]
    gpus = one([row for row in rows if row["ranks"] != "1"], memory="device")
    if gpus is None:
        return []
    gpus = gpus["ranks"]
    lines = []
    for kind in ("u32", "u64", "f64"):
        for keys in sorted({row["keys"] for row in rows}, reverse=True):
            here = fastest(rows, ranks=gpus, type=kind, keys=keys)
            alone = fastest(rows, ranks="1", type=kind, keys=keys)
            part = fastest(rows, ranks="1", type=kind, keys=keys // int(gpus))
            if here and (alone or part):
                lines.append(
                    [kind, power_of(keys), number(alone and alone["ms"], ".2f"), f"{here['ms']:.2f}"]
                    + [number(alone and alone["ms"] / here["ms"], ".2f")]
                    + [number(part and part["ms"], ".2f"), number(part and part["ms"] / here["ms"], ".2f")]
                )
    head = ["type", "keys", "one GPU, ms", f"{gpus} GPUs, ms", "times as fast", "a GPU's part alone, ms", "weak efficiency"]
    return table(head, lines)


def main(path, markdown=None):
    notes, rows = read(path, MEASURED)
    if markdown is None:
        print("\n".join(every_row(rows)))
        return
    about = f"{origin(notes)}. [Rows]({link(path, markdown)}), by `jobs/exchange.sh`."
    replace(markdown, "exchange", [about, "", *every_row(rows)])
    replace(markdown, "scaling", [about, "", *scaling(rows)])


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
