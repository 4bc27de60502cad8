#!/usr/bin/env python3
"""Sorts of files with options drawn at random, against Python's own sort: sort_draws.py SEED SECONDS HYPERSORT MPIRUN...

Drawn are type, order, number of ranks; one input or several, raw, .npy, big-endian .npy, with headers of odd lengths, empty
ones; one output or one per rank; one pass or two; direct I/O or not; verified as keys pass or read back; with a checkpoint or
without. Each kind of what is drawn comes at least once in the first cases. Every output is compared byte for byte, and nothing else may
be left. Runs in an empty directory. Exits with 1 if a case failed, and prints the command of each that did.
"""

import array
import glob
import os
import random
import shutil
import struct
import subprocess
import sys
import time

TYPES = {"u32": ("I", "u4"), "i32": ("i", "i4"), "u64": ("Q", "u8"), "i64": ("q", "i8"), "f32": ("f", "f4"), "f64": ("d", "f8")}
KINDS = {
    "type": list(TYPES), "ranks": [1, 2, 3, 5, 7, 8], "inputs": [1, 1, 2, 5], "pattern": [False, True], "reverse": [False, True],
    "memory": [None, 0.4, 0.8, 1.6], "direct": ["auto", "on", "off"], "reread": [False, True], "checkpoint": [False, True],
}
LEAST_MEMORY = 700000  # of the host engine, of one thread, for slots of the keys drawn here


def draw_case(draw, number):
    """A value of each kind: in turn first, then any."""
    return {kind: values[number % len(values)] if number < max(map(len, KINDS.values())) else draw.choice(values)
            for kind, values in KINDS.items()}


def draw_keys(draw, kind):
    code = TYPES[kind][0]
    count = draw.choice([0, 1, 7, 1000, 120000, draw.randrange(200000)])
    few = draw.random() < 0.3
    if kind[0] == "f":
        values = [float(draw.randrange(3)) if few else draw.gauss(0, 1e3) for _ in range(count)]
    else:
        bits = 8 * struct.calcsize(code)
        least = -(1 << (bits - 1)) if kind[0] == "i" else 0
        values = [draw.randrange(5) if few else draw.randrange(1 << bits) + least for _ in range(count)]
    return array.array(code, values)


def npy_header(kind, count, is_big, more):
    text = f"{{'descr': '{'>' if is_big else '<'}{TYPES[kind][1]}', 'fortran_order': False, 'shape': ({count},), }}"
    text += " " * ((-11 - len(text)) % 64 + more) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def write_input(draw, kind, number, keys):
    form = draw.choice(["raw", "npy", "swapped"])
    name = f"in{number}.{'raw' if form == 'raw' else 'npy'}"
    data = array.array(keys.typecode, keys)
    if form == "swapped":
        data.byteswap()
    with open(name, "wb") as file:
        if form != "raw":
            file.write(npy_header(kind, len(keys), form == "swapped", draw.choice([0, 0, draw.randrange(9)])))
        file.write(data.tobytes())
    return name


def command_of(case, names, output, keys, width):
    words = ["sort", *names, "-o", output, "--type", case["type"], "--engine", "host", "--threads", "1", "--direct-io", case["direct"]]
    words += ["-r"] if case["reverse"] else []
    words += ["--verify=reread"] if case["reread"] else []
    words += ["--checkpoint", "kept"] if case["checkpoint"] and not case["pattern"] else []
    if case["memory"]:
        words += ["--device-memory", str(max(int(keys * width / case["ranks"] * case["memory"]), LEAST_MEMORY))]
    return words


def read_output(case, output):
    names = [output.replace("%r", str(rank)) for rank in range(case["ranks"])] if case["pattern"] else [output]
    data = b""
    for name in names:
        with open(name, "rb") as file:
            data += file.read()[128 if name.endswith(".npy") else 0:]
        os.remove(name)
    return data


def run_case(draw, case, program):
    keys = array.array(TYPES[case["type"]][0])
    names = []
    for number in range(case["inputs"]):
        part = draw_keys(draw, case["type"])
        names.append(write_input(draw, case["type"], number, part))
        keys.extend(part)
    output = "out.%r.raw" if case["pattern"] else draw.choice(["out.raw", "out.npy"])
    launch = [word if word != "RANKS" else str(case["ranks"]) for word in program]
    command = launch + command_of(case, names, output, len(keys), keys.itemsize)
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    wanted = array.array(keys.typecode, sorted(keys, reverse=case["reverse"])).tobytes()
    why = ended.stderr.strip() if ended.returncode else ""
    if not why and read_output(case, output) != wanted:
        why = "the output is another one"
    for name in names:
        os.remove(name)
    shutil.rmtree("kept", ignore_errors=True)
    if not why and glob.glob("*"):
        why = "left: " + " ".join(glob.glob("*"))
    if why:
        print(f"failed: {' '.join(command)}\n    exit code {ended.returncode}: {why}")
    return not why


def main():
    seed, seconds = int(sys.argv[1]), float(sys.argv[2])
    program = sys.argv[4:] + [sys.argv[3]]
    draw, begin, cases, failures = random.Random(seed), time.monotonic(), 0, 0
    while cases < max(map(len, KINDS.values())) or time.monotonic() - begin < seconds:
        failures += not run_case(draw, draw_case(draw, cases), program)
        cases += 1
    print(f"seed {seed}: {cases} cases, {failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
