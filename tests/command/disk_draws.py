#!/usr/bin/env python3
"""Sorts by way of the disk with options drawn at random: disk_draws.py SEED SECONDS|all HYPERSORT MPIRUN...

Drawn are what is sorted (keys of each type, records by fields, raw records, records of the sort benchmarks), number of runs and of
ranks; one input or several, raw, .npy, big-endian .npy; how it is verified; one or two temporary directories; how the output is
named; what else is asked for: values, an index, of each key one and how many, a file per rank. In turn first, so that each comes; "all": each number of runs on each number of ranks with each of what is sorted. Every
output is compared byte for byte with that of the sort in memory, and with NumPy's where both know an order; the report must name
so many runs as there must be, and nothing else may be left. Runs in an empty directory. Exits with 1 if a case failed, and prints
the command of each that did.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np

RUNS, RANKS = [1, 2, 3, 17, 200], [1, 2, 3, 5, 7, 8]
TYPES = {"u32": "u4", "i32": "i4", "u64": "u8", "i64": "i8", "f32": "f4", "f64": "f8", "u128": None}
RECORD = np.dtype([("a", "<u4"), ("b", ">i8"), ("c", "S3"), ("rest", "V10")])
FIELDS = ["a", "b:desc,a", "c,b", "c:desc"]
WHAT = list(TYPES) + ["fields", "raw records", "gensort"]
KINDS = {
    "what": WHAT, "runs": RUNS, "ranks": RANKS, "inputs": [1, 2, 5], "form": ["raw", "npy", "swapped"], "few": [False, True],
    "reverse": [False, True], "verify": [[], ["--no-verify"], ["--verify=reread"], ["--verify"]], "direct": ["auto", "on", "off"],
    "temporary": [0, 1, 2], "name": ["relative", "absolute", "link"], "to": ["raw", "npy"], "checkpoint": [False, False, True],
    "special": [False, False, True], "rank_memory": [None, None, 900 << 10], "beside": [
        "", "rank", "unique", "values", "index", "", "index only", "unique counts", "values index", "", "unique values",
        "unique counts values index", "rank index", "rank unique counts", "rank unique values index counts", "rank values"],
}


def cases(draw, seconds):
    """Each case a value of each kind."""
    begin = time.monotonic()
    offsets = {kind: int(draw.integers(len(values))) for kind, values in KINDS.items()}
    if seconds == "all":
        for what, runs, ranks in itertools.product(WHAT, RUNS, RANKS):
            yield {kind: values[draw.integers(len(values))] for kind, values in KINDS.items()} | {
                "what": what, "runs": runs, "ranks": ranks}
        return
    number = 0
    while number < len(WHAT) or time.monotonic() - begin < float(seconds):
        case = {kind: values[(number + offsets[kind]) % len(values) if number < len(WHAT) else draw.integers(len(values))]
                for kind, values in KINDS.items()}
        case["runs"] = 17 if number > 1 and case["runs"] == 200 and number % 5 else case["runs"]  # so many take seconds
        number += 1
        yield case


def draw_count(draw):
    """Of the elements of one input."""
    return int(draw.choice([1, 2, 19, 1000, 20000, int(draw.integers(1, 60000))]))


def draw_keys(draw, case, count):
    """As an array, or for u128 as one of two columns, the low half first."""
    code = TYPES[case["what"]]
    if code is None:
        return draw.integers(0, 3 if case["few"] else 1 << 63, (count, 2), dtype="u8")
    if code[0] == "f":
        keys = draw.integers(-3, 3, count).astype(code) if case["few"] else draw.standard_normal(count).astype(code)
        if case["special"]:
            keys[::3] = draw.choice(np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf], code), len(keys[::3]))
        return keys
    limits = np.iinfo(code)
    return draw.integers(0 if case["few"] else limits.min, 3 if case["few"] else limits.max, count, dtype=code)


def draw_records(draw, case, count):
    records = np.zeros(count, RECORD)
    high = 3 if case["few"] else 1 << 31
    records["a"] = draw.integers(0, high, count)
    records["b"] = draw.integers(-high, high, count)
    records["c"] = draw.choice(np.array([b"a", b"b", b"bc", b"ccc"]), count)
    records["rest"] = np.frombuffer(draw.bytes(10 * count), "V10")
    return records


def write_inputs(draw, case, launch):
    """Their names, and all elements as one array."""
    names, parts, what = [], [], case["what"]
    for number in range(case["inputs"]):
        count = draw_count(draw)
        is_npy = what == "fields" or (TYPES.get(what) and case["form"] != "raw")
        name = f"in{number}.{'npy' if is_npy else 'bin'}"
        if what == "gensort":
            subprocess.run([launch[-1], "gen", "-n", str(count), "--format", "gensort", "-o", name, "--first", str(draw.integers(1 << 31)),
                            *(["--skew"] if case["few"] else [])], check=True, capture_output=True)
            part = np.fromfile(name, "V100")
        else:
            part = draw_keys(draw, case, count) if what in TYPES else draw_records(draw, case, count)
            if is_npy:
                np.save(name, part.astype(part.dtype.newbyteorder(">")) if what != "fields" and case["form"] == "swapped" else part)
            else:
                part.tofile(name)
        names.append(name)
        parts.append(part)
    return names, np.concatenate(parts).astype(parts[0].dtype)  # to join records turns bytes round


def own_words(case, draw):
    """What makes this sort the sort that it is, in memory too."""
    what = case["what"]
    if what in TYPES:
        return ["--type", what] + (["-r"] if case["reverse"] else [])
    if what == "gensort":
        return ["--format", "gensort"]
    if what == "fields":
        return ["--key", str(draw.choice(FIELDS))]
    return ["--record", str(RECORD.itemsize), "--key", str(draw.choice(["@0:u32", "@4:i64>,@0:u32:desc", "@12:bytes3"]))]


def numpy_sorted(case, words, elements):
    """The elements in order by NumPy; None if it has another one."""
    what = case["what"]
    if TYPES.get(what) and not (what[0] == "f" and case["special"]):
        return np.sort(elements)[::-1] if case["reverse"] else np.sort(elements)
    if what == "u128":
        order = np.lexsort((elements[:, 0], elements[:, 1]))
        return elements[order[::-1] if case["reverse"] else order]
    if what == "fields" and words[1] in ("a", "b:desc,a", "c,b"):
        keys = {"a": (elements["a"],), "b:desc,a": (elements["a"], -elements["b"]), "c,b": (elements["b"], elements["c"])}[words[1]]
        return elements[np.lexsort(keys)]
    return None


def wanted_runs(case, count):
    ranks = case["ranks"]
    share = -(-count // ranks)
    fewest = -(--(-count // share) // ranks) * ranks
    return -(-count // -(-count // max(case["runs"], fewest)))


def bytes_of(name):
    with open(name, "rb") as file:
        data = file.read()
    return data[10 + int.from_bytes(data[8:10], "little"):] if name.endswith(".npy") else data


def name_output(case):
    """As the command is given it, and the file that it must become."""
    last = "out.npy" if case["to"] == "npy" and TYPES.get(case["what"]) or case["what"] == "fields" else "out.bin"
    if case["name"] == "absolute":
        return os.path.abspath(last), last
    if case["name"] == "link":
        os.mkdir("there")
        with open(f"there/{last}", "wb"):
            pass
        os.symlink(f"there/{last}", last)
        return last, f"there/{last}"
    return last, last


def draw_beside(draw, case, count):
    """Words that ask for what is beside the output, with %s where the names of outputs differ, and the suffixes of these outputs."""
    beside, words, suffixes = case["beside"].split(), [], []
    if "values" in beside:
        width = int(draw.choice([1, 3, 8, 40]))
        with open("values.bin", "wb") as file:
            file.write(draw.bytes(width * count))
        words += ["--values", "values.bin", "--value-bytes", str(width), "-O", "%s.values.bin"]
        suffixes.append(".values.bin")
    if "index" in beside:
        words += ["--index", "%s.index.npy"]
        suffixes.append(".index.npy")
    if "unique" in beside:
        words += ["--unique"]
    if "counts" in beside:
        words += ["--counts", "%s.counts.npy"]
        suffixes.append(".counts.npy")
    return words, suffixes


def read_outputs(case, name):
    """What is in an output, or in its files of all ranks; which are then removed."""
    names = [name.replace("%r", str(rank)) for rank in range(case["ranks"])] if "%r" in name else [name]
    data = b"".join(bytes_of(name) for name in names)
    for name in names:
        os.remove(name)
    return data


def why_not_beside(case, suffixes):
    """What is wrong with the outputs beside the first one."""
    stem = "disk.%r" if "rank" in case["beside"] else "disk"
    for suffix in suffixes:
        if read_outputs(case, stem + suffix) != read_outputs(case, "memory" + suffix):
            return f"what is beside the output, {suffix}, is not that of the sort in memory"
    return ""


def why_not(case, ended, words, elements, given, output):
    """What is wrong with a run that has ended."""
    if ended.returncode or ended.stderr:
        return ended.stderr.strip() or "no error line"
    report = json.loads(ended.stdout)
    has_output = "only" not in case["beside"]
    wanted = bytes_of("memory" + os.path.splitext(output)[1]) if has_output else b""
    ordered = numpy_sorted(case, words, elements) if has_output and "unique" not in case["beside"] else None
    runs = wanted_runs(case, len(elements))
    if has_output and case["name"] == "link" and not os.path.islink(given):
        return "the link was replaced"
    if has_output and (read_outputs(case, given) if "%r" in given else bytes_of(output)) != wanted:
        return "the output is not that of the sort in memory"
    if ordered is not None and wanted != ordered.tobytes():
        return "the sort in memory has not NumPy's order"
    if report.get("passes") != 2 or report.get("segments") != report.get("runs"):
        return f"passes {report.get('passes')}, runs {report.get('runs')}, segments {report.get('segments')}"
    if report["runs"] < runs if case["rank_memory"] else report["runs"] != runs:
        return f"{report['runs']} runs, not {runs}"
    if (report["verify"] is None) != (case["verify"] == ["--no-verify"]):
        return "what the report says of the check"
    return ""


def clear(names, output, given, temporary):
    """Remove what the case has made; what is left then is none of it."""
    left = [f"{directory}/{name}" for directory in temporary for name in os.listdir(directory)]
    for name in {*names, output, given, "memory" + os.path.splitext(output)[1]}:
        if os.path.lexists(name):
            os.remove(name)
    if os.path.isdir("there") and not os.listdir("there"):
        os.rmdir("there")
    left += [name for name in os.listdir(".") if name not in temporary]
    for name in os.listdir("."):
        if os.path.isdir(name):
            shutil.rmtree(name)
        else:
            os.remove(name)
    return left


def run_in_memory_of(command, size):
    """Run it with -S size, and where that is too little with what its error line says to be enough."""
    if size:
        command += ["-S", str(size)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    enough = re.search(r" of memory on each rank, .*: -S (\d+[KMGT]) would do", ended.stderr)
    if not size or ended.returncode != 5 or not enough:
        return ended
    command[-1] = enough[1]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def run_case(draw, case, launch):
    by_rank, has_output = "rank" in case["beside"], "only" not in case["beside"]
    case["name"] = "relative" if by_rank or not has_output else case["name"]
    names, elements = write_inputs(draw, case, launch)
    words, temporary = own_words(case, draw), ["one", "two"][:case["temporary"]]
    beside, suffixes = draw_beside(draw, case, len(elements))
    given, output = name_output(case)
    given = given.replace("out", "out.%r") if by_rank else given
    for directory in temporary:
        os.mkdir(directory)
    in_memory = ["-o", "memory" + os.path.splitext(output)[1]] if has_output else []
    subprocess.run([launch[-1], "sort", *names, *in_memory, *words, *[word.replace("%s", "memory") for word in beside], "--threads", "1"],
                   check=True, capture_output=True)
    command = [word if word != "RANKS" else str(case["ranks"]) for word in launch]
    command += ["sort", *names, *(["-o", given] if has_output else []), *words, "--runs", str(case["runs"]), "--direct-io",
                case["direct"], *case["verify"], "--json", "--threads", "1", "--engine", "host"]
    command += [word.replace("%s", "disk.%r" if by_rank else "disk") for word in beside]
    command += [word for directory in temporary for word in ("-T", directory)]
    command += ["--checkpoint", "kept"] if case["checkpoint"] else []
    ended = run_in_memory_of(command, case["rank_memory"])
    why = why_not(case, ended, words, elements, given, output) or why_not_beside(case, suffixes)
    names += ["values.bin"] if "values" in case["beside"] else []
    kept = os.listdir("kept") if os.path.isdir("kept") else []
    if os.path.isdir("kept") and not kept:
        os.rmdir("kept")
    left = clear(names, output, given, temporary)
    why = why or (left and "left: " + " ".join(left))
    if why:
        print(f"failed: {' '.join(command)}\n    of {len(elements)} elements, few {case['few']}: exit code {ended.returncode}: {why}")
    return not why


def main():
    seed, launch, failures, number = int(sys.argv[1]), sys.argv[4:] + [sys.argv[3]], 0, 0
    draw = np.random.default_rng(seed)
    for number, case in enumerate(cases(draw, sys.argv[2]), 1):
        failures += not run_case(draw, case, launch)
    print(f"seed {seed}: {number} cases, {failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
