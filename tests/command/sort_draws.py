#!/usr/bin/env python3
"""Sorts of files with options drawn at random, against Python's own sort: sort_draws.py SEED SECONDS HYPERSORT MPIRUN...

Drawn are type, order, number of ranks; one input or several, raw, .npy, big-endian .npy, with headers of odd lengths, empty
ones; in the page cache or, as far as that can be, on disk alone; one output or one per rank; one pass or two; direct I/O or
not; verified as keys pass or read back; with a checkpoint or without. Each kind of what is drawn comes at least once in the
first cases. Every output is compared byte for byte, and nothing else may be left. Runs in an empty directory. Exits with 1
if a case failed, and prints the command of each that did.
"""

import glob
import os
import random
import shutil
import struct
import subprocess
import sys
import time

# What struct calls them, what .npy calls them, and their bytes; None: they have no such name.
TYPES = {"u32": ("I", "u4", 4), "i32": ("i", "i4", 4), "u64": ("Q", "u8", 8), "i64": ("q", "i8", 8), "f32": ("f", "f4", 4),
         "f64": ("d", "f8", 8), "u128": (None, None, 16), "u8": ("B", "u1", 1), "i8": ("b", "i1", 1), "u16": ("H", "u2", 2),
         "i16": ("h", "i2", 2), "f16": ("e", "f2", 2), "bf16": (None, None, 2)}
KINDS = {
    "type": list(TYPES), "ranks": [1, 2, 3, 5, 7, 8], "inputs": [1, 1, 2, 5], "pattern": [False, True], "reverse": [False, True],
    "memory": [None, 0.4, 0.8, 1.6], "direct": ["auto", "on", "off"], "reread": [False, True], "checkpoint": [False, True],
    "cold": [False, True],
}
LEAST_MEMORY = 700000  # of the host engine, of one thread, for slots of the keys drawn here


def draw_case(draw, number):
    """A value of each kind: in turn first, then any."""
    return {kind: values[number % len(values)] if number < max(map(len, KINDS.values())) else draw.choice(values)
            for kind, values in KINDS.items()}


def draw_float(draw, kind):
    """One that the type holds exactly."""
    if kind not in ("f16", "bf16"):
        return draw.gauss(0, 1e3) if kind == "f64" else struct.unpack("f", struct.pack("f", draw.gauss(0, 1e3)))[0]
    mantissa = 1024 if kind == "f16" else 128
    return draw.choice([-1, 1]) * draw.randrange(mantissa, 2 * mantissa) * 2.0 ** draw.randrange(-20, 5)


def draw_keys(draw, kind):
    count = draw.choice([0, 1, 7, 1000, 120000, draw.randrange(200000)])
    few = draw.random() < 0.3
    if "f" in kind:
        return [float(draw.randrange(3)) if few else draw_float(draw, kind) for _ in range(count)]
    bits = 8 * TYPES[kind][2]
    least = -(1 << (bits - 1)) if kind[0] == "i" else 0
    return [draw.randrange(5) if few else draw.randrange(1 << bits) + least for _ in range(count)]


def pack(kind, keys, is_big=False):
    """Their bytes in a file."""
    code, _, width = TYPES[kind]
    if code:
        return struct.pack(f"{'>' if is_big else '<'}{len(keys)}{code}", *keys)
    if kind == "u128":
        return b"".join(key.to_bytes(width, "little") for key in keys)
    singles, halves = struct.pack(f"<{len(keys)}f", *keys), bytearray(width * len(keys))
    halves[0::2], halves[1::2] = singles[2::4], singles[3::4]
    return bytes(halves)


def npy_header(kind, count, is_big, more):
    text = f"{{'descr': '{'>' if is_big else '<'}{TYPES[kind][1]}', 'fortran_order': False, 'shape': ({count},), }}"
    text += " " * ((-11 - len(text)) % 64 + more) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def write_input(draw, kind, number, keys, is_cold):
    form = draw.choice(["raw", "npy", "swapped"]) if TYPES[kind][1] else "raw"
    name = f"in{number}.{'raw' if form == 'raw' else 'npy'}"
    with open(name, "wb") as file:
        if form != "raw":
            file.write(npy_header(kind, len(keys), form == "swapped", draw.choice([0, 0, draw.randrange(9)])))
        file.write(pack(kind, keys, form == "swapped"))
        if is_cold:
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
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
    keys, names, kind = [], [], case["type"]
    for number in range(case["inputs"]):
        part = draw_keys(draw, kind)
        names.append(write_input(draw, kind, number, part, case["cold"]))
        keys.extend(part)
    output = "out.%r.raw" if case["pattern"] else draw.choice(["out.raw", "out.npy"]) if TYPES[kind][1] else "out.raw"
    launch = [word if word != "RANKS" else str(case["ranks"]) for word in program]
    command = launch + command_of(case, names, output, len(keys), TYPES[kind][2])
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    wanted = pack(kind, sorted(keys, reverse=case["reverse"]))
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
