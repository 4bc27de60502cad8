"""The table of a CSV of jobs/simulate.sh, put between <!-- simulated --> and <!-- /simulated --> of a Markdown file, or of
nodes.csv between <!-- simulated nodes --> and <!-- /simulated nodes -->:

    python3 simulate_table.py CSV MARKDOWN"""

import sys

from tables import link, note, read, replace

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


BETWEEN = """| nodes of 8 | exchange | bytes of a key between nodes: simulated / plan | sort, s: simulated / plan | exchange, s: simulated / plan | in all, s: simulated / plan | bytes / rate, s |
|---|---|---|---|---|---|---|"""
RATE = 50e9  # bytes a second of a rank's network


def between_line(row):
    number = {name: float(value) for name, value in row.items() if name not in ("exchange", "input")}
    phases = ("sort_s", "exchange_s", "merge_s")
    in_all = sum(number[phase] for phase in phases), sum(number["formula_" + phase] for phase in phases)
    floor = number["crossed_keys"] * number["keys"] * number["crossed_key_bytes"] / RATE
    cells = [
        f"{number['ranks'] / number['per_node']:.0f}",
        row["exchange"] + (", squares" if row["input"] == "squares" else ""),
        f"{number['crossed_key_bytes']:.2f} / {number['formula_crossed_key_bytes']:.2f}",
        f"{number['sort_s']:.4f} / {number['formula_sort_s']:.4f}",
        f"{number['exchange_s']:.4f} / {number['formula_exchange_s']:.4f}",
        f"{in_all[0]:.4f} / {in_all[1]:.4f}",
        f"{floor:.4f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main(path, markdown):
    notes, rows = read(path)
    if path.endswith("nodes.csv"):
        rows.sort(key=lambda row: (int(row["ranks"]), row["exchange"], row["input"]))
        about = f"{note(notes, 'simulated by')}; commit {note(notes, 'commit')}, {note(notes, 'date')[:10]}. "
        about += f"[Rows]({link(path, markdown)}), by `jobs/simulate.sh nodes`."
        replace(markdown, "simulated nodes", [about, "", BETWEEN, *map(between_line, rows)])
        return
    rows.sort(key=lambda row: (-row["keys"], int(row["ranks"]), row["exchange"]))
    about = f"{note(notes, 'simulated by')}; commit {note(notes, 'commit')}, {note(notes, 'date')[:10]}. "
    about += f"[Rows]({link(path, markdown)}), by `jobs/simulate.sh`."
    replace(markdown, "simulated", [about, "", HEAD, *map(line, rows)])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
