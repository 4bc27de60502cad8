#!/usr/bin/env python3
"""The table of a CSV of jobs/records.sh.

    jobs/records_table.py CSV MARKDOWN

A line for each call and what travels, a column for each input: milliseconds, and how many times as fast as what is measured beside.
Puts it into MARKDOWN, between <!-- records MACHINE --> and <!-- /records MACHINE -->, where MACHINE is the folder of the CSV.
"""

import os
import sys

from tables import link, one, origin, power_of, read, replace, table


def unlike(rows, *columns):
    """What these columns hold, each once, in the order of the rows."""
    return list(dict.fromkeys(tuple(row[column] for column in columns) for row in rows))


def cell(row):
    if row is None:
        return ""
    text = f"{row['ms']:.2f}" + (f" ({row['ratio']:.2f} x)" if row["ratio"] else "")
    return text if row["result"] == "right" else text + " WRONG"


def lines_of(rows):
    columns = ("ranks", "call", "type", "bytes", "keys", "beside")
    inputs = [word for (word,) in unlike(rows, "input")]
    lines = []
    for values in unlike(rows, *columns):
        wanted = dict(zip(columns, values))
        cells = [cell(one(rows, **wanted, input=word)) for word in inputs]
        beside = wanted["beside"] if any(row["ratio"] for row in rows if all(row[c] == v for c, v in wanted.items())) else ""
        lines.append([wanted["ranks"], wanted["call"], wanted["type"], wanted["bytes"], power_of(wanted["keys"]), beside] + cells)
    return inputs, lines


def main():
    path, markdown = sys.argv[1:]
    notes, rows = read(path, ("ms", "beside_ms", "ratio"))
    inputs, lines = lines_of(rows)
    out = table(["GPUs", "call", "keys", "bytes beside", "how many", "x of"] + [f"{word}, ms" for word in inputs], lines)
    out += ["", f"{origin(notes)}, by `jobs/records.sh` ([rows]({link(path, markdown)}))."]
    replace(markdown, f"records {os.path.basename(os.path.dirname(os.path.abspath(path)))}", out)


if __name__ == "__main__":
    main()
