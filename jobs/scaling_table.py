#!/usr/bin/env python3
"""The tables of a CSV of jobs/scaling.sh.

    jobs/scaling_table.py CSV             print them
    jobs/scaling_table.py CSV MARKDOWN    put them into mpi/measured.md, between <!-- scaling MACHINE --> and <!-- /scaling MACHINE -->,
                                          where MACHINE is the folder of the CSV
    jobs/scaling_table.py --points CSV    print what jobs/scaling.gnuplot draws: a line for each sort of the tables
    jobs/scaling_table.py --plans         from reports of `hypersort plan --json` on stdin: lines TYPE KEYS RANKS MS, for keys in engine
                                          memory

A CSV of jobs/exchange.sh will do, too: it has neither the model nor the links.
"""

import json
import os
import sys

from tables import link, note, number, origin, power_of, read, replace, table

MEASURED = ("ms", "gkeys_per_s", "cub_ms", "plan_ms", "link_gbs")
# How keys in memory of their own, or sorted in place, are called in the tables.
STRONG = {"device": "", "inplace": ", in place"}
TYPES = ("u64", "u32", "f64")


class Rows:
    """The rows that are right and have a time."""

    def __init__(self, path):
        self.notes, self.all = read(path, MEASURED)
        there = int((note(self.notes, "gpus").split() + ["0"])[0]) if note(self.notes, "gpus")[:1].isdigit() else 0
        for row in self.all:
            row["ranks"] = int(row["ranks"])
            row.setdefault("part", row["memory"])
            row["gpus"] = int(row.get("gpus", min(row["ranks"], there)))
        self.timed = [row for row in self.all if row["result"] == "right" and row["ms"] and row["ranks"] == row["gpus"]]

    def gpus(self):
        return sorted({row["gpus"] for row in self.timed if row["part"] == "device"})

    def keys_of(self, part):
        return sorted({row["keys"] for row in self.timed if row["part"] == part})

    def inputs(self):
        return list(dict.fromkeys(row["input"] for row in self.timed if row["part"] == "device"))

    def fastest(self, part, kind, word, keys, gpus, exchange=None):
        """That row, or None. A CSV of jobs/exchange.sh has one for each exchange."""
        found = [row for row in self.timed if (row["part"], row["type"], row["input"], row["keys"], row["gpus"])
                 == (part, kind, word, keys, gpus) and exchange in (None, row["exchange"])]
        return min(found, key=lambda row: row["ms"], default=None)


def floor_ms(row):
    """What the link takes at least for what a GPU sends, or None."""
    if not row.get("link_gbs") or row["gpus"] == 1:
        return None
    return int(row["moved_bytes"]) / row["gpus"] / row["link_gbs"] / 1e6


def share(row):
    """The link's part of the time of a sort, or None."""
    least = floor_ms(row)
    return None if least is None else least / row["ms"]


def percent(value, sign=""):
    return "" if value is None else f"{100 * value:{sign}.0f} %"


def filled(head, lines):
    """A table, without columns that are empty."""
    columns = [i for i, _ in enumerate(head) if any(line[i] for line in lines)]
    return table([head[i] for i in columns], [[line[i] for i in columns] for line in lines]) if lines else []


def strong_efficiency(first, row):
    """The efficiency beside the fewest GPUs that sort as many keys."""
    return first["ms"] * first["gpus"] / (row["ms"] * row["gpus"])


def strong_series(rows):
    """Of each part, type, input and size the rows by GPUs: a list [of None or a row]."""
    gpus = rows.gpus()
    for kind in TYPES:
        for word in rows.inputs():
            for part in STRONG:
                for keys in rows.keys_of(part):
                    series = [rows.fastest(part, kind, word, keys, count) for count in gpus]
                    if len([row for row in series if row]) > (len(gpus) > 1):
                        yield part, kind, word, keys, series


def strong(rows):
    gpus, lines = rows.gpus(), []
    for part, kind, word, keys, series in strong_series(rows):
        there = [row for row in series if row]
        first, last = there[0], there[-1]
        lines.append([kind, word, power_of(keys) + STRONG[part], number(series[0] and series[0].get("cub_ms"), ".2f")]
                     + [number(row and row["ms"], ".2f") for row in series]
                     + [f"{first['ms'] / last['ms']:.2f}", percent(strong_efficiency(first, last)), percent(share(last))])
    head = ["type", "input", "keys", "CUB, 1 GPU, ms"] + [f"{count} GPU{'s' * (count > 1)}, ms" for count in gpus]
    return filled(head + ["times as fast", "efficiency", "link's share"], lines)


def weak_series(rows, kind):
    """Of each input the rows by GPUs, with as many keys for each GPU: the fewest with which all numbers of GPUs were measured."""
    gpus = rows.gpus()
    for word in rows.inputs():
        for each in rows.keys_of("device"):
            series = [rows.fastest("device", kind, word, each * count, count) for count in gpus]
            if all(series):
                yield word, each, series
                break


