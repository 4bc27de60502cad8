#!/usr/bin/env python3
"""Rewrite which rung sorts by default, in tuning.h, from the CSV of jobs/tune.sh.

    jobs/tune_table.py CSV TUNING_H

For each type of keys and each size that was measured on several inputs: of the rungs that stay above FLOOR times CUB's rate on every input,
the one that is fastest on average, by the geometric mean of those ratios; if none does, of those whose worst input is not
much worse than that of the rung with the best one. A rung holds up to the size at which it was chosen last, the last one for all sizes above.

What stands in TUNING_H between the lines "// clang-format off" and "// clang-format on" is replaced.
"""

import math
import sys

from ladder_table import read, select

BEGIN, END = "        // clang-format off\n", "        // clang-format on\n"
FLOOR = 0.85


def ratios(rows, kind, keys):
    """By rung, by input: how many times as fast as CUB."""
    found = {}
    for row in rows:
        if (row["experiment"], row["type"], row["keys"]) != ("ladder", kind, keys) or row["variant"]:
            continue
        if row["what"].startswith("rung_") and row["what"] != "rung_0_cub" and row["ratio_to_cub"]:
            found.setdefault(int(row["what"].split("_")[1]), {})[row["input"]] = row["ratio_to_cub"]
    return found


def choose(found):
    """The rung to take, of those that were measured on as many inputs as any."""
    inputs = max(len(by_input) for by_input in found.values())
    rungs = {rung: list(by_input.values()) for rung, by_input in found.items() if len(by_input) == inputs}
    best_worst = max(map(min, rungs.values()))
    floor = FLOOR if best_worst >= FLOOR else FLOOR * best_worst
    safe = [rung for rung in rungs if min(rungs[rung]) >= floor]
    return max(safe, key=lambda rung: sum(map(math.log, rungs[rung])))


def table(rows, kind, key_bytes):
    """The lines of one type of keys."""
    sizes = sorted({row["keys"] for row in rows if row["type"] == kind and row["experiment"] == "ladder"})
    sizes = [keys for keys in sizes if len({row["input"] for row in select(rows, type=kind, keys=keys)}) > 1]
    if not sizes:
        sys.exit(f"tune_table: the CSV has no size at which keys of type {kind} were measured on several inputs")
    chosen = [(keys, choose(ratios(rows, kind, keys))) for keys in sizes]
    lines = []
    for i, (keys, rung) in enumerate(chosen):
        is_last = i + 1 == len(chosen)
        if is_last or chosen[i + 1][1] != rung:
            one_bit = "1" if keys < 1 << 31 else "INT64_C(1)"
            up_to = "INT64_MAX" if is_last else f"{one_bit} << {keys.bit_length() - 1}"
            lines.append(f"        {{{key_bytes}, {up_to}, {rung}}},\n")
    return lines


def main(csv, header):
    _, rows = read(csv)
    lines = table(rows, "u32", 4) + table(rows, "u64", 8)
    with open(header, encoding="utf-8") as file:
        text = file.read()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit(f"tune_table: {header} has no place for the rows")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    with open(header, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "".join(lines) + END + after)
    print("".join(lines), end="")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
