#!/usr/bin/env python3
"""The table of a CSV of jobs/files.sh.

    jobs/files_table.py CSV MARKDOWN

Of files.csv, sorts of files beside the copy of the same file; of passes.csv, sorts in two passes beside the rate of the link. Puts it into
MARKDOWN, between <!-- files MACHINE --> and <!-- /files MACHINE -->, or the same with passes, where MACHINE is the folder of the CSV.
"""

import os
import sys

from tables import link, origin, power_of, replace, table

# Rows of keys in host memory, by where runs lie.
RUNS_MEMORY = {"passes": "new", "kept": "kept", "overwritten": "input"}
LINK_COLUMNS = ("in", "out", "both")
# Of `hypersort bench`, behind the limit.
BENCH = ("ranks", "memory", "exchange", "path", "type", "input", "keys", "ms", "gkeys_per_s", "h2d_ms", "local_sort_ms",
         "exchange_ms", "merge_ms", "d2h_ms", "moved_bytes", "result")


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    notes = [line[1:].strip() for line in lines if line.startswith("#")]
    rows = [line.split(",") for line in lines if line and not line.startswith("#")]
    return notes, [(row[0], row[1:]) for row in rows]


def of_kind(rows, kind):
    return [row for name, row in rows if name == kind]


def file_lines(rows):
    copies = {row[0]: float(row[3]) for row in of_kind(rows, "copy")}
    starts = {(row[0], row[1]): float(row[3]) for row in of_kind(rows, "start")}
    lines = []
    for system, ranks, keys, whole, reading, writing, _ in of_kind(rows, "sort"):
        copy, start, whole = copies[system], starts[system, ranks], float(whole)
        lines.append([system, power_of(parse_keys(keys)), ranks, f"{copy:.2f}", f"{float(reading):.2f}", f"{float(writing):.2f}",
                      f"{whole:.2f}", f"{start:.2f}", f"{(whole - start) / copy:.2f}", f"{whole / copy:.2f}"])
    return lines


def parse_keys(text):
    return int(text[:-1]) << {"K": 10, "M": 20, "G": 30}[text[-1]] if text[-1] in "KMG" else int(text)


def links_of(rows):
    """Rates by the number of GPUs."""
    return {gpus: dict(zip(LINK_COLUMNS, map(float, rates))) for gpus, *rates in of_kind(rows, "link")}


def memory_lines(rows, links):
    lines = []
    for kind, (limit, *row) in [row for row in rows if row[0] in RUNS_MEMORY]:
        row = dict(zip(BENCH, row))
        rates = links[row["ranks"]]
        size = int(row["keys"]) * 8 / 1e9 / int(row["ranks"])
        floor = size / rates["in"] + size / rates["out"] if limit == "none" else 2 * size / rates["both"]
        seconds = float(row["ms"]) / 1e3
        passes = "" if limit == "none" else f"{float(row['local_sort_ms']):.0f} + {float(row['merge_ms']):.0f}"
        shown = limit if limit == "none" else f"{int(limit) / 1e9:.2f} GB"
        runs = "" if limit == "none" else RUNS_MEMORY[kind]
        lines.append([row["ranks"], shown, row["memory"], runs, power_of(int(row["keys"])), passes, f"{seconds * 1e3:.0f}",
                      f"{floor * 1e3:.0f}", f"{seconds / floor:.2f}", row["result"]])
    return lines


def file_table(rows):
    return table(["file system", "u64 keys", "ranks", "copy s", "read s", "write s", "command s", "start s", "x copy without start", "x copy"],
                 file_lines(rows))


def memory_table(rows):
    links = links_of(rows)
    out = []
    for gpus, rates in links.items():
        all_at_once = f", of each of {gpus} at once" if gpus != "1" else ""
        out += [f"Link{all_at_once}: {rates['in']} GB/s in, {rates['out']} out, {rates['both']} each way while both run.", ""]
    return out + table(["GPUs", "limit of each", "memory", "memory of runs", "u64 keys", "pass 1 + pass 2 ms", "ms", "floor ms",
                        "x floor", "result"], memory_lines(rows, links))


def main():
    path, markdown = sys.argv[1:]
    notes, rows = read_lines(path)
    part = os.path.splitext(os.path.basename(path))[0]
    out = {"files": file_table, "passes": memory_table}[part](rows)
    out += ["", f"{origin(notes)}, by `jobs/files.sh` ([rows]({link(path, markdown)}))."]
    replace(markdown, f"{part} {os.path.basename(os.path.dirname(os.path.abspath(path)))}", out)


if __name__ == "__main__":
    main()
