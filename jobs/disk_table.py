#!/usr/bin/env python3
"""The table of a CSV of jobs/disk.sh: a line for each program that sorts, beside reading and writing the same bytes twice.

    jobs/disk_table.py CSV MARKDOWN

Puts it into MARKDOWN, between <!-- disk MACHINE --> and <!-- /disk MACHINE -->, where MACHINE is the folder of the CSV.
"""

import os
import sys

from tables import link, note, one, read, replace, table


FLOORS = ("2 reads + 2 writes", "two copies")


def ratio(rows, row, what):
    """The time of a row over that of the reads and writes, or of the copies, of as many bytes of the same kind."""
    kind = "gensort -a" if row["input"].startswith("gensort") else "uniform"
    floor = one(rows, what=what, input=kind)
    return f"{row['seconds'] / floor['seconds']:.2f}" if floor and row["what"] not in FLOORS else ""


def main():
    path, markdown = sys.argv[1:]
    notes, rows = read(path, ("bytes", "seconds"))
    lines = []
    for row in rows:
        lines.append([row["what"], row["input"], f"{row['bytes'] / 1e9:.1f}", row["memory"], f"{row['seconds']:.1f}",
                      f"{row['bytes'] / row['seconds'] / 1e6:.0f}"] + [ratio(rows, row, what) for what in FLOORS])
    head = ["", "input", "GB", f"memory of each of {rows[0]['ranks']} ranks", "s", "MB/s", "x 2 reads + 2 writes", "x two copies"]
    name = "disk " + os.path.basename(os.path.dirname(os.path.abspath(path)))
    machine = note(notes, "cpu") if note(notes, "gpus") in ("", "none") else note(notes, "gpus")
    about = f"{machine}, {note(notes, 'system')}, commit {note(notes, 'commit')}, {note(notes, 'date')[:10]}, by `jobs/disk.sh` "
    replace(markdown, name, table(head, lines) + ["", about + f"([rows]({link(path, markdown)}))."])


if __name__ == "__main__":
    main()
