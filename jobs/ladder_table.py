#!/usr/bin/env python3
"""Rewrite the measured tables of kernels/measured.md from the CSV of jobs/ladder.sh.

    jobs/ladder_table.py CSV MARKDOWN

Each part stands between the lines "<!-- PART -->" and "<!-- /PART -->" and is replaced if the CSV has its rows:
  ladder         rates on uniform keys, rates by input, and what the sources of the ladder claim beside what was found here
  types          keys of every type, encoded and decoded by the sort or by passes of their own
  less-scratch   sorts with scratch for a part of the keys
"""

import sys

from tables import link, note, number, one, origin, power_of, read, replace, select, table

TYPES = ["u32", "u64", "4+4", "8+4", "8+8"]
SIZES = [10, 16, 20, 24, 28, 30]


def name_of(what):
    """rung_4_bitonic_multistep: "4 bitonic_multistep"."""
    if what == "cub_merge_sort":
        return "CUB's merge sort"
    return what.removeprefix("rung_").replace("_", " ", 1)


def caption(notes, path, markdown):
    copy = note(notes, "copy").split(",")[0]
    return f"{origin(notes)}; a copy in device memory: {copy}. [Rows]({link(path, markdown)}), by `jobs/ladder.sh`."


# Rungs that are steps on the way are shown for keys alone; what they make of pairs is in the CSV.
STEPS = ("rung_1_", "rung_2_", "rung_3_", "rung_4_", "rung_6_")


def rates(rows):
    """Gkeys/s on uniform keys; of each type the fastest rung first."""
    rows = select(rows, experiment="ladder", input="uniform")
    sizes = [size for size in SIZES if select(rows, keys=1 << size)]
    if not sizes:
        return []
    reference = 28 if 28 in sizes else sizes[-1]
    lines = []
    for kind in TYPES:
        of_kind = select(rows, type=kind)
        rungs = []
        for what in dict.fromkeys(row["what"] for row in of_kind):
            if "+" in kind and what.startswith(STEPS):
                continue
            found = [one(of_kind, what=what, keys=1 << size) for size in sizes]
            cells = [number(row and row["gkeys_per_s"], ".3g") for row in found]
            last = one(of_kind, what=what, keys=1 << reference) or {"copy_percent": None, "ratio_to_cub": None}
            cells += [number(last["copy_percent"], ".0f"), number(last["ratio_to_cub"], ".2f")]
            # Slow rungs are not measured at large sizes, so the order is that of the largest one that both have.
            speed = [row["gkeys_per_s"] if row else 0 for row in reversed(found)]
            rungs.append((speed, [name_of(what), kind] + cells))
        lines += [line for speed, line in sorted(rungs, reverse=True)]
    head = ["rung", "type"] + [f"2^{size}" for size in sizes]
    head += [f"% of a copy's rate at 2^{reference}", f"x CUB at 2^{reference}"]
    return ["Uniform keys, in Gkeys/s:", ""] + table(head, lines)


def inputs(rows):
    """Gkeys/s and the ratio to CUB at the largest size at which other inputs were measured; fastest rung first."""
    rows = select(rows, experiment="ladder")
    skewed = [row for row in rows if row["input"] != "uniform"]
    if not skewed:
        return []
    keys = max(row["keys"] for row in skewed)
    words = ["uniform"] + list(dict.fromkeys(row["input"] for row in skewed))
    lines = []
    for kind in TYPES:
        here = select(rows, type=kind, keys=keys)
        here.sort(key=lambda row: (row["input"] == "uniform", row["gkeys_per_s"]), reverse=True)
        others = {row["what"] for row in here if row["input"] != "uniform"}
        for what in dict.fromkeys(row["what"] for row in here if row["what"] in others):
            line = [name_of(what), kind]
            for word in words:
                row = one(rows, what=what, type=kind, keys=keys, input=word)
                line.append("" if row is None else f"{row['gkeys_per_s']:.3g} ({number(row['ratio_to_cub'], '.2f')})")
            lines.append(line)
    power = keys.bit_length() - 1
    return [f"By input at 2^{power} keys, in Gkeys/s (x CUB on the same input):", ""] + table(
        ["rung", "type"] + words, lines
    )


# ---- the sources' claims ------------------------------------------------------------------------------------


def peters_rate(rows):
    rows = select(rows, experiment="peters-rate", type="u32")
    bitonic = select(rows, what="rung_4_bitonic_multistep")
    if not bitonic:
        return
    best = max(bitonic, key=lambda row: row["gkeys_per_s"])
    faster = None
    for row in sorted(bitonic, key=lambda row: row["keys"], reverse=True):
        radix = one(rows, what="rung_7_onesweep", keys=row["keys"])
        if radix is None or radix["ms"] > row["ms"]:
            break
        faster = row["keys"]
    yield (
        "Peters, figure 4",
        "bitonic sort is fastest at 2^19 keys; radix sort is faster from 2^16 on",
        f"rung 4 is fastest at {power_of(best['keys'])} ({best['gkeys_per_s']:.3g} Gkeys/s); rung 7 is faster from "
        + (f"{power_of(faster)} on" if faster else "nowhere"),
    )


