#!/usr/bin/env python3
"""The tables of a CSV of jobs/exchange.sh.

    jobs/exchange_table.py CSV             print every row as a table
    jobs/exchange_table.py CSV MARKDOWN    rewrite that of mpi/measured.md, between <!-- exchange --> and <!-- /exchange -->
"""

import sys

from tables import link, number, origin, power_of, read, replace, table

MEASURED = ("ms", "gkeys_per_s", "h2d_ms", "local_sort_ms", "exchange_ms", "merge_ms", "d2h_ms")
HEAD = ["ranks", "memory", "exchange", "path", "input", "keys", "ms", "Gkeys/s", "to GPU", "local sort", "exchange", "merge",
        "from GPU", "moved, GB"]


def every_row(rows):
    lines = []
    for row in rows:
        lines.append(
            [row["ranks"], row["memory"], row["exchange"], row["path"], f"{row['type']} {row['input']}", power_of(row["keys"])]
            + [number(row["ms"], ".2f") + ("" if row["result"] == "right" else " WRONG"), number(row["gkeys_per_s"], ".1f")]
            + ["" if row[column] < 0.005 else f"{row[column]:.2f}" for column in MEASURED[2:]]
            + ["" if row["moved_bytes"] == "0" else f"{int(row['moved_bytes']) / 1e9:.2f}"]
        )
    return table(HEAD, lines)


def main(path, markdown=None):
    notes, rows = read(path, MEASURED)
    if markdown is None:
        print("\n".join(every_row(rows)))
        return
    about = f"{origin(notes)}. [Rows]({link(path, markdown)}), by `jobs/exchange.sh`."
    replace(markdown, "exchange", [about, "", *every_row(rows)])


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