def weak(rows):
    lines = []
    for kind in TYPES:
        for word, each, series in weak_series(rows, kind):
            for row in series:
                plan = row.get("plan_ms")
                lines.append([kind, word, power_of(each), str(row["gpus"]), f"{row['ms']:.2f}", f"{row['gkeys_per_s']:.1f}",
                              percent(series[0]["ms"] / row["ms"]), number(row.get("link_gbs") or None, ".0f"),
                              number(floor_ms(row), ".2f"), percent(share(row)), number(plan, ".2f"),
                              percent(row["ms"] / plan - 1, "+") if plan else ""])
    head = ["type", "input", "keys on each GPU", "GPUs", "ms", "Gkeys/s", "efficiency", "link, GB/s each way",
            "what it takes at least, ms", "its share", "plan, ms", "measured to plan"]
    return filled(head, lines)


def others(rows):
    """Other exchanges, and keys in pinned memory: the time, and how long `auto` takes for keys in GPU memory."""
    gpus, lines = rows.gpus(), []
    for part, words in (("exchange", ("bitonic", "direct")), ("pinned", (None,))):
        for word in words:
            for kind in TYPES:
                for keys in rows.keys_of(part):
                    series = [rows.fastest(part, kind, "uniform", keys, count, word) for count in gpus]
                    if any(series):
                        lines.append([f"by {word}" if word else "from and to pinned memory", kind, power_of(keys)]
                                     + [number(row and row["ms"], ".2f") for row in series])
    return filled(["otherwise", "type", "uniform keys"] + [f"{count} GPU{'s' * (count > 1)}, ms" for count in gpus], lines)


def correct(rows):
    """Which other numbers of ranks gave right results."""
    words = []
    for part, text in (("uneven", "ranks with a GPU each"), ("shared", "ranks that share {}")):
        found = [row for row in rows.all if row["part"] == part]
        right = [row for row in found if row["result"] == "right"]
        if found:
            gpus = max(row["gpus"] for row in found)
            ranks = ", ".join(map(str, sorted({row["ranks"] for row in found})))
            words.append(f"{len(right)} of {len(found)} sorts by {ranks} {text.format('1 GPU' if gpus == 1 else f'{gpus} GPUs')}")
    return ["Right are " + " and ".join(words) + "."] if words else []


def tables(rows):
    parts = [strong(rows), weak(rows), others(rows), correct(rows)]
    lines = []
    for part in parts:
        if part:
            lines += ([""] if lines else []) + part
    return lines


def print_points(rows):
    """What is drawn: the input says how weak scaling differs, type and keys how strong scaling does."""
    print("# " + note(rows.notes, "gpus"))
    print("scaling,type,input,keys,gpus,ms,efficiency,link_share,plan_ms")

    def point(scaling, keys, row, efficiency):
        print(f"{scaling},{row['type']},{row['input']},{keys},{row['gpus']},{row['ms']:.4f},{efficiency:.4f},"
              f"{number(share(row), '.4f')},{number(row.get('plan_ms'), '.4f')}")

    for _, _, word, keys, series in strong_series(rows):
        there = [row for row in series if row]
        for row in there if word == "uniform" else []:
            point("strong", keys, row, strong_efficiency(there[0], row))
    for _, each, series in weak_series(rows, "u64"):
        for row in series:
            point("weak", each, row, series[0]["ms"] / row["ms"])


def print_plans():
    """Keys that lie in engine memory are not copied from and to the host."""
    text, decoder = sys.stdin.read().strip(), json.JSONDecoder()
    while text:
        report, end = decoder.raw_decode(text)
        text = text[end:].lstrip()
        for plan in report["plans"]:
            phases = plan[plan["exchange"]]["phases"]
            seconds = sum(phases[phase] for phase in ("local_sort", "exchange", "merge"))
            print(report["type"], report["keys"], plan["ranks"], f"{seconds * 1e3:.4g}")


def main():
    words = sys.argv[1:]
    if words == ["--plans"]:
        print_plans()
    elif len(words) == 2 and words[0] == "--points":
        print_points(Rows(words[1]))
    elif len(words) in (1, 2) and not words[0].startswith("--"):
        rows = Rows(words[0])
        if len(words) == 1:
            print("\n".join(tables(rows)))
        else:
            script = "scaling" if "link_gbs" in rows.all[0] else "exchange"
            seed = next((note for note in rows.notes if note.startswith("seed:")), "").split()
            about = origin(rows.notes) + (f"; inputs of seed {seed[1]}" if seed else "")
            about += f". [Rows]({link(words[0], words[1])}), by `jobs/{script}.sh`."
            machine = os.path.basename(os.path.dirname(os.path.abspath(words[0])))
            replace(words[1], f"scaling {machine}", [about, "", *tables(rows)])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
