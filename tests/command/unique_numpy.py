#!/usr/bin/env python3
"""sort --unique, check --unique and select of the command against NumPy: unique_numpy.py SEED CASES HYPERSORT MPIRUN...

Drawn as in records_numpy.py: dtypes, keys, inputs, ranks, and what is written beside the output. What sort keeps is compared
byte for byte: of equal keys the first in the order of the input. Runs in an empty directory; exits with 1 if a case failed.
"""

import subprocess
import sys

import numpy as np
from records_numpy import RANKS, Case, codes_of, draw_count, draw_dtype, draw_values, draw_values_file, field_of, rows_of, save_parts


def heads_of(codes, order):
    """Which of the sorted elements begin a run of equal keys."""
    heads = np.ones(len(order), bool)
    if len(order):
        same = np.ones(len(order) - 1, bool)
        for code in codes:
            same &= code[order][1:] == code[order][:-1]
        heads[1:] = ~same
    return heads


def unique_case(rng, case, names, elements, dtype, codes, words):
    """sort --unique with what may be written beside it; then check --unique of the output and of a sort without it."""
    order = np.lexsort(codes[::-1]) if len(elements) else np.zeros(0, np.int64)
    heads = heads_of(codes, order)
    kept, starts = order[heads], np.flatnonzero(heads)
    counts = np.diff(np.append(starts, len(order))).astype("<i8")
    output = str(rng.choice(["out.npy", "out.%r.npy", "out.raw"]))
    more = [[], ["--verify=reread"], ["--no-verify"]][rng.integers(3)] + ["--threads", int(rng.integers(1, 4))]
    index, wants_values = f"i{rng.choice(['', '.%r'])}.npy", rng.random() < 0.4
    wants_counts, wants_index = rng.random() < 0.7, rng.random() < 0.4
    more += ["--counts", "c.npy"] if wants_counts else []
    more += ["--index", index] if wants_index else []
    if wants_values:
        values, path, value_words = draw_values_file(rng, len(elements))
        more += ["--values", path, "-O", "vo.npy" if path.endswith(".npy") else "vo.raw", *value_words]
    if output == "out.npy" and rng.random() < 0.5:
        check_outputs(rng, case, names, len(order) > len(kept), words)
    case.run("sort", *names, *words, "--unique", "-o", output, *more)
    case.expect(output, dtype, (len(kept),) + elements.shape[1:], rows_of(elements)[kept].tobytes() if len(kept) else b"")
    if wants_counts:
        case.expect("c.npy", np.dtype("<i8"), (len(kept),), counts.tobytes())
    if wants_index:
        case.expect(index, np.dtype("<i8"), (len(kept),), kept.astype("<i8").tobytes())
    if wants_values:
        written = "vo.npy" if path.endswith(".npy") else "vo.raw"
        case.expect(written, values.dtype, (len(kept),) + values.shape[1:],
                    rows_of(values)[kept].tobytes() if len(kept) else b"")