def peters_degree(rows):
    rows = select(rows, experiment="peters-degree", type="u32")
    trivial = max(select(rows, what="rung_1_bitonic_global"), key=lambda row: row["keys"], default=None)
    if trivial:
        keys = trivial["keys"]
        found = [row for row in select(rows, keys=keys) if row["variant"].startswith("degree")]
        yield (
            "Peters, section 3.2",
            "a degree of d divides the passes by d; d up to 4",
            f"at {power_of(keys)} over rung 1: "
            + ", ".join(f"{row['variant'].split()[1]}: {trivial['ms'] / row['ms']:.2f}" for row in found),
        )


def peters_size(rows):
    rows = select(rows, experiment="peters-size")
    found = []
    for row in rows:
        behind = one(rows, what=row["what"], keys=row["keys"] + 1)
        if behind:
            found.append(f"{row['what'].split('_')[1]}: {behind['ms'] / row['ms']:.2f}")
            power = power_of(row["keys"])
    if found:
        yield (
            "Peters, figure 3",
            "little is lost where n is not a power of two",
            f"time of {power} + 1 keys over that of {power}, by rung: " + ", ".join(found),
        )


def threads(rows):
    rows = select(rows, experiment="threads")
    for what, claim in (
        ("rung_2_bitonic_shared", "bitonic: 256, 512, 1024 threads differ little, 1024 is best"),
        ("rung_6_radix_4way", "radix: 1024 threads beat 512"),
    ):
        of_rung = select(rows, what=what)
        if of_rung:
            keys = max(row["keys"] for row in of_rung)
            found = ", ".join(f"{row['variant'].split()[0]}: {row['ms']:.3g} ms" for row in select(of_rung, keys=keys))
            yield ("Disabato, figures 4, 5", claim, f"rung {what.split('_')[1]} at {power_of(keys)}: {found}")


def shuffle(rows):
    rows = select(rows, experiment="shuffle")
    found = []
    for kind in ("u32", "u64"):
        for repeats in ("once", "100 times"):
            fast = one(rows, type=kind, variant=f"shuffle {repeats}")
            slow = one(rows, type=kind, variant=f"shared {repeats}")
            if fast and slow:
                found.append(f"{kind} {repeats} {slow['ms'] / fast['ms']:.2f}")
    if found:
        yield (
            "warp-shuffle blog",
            "rows of 32 keys: shuffles are 1.3 to 1.4 times as fast as shared memory",
            "times as fast: " + ", ".join(found),
        )


def cpu(notes):
    for line in notes:
        if line.startswith("crossover:"):
            yield ("Disabato, figure 6", "for few keys the CPU is faster", line.removeprefix("crossover: "))


def claims(notes, rows):
    lines = [list(line) for find in (peters_rate, peters_degree, peters_size, threads, shuffle) for line in find(rows)]
    lines += [list(line) for line in cpu(notes)]
    if not lines:
        return []
    return ["The experiments of the sources, repeated:", ""] + table(["source", "its claim", "here"], lines)


# ---- types, scratch -----------------------------------------------------------------------------------------


def types(rows):
    rows = select(rows, experiment="types")
    if not rows:
        return []
    keys = max(row["keys"] for row in rows)
    rows = select(rows, keys=keys)
    kinds = list(dict.fromkeys(row["type"] for row in rows))

    def cell(row):
        if row is None or row["ms"] is None:
            return ""
        cub = one(rows, what="cub", type=row["type"])
        return f"{row['ms']:.2f}" + (f" ({cub['ms'] / row['ms']:.2f})" if cub and cub is not row else "")

    lines = []
    for name, wanted in (
        ("CUB", {"what": "cub"}),
        ("encoded and decoded by the sort", {"variant": "at once"}),
        ("by passes of their own", {"variant": "encode sort decode"}),
    ):
        lines.append([name] + [cell(one(rows, type=kind, **wanted)) for kind in kinds])
    return [f"{power_of(keys)} keys, ms (x CUB):", ""] + table([""] + kinds, lines)


def less_scratch(rows):
    rows = select(rows, experiment="less-scratch")
    if not rows:
        return []
    keys = max(row["keys"] for row in rows)
    rows = select(rows, keys=keys)
    variants = list(dict.fromkeys(row["variant"] for row in rows if row["what"] == "engine"))
    lines = []
    for kind in dict.fromkeys(row["type"] for row in rows):
        found = [one(rows, type=kind, variant=variant, what="engine") for variant in variants]
        lines.append([kind] + ["" if row is None else f"{row['ms']:.3g} ({row['ratio_to_cub']:.2f})" for row in found])
    head = [variant.replace("scratch for ", "").replace("no scratch at all", "none") for variant in variants]
    return [f"{power_of(keys)} uniform keys, ms (x CUB, which takes scratch for all), by the scratch there is:", ""] + table(
        ["scratch for"] + head, lines
    )


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: jobs/ladder_table.py CSV MARKDOWN")
    path, markdown = sys.argv[1:]
    notes, rows = read(path)
    ladder = [part for part in (rates(rows), inputs(rows), claims(notes, rows)) if part]
    parts = {"ladder": ladder, "types": [types(rows)], "less-scratch": [less_scratch(rows)]}
    for name, tables in parts.items():
        if tables and tables[0]:
            lines = [caption(notes, path, markdown)]
            for part in tables:
                lines += [""] + part
            replace(markdown, name, lines)


if __name__ == "__main__":
    main()
