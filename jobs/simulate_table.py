"""The table of a CSV of jobs/simulate.sh, put between the markers of mpi/README.md:

    python3 simulate_table.py CSV README

Exits with 1 if the README has no markers; it then stays as it is."""

import csv
import sys

BEGIN, END = "<!-- simulated -->", "<!-- /simulated -->"
HEAD = """| keys per rank | ranks | exchange | moved per key: counted / plan | rounds | messages of keys | short messages | collectives | all messages, per rank | sort, s | exchange, s: simulated / plan | merge, s: simulated / plan | in all, s |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def line(row):
    number = {name: float(value) for name, value in row.items() if name not in ("exchange", "input")}

    def pair(name, digits):
        return f"{number[name]:.{digits}g} / {number['formula_' + name]:.{digits}g}"

    keys = int(number["keys"])
    power = keys.bit_length() - 1
    cells = [
        f"2^{power}" if keys == 1 << power else str(keys),
        row["ranks"],
        row["exchange"],
        f"{number['moved']:.2f} / {number['formula_moved']:.2f}",
        row["rounds"],
        row["key_messages"],
        row["short_messages"],
        row["collectives"],
        f"{number['delivered'] / number['ranks']:.0f}",
        f"{number['sort_s']:.3g}",
        pair("exchange_s", 3),
        pair("merge_s", 3),
        f"{number['total_s']:.3g}",
    ]
    return "| " + " | ".join(cells) + " |"


def main(csv_name, readme_name):
    with open(csv_name, encoding="utf-8") as file:
        comments, rows = [], []
        for text in file:
            (comments if text.startswith("#") else rows).append(text)
    rows = list(csv.DictReader(rows))
    rows.sort(key=lambda row: (-int(row["keys"]), int(row["ranks"]), row["exchange"]))
    about = "; ".join(text[1:].strip().replace("  ", " ") for text in comments)
    table = "\n".join([BEGIN, HEAD, *map(line, rows), "", about + ".", END])
    with open(readme_name, encoding="utf-8") as file:
        readme = file.read()
    begin, end = readme.find(BEGIN), readme.find(END)
    if begin < 0 or end < begin:
        sys.exit(f"simulate_table: {readme_name} has no {BEGIN} ... {END}")
    with open(readme_name, "w", encoding="utf-8") as file:
        file.write(readme[:begin] + table + readme[end + len(END):])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