def check_outputs(rng, case, names, repeats, words):
    """check finds that one of each is there, and where it is not."""
    case.run("sort", *names, *words, "--unique", "-o", "u.npy")
    case.run("check", "u.npy", *words, "--unique")
    case.run("sort", *names, *words, "-o", "s.npy")
    if case.why:
        return
    words = [*case.launch, "check", "s.npy", *[str(word) for word in words], "--unique"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    if ended.returncode != (1 if repeats else 0) or (" again" in ended.stderr) != repeats:
        case.why.append(f"check --unique of all: exit code {ended.returncode}: {ended.stderr.strip()}")


def keys_case(rng, case):
    dtype = np.dtype(str(rng.choice(["<u4", ">u4", "<i4", "<u8", "<i8", "<f8", ">f4"])))
    count = draw_count(rng)
    keys = np.array(draw_values(rng, dtype, count) if rng.random() < 0.6 else rng.integers(0, 2000, count).astype(dtype))
    names = save_parts(rng, keys, "in")
    descends = rng.random() < 0.4
    little = keys.astype(dtype.newbyteorder("<"))
    unique_case(rng, case, names, little, little.dtype, [codes_of(keys, descends)], ["-r"] if descends else [])


def draw_structured(rng, count):
    """Records, their codes, and how --key names what they are ordered by."""
    dtype, fields = draw_dtype(rng)
    array = rng.integers(0, 256, (count, dtype.itemsize), dtype=np.uint8).view(dtype).reshape(count)
    codes, words, total = [], [], 0
    for i in rng.permutation(len(fields)):
        name, kind = fields[i]
        size = np.dtype(kind).itemsize
        if len(codes) < 8 and total + size <= 16:
            descends = rng.random() < 0.4
            field_of(array, name)[:] = draw_values(rng, np.dtype(kind), count)
            codes.append(codes_of(field_of(array, name), descends))
            words.append(name + (":desc" if descends else ""))
            total += size
    # Fields that overlap are written after one another: take the codes anew.
    codes = [codes_of(field_of(array, word.replace(":desc", "")), word.endswith(":desc")) for word in words]
    return array, codes, words


def structured_case(rng, case):
    array, codes, words = draw_structured(rng, draw_count(rng))
    unique_case(rng, case, save_parts(rng, array, "in"), array, array.dtype, codes, ["--key", ",".join(words)])


def draw_places(rng, count):
    """Places of --at, and the positions that they mean, counted with whole numbers."""
    places, positions = [], []
    for _ in range(int(rng.integers(1, 9))):
        draw, number = rng.random(), int(rng.integers(count))
        if draw < 0.3:
            places.append(str(number))
            positions.append(number)
        elif draw < 0.5:
            places.append(str(number - count))
            positions.append(number)
        else:
            thousandths = int(rng.integers(0, 100001))
            places.append(str(rng.choice([f"{thousandths // 1000}.{thousandths % 1000:03}%"])))
            positions.append(thousandths * (count - 1) // 100000)
    return places, positions


def run_select(rng, case, words):
    """The fields of each line, or None where it fails. With little memory the file is read several times."""
    memory = [[], ["-S", "100"], ["-S", "2K"], ["-S", "50K"]][rng.integers(4)]
    case.words = ["select", *words, *memory]
    ended = subprocess.run(case.launch + case.words, capture_output=True, text=True, timeout=300, check=False)
    if ended.returncode or ended.stderr:
        case.why.append(f"exit code {ended.returncode}: {ended.stderr.strip()}")
        return None
    return [line.split() for line in ended.stdout.splitlines()]


def select_case(rng, case):
    """select against np.sort."""
    dtype = np.dtype(str(rng.choice(["<u4", "<i4", "<f4", "<u8", ">i8", ">f8"])))
    count = 1 + draw_count(rng)
    keys = np.array(draw_values(rng, dtype, count) if rng.random() < 0.5 else rng.integers(0, 10**6, count).astype(dtype))
    descends = rng.random() < 0.5
    ordered = np.sort(keys)[::-1] if descends else np.sort(keys)
    places, positions = draw_places(rng, count)
    found = run_select(rng, case, [*save_parts(rng, keys, "in"), "--at", ",".join(places), *(["-r"] if descends else [])])
    if found is None:
        return
    # The digits of a float tell it from all others of its type: they are the same number once they are of that type.
    kind = (lambda key: float(dtype.type(key))) if dtype.kind == "f" else int
    expected = [(position, kind(ordered[position])) for position in positions]
    if [(int(position), kind(key)) for position, key in found] != expected:
        case.why.append(f"{found}, not {expected}")


def field_text(values, place):
    """What select prints of a field; of a float, what it should be read as."""
    dtype = values.dtype
    if dtype.kind in "SV":
        read = np.ascontiguousarray(values[place : place + 1]).tobytes()
        return "".join(chr(c) if 32 < c < 127 and c != 92 else f"\\x{c:02x}" for c in read.rstrip(b"\0") or b"\0")
    return float(values[place]) if dtype.kind == "f" else str(int(values[place].astype("<i8") if dtype.kind in "Mm" else values[place]))


def select_records_case(rng, case):
    """select --key against np.lexsort."""
    count = 1 + draw_count(rng)
    array, codes, words = draw_structured(rng, count)
    order = np.lexsort(codes[::-1])
    places, positions = draw_places(rng, count)
    found = run_select(rng, case, [*save_parts(rng, array, "in"), "--at", ",".join(places), "--key", ",".join(words)])
    if found is None:
        return
    fields = [field_of(array, word.replace(":desc", "")) for word in words]
    expected = [[str(position)] + [field_text(field, order[position]) for field in fields] for position in positions]
    for line in found:
        for i, field in enumerate(fields[: len(line) - 1]):
            line[i + 1] = float(field.dtype.type(line[i + 1])) if field.dtype.kind == "f" else line[i + 1]
    if found != expected:
        case.why.append(f"{found}, not {expected}")


def main():
    seed, cases = int(sys.argv[1]), int(sys.argv[2])
    program = sys.argv[4:] + [sys.argv[3]]
    rng, failures = np.random.default_rng(seed), 0
    kinds = [keys_case, structured_case, select_case, select_records_case]
    for number in range(cases):
        case = Case(program, RANKS[int(rng.integers(len(RANKS)))])
        kinds[number % len(kinds)](rng, case)
        failures += not case.passed()
    print(f"seed {seed}: {cases} cases, {failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
