#!/usr/bin/env python3
"""The table of a CSV of jobs/peers.sh: a line for each function that sorts, a column for each input.

    jobs/peers_table.py CSV MARKDOWN

Puts it into MARKDOWN, between <!-- peers --> and <!-- /peers -->.
"""

import sys

from tables import link, note, one, power_of, read, replace, table

NAMES = {"sort": "`hsort_sort()`", "argsort": "`hsort_argsort()`", "virgodc": "virgodc `parallel_sort(return_index=True)`",
         "mpsort": "mpsort `sort(index, orderby=keys)`"}


def cell(row):
    if row is None:
        return ""
    return f"{row['ms']:.0f} ({row['x_sort']:.2f} x)" + ("" if row["result"] == "right" else " WRONG")


def main():
    path, markdown = sys.argv[1:]
    notes, rows = read(path, ("ms", "x_sort"))
    inputs = list(dict.fromkeys(row["input"] for row in rows))
    lines = [[NAMES[call]] + [cell(one(rows, call=call, input=name)) for name in inputs]
             for call in dict.fromkeys(row["call"] for row in rows)]
    head = f"{power_of(rows[0]['keys'])} u64, {rows[0]['ranks']} ranks"
    out = table([head] + [f"{name}, ms (x our sort)" for name in inputs], lines)
    about = f"{note(notes, 'cpu')}, {note(notes, 'mpi').replace('mpirun (Open MPI)', 'Open MPI')}, {note(notes, 'python')}, "
    about += f"commit {note(notes, 'commit')}, {note(notes, 'date')[:10]}, by `jobs/peers.sh` ([rows]({link(path, markdown)}))."
    replace(markdown, "peers", out + ["", about])


if __name__ == "__main__":
    main()
