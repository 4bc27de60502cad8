#!/usr/bin/env python3
"""Rewrite which rung sorts by default, in tuning.h, from the CSV of jobs/tune.sh, and in a Markdown file how that one compares
with CUB, between <!-- tune --> and <!-- /tune -->.

    jobs/tune_table.py CSV TUNING_H                rewrite TUNING_H
    jobs/tune_table.py CSV TUNING_H MARKDOWN       rewrite MARKDOWN, from the rungs that TUNING_H names

For each type of keys and each size that was measured on several inputs: of the rungs that stay above FLOOR times CUB's rate on every input,
the one that is fastest on average, by the geometric mean of those ratios; if none does, of those whose worst input is not
much worse than that of the rung with the best one. A rung holds up to the size at which it was chosen last, the last one for all sizes above.

What stands in TUNING_H between the lines "// clang-format off" and "// clang-format on" is replaced.
"""

import math
import re
import sys

from tables import link, origin, power_of, read, replace, select, table

BEGIN, END = "    // clang-format off\n", "    // clang-format on\n"
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


def sizes_of(rows, kind):
    """The sizes that were measured on several inputs."""
    sizes = sorted({row["keys"] for row in rows if row["type"] == kind and row["experiment"] == "ladder"})
    return [keys for keys in sizes if len({row["input"] for row in select(rows, type=kind, keys=keys)}) > 1]


def header_rows(rows, kind, key_bytes):
    """The lines of one type of keys in tuning.h."""
    sizes = sizes_of(rows, kind)
    if not sizes:
        sys.exit(f"tune_table: the CSV has no size at which keys of type {kind} were measured on several inputs")
    chosen = [(keys, choose(ratios(rows, kind, keys))) for keys in sizes]
    lines = []
    for i, (keys, rung) in enumerate(chosen):
        is_last = i + 1 == len(chosen)
        if is_last or chosen[i + 1][1] != rung:
            one_bit = "1" if keys < 1 << 31 else "INT64_C(1)"
            up_to = "INT64_MAX" if is_last else f"{one_bit} << {keys.bit_length() - 1}"
            lines.append(f"    {{{key_bytes}, {up_to}, {rung}}},\n")
    return lines


def chosen_in(text, key_bytes, keys):
    """The rung that tuning.h names."""
    for up_to, rung in re.findall(rf"{{{key_bytes}, (.*?), (\d+)}}", text):
        power = re.search(r"<< (\d+)", up_to)
        if power is None or keys <= 1 << int(power.group(1)):
            return int(rung)
    return None


def worst_of(rows, kind, rung, keys):
    """The rung, and the input on which it is slowest beside CUB."""
    found = ratios(rows, kind, keys).get(rung)
    if not found:
        return ["", "", ""]
    word, ratio = min(found.items(), key=lambda item: item[1])
    return [str(rung), f"{ratio:.2f}", word]


def compare(csv, header, markdown):
    notes, rows = read(csv)
    with open(header, encoding="utf-8") as file:
        text = file.read().split(BEGIN)[1].split(END)[0]
    head = ["keys", "u32: rung", "least x CUB", "on", "u64: rung", "least x CUB", "on"]
    lines = []
    for keys in sorted(set(sizes_of(rows, "u32")) | set(sizes_of(rows, "u64"))):
        cells = [worst_of(rows, kind, chosen_in(text, key_bytes, keys), keys) for kind, key_bytes in (("u32", 4), ("u64", 8))]
        lines.append([power_of(keys)] + cells[0] + cells[1])
    about = f"{origin(notes)}. [Rows]({link(csv, markdown)}), by `jobs/tune.sh`."
    replace(markdown, "tune", [about, "", *table(head, lines)])


def write(csv, header):
    _, rows = read(csv)
    lines = header_rows(rows, "u32", 4) + header_rows(rows, "u64", 8)
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
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    (write if len(sys.argv) == 3 else compare)(*sys.argv[1:])
