"""What the scripts *_table.py share: rows of a CSV of jobs/results, and tables between the markers of a Markdown file."""

import csv
import os
import re
import sys


def read(path, numbers=("ms", "gkeys_per_s", "copy_percent", "ratio_to_cub")):
    """The comment lines, as a list, and the rows, as dictionaries with numbers for what are numbers."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    notes = [line[1:].strip() for line in lines if line.startswith("#")]
    lines = [line for line in lines if line and not line.startswith("#")]
    # Where a file was made by several runs, each has named the columns.
    rows = list(csv.DictReader(lines[:1] + [line for line in lines[1:] if line != lines[0]]))
    for row in rows:
        row["keys"] = int(row["keys"])
        for column in numbers:
            if column in row:
                row[column] = float(row[column]) if row[column] else None
    return notes, rows


def select(rows, **wanted):
    return [row for row in rows if all(row[column] == value for column, value in wanted.items())]


def one(rows, **wanted):
    """The only such row, or None."""
    found = select(rows, **wanted)
    return found[0] if found else None


def note(notes, word):
    """What stands behind "word:" in the comment lines."""
    for line in notes:
        if line.startswith(word + ":"):
            return line[len(word) + 1:].strip()
    return ""


def number(value, form):
    return "" if value is None else format(value, form)


def power_of(keys):
    return f"2^{keys.bit_length() - 1}" if keys & (keys - 1) == 0 else str(keys)


def table(head, lines):
    rule = "|---" * len(head) + "|"
    return ["| " + " | ".join(head) + " |", rule] + ["| " + " | ".join(line) + " |" for line in lines]


def link(path, markdown):
    """The path of a CSV as seen from a Markdown file."""
    return os.path.relpath(os.path.abspath(path), os.path.dirname(os.path.abspath(markdown)))


def origin(notes):
    """Machine, versions and commit of a CSV. The build names a commit of its own in some; where that differs, this says so."""
    commit = note(notes, "commit")
    built = re.search(r"commit (\S+?),", " ".join(line for line in notes if "hypersort" in line))
    words = [note(notes, "gpus")]
    words += [f"{name} {note(notes, word)}" for name, word in (("driver", "driver"), ("CUDA", "cuda")) if note(notes, word)]
    words += [f"commit {commit}", note(notes, "date")[:10]]
    text = ", ".join(word for word in words if word)
    if built and built.group(1) != commit:
        text += f" (the build names {built.group(1)}: measured before the commit was made)"
    return text


def replace(markdown, name, lines):
    """Put lines between <!-- name --> and <!-- /name --> of a Markdown file; exit, with the file as it is, if they are not there."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    with open(markdown, encoding="utf-8") as file:
        text = file.read()
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(end) < text.index(begin):
        sys.exit(f"{markdown} has no {begin} ... {end}")
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    with open(markdown, "w", encoding="utf-8") as file:
        file.write(before + begin + "\n" + "\n".join(lines) + "\n" + end + after)
