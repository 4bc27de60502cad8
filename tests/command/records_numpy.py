#!/usr/bin/env python3
"""Sorts of records, indices and values of the command against NumPy: records_numpy.py SEED CASES HYPERSORT MPIRUN...

Drawn are dtypes (padding, structures, arrays, strings, both byte orders), keys, inputs, ranks, and what is written beside the
output. Keys have no NaN and no -0.0, of which NumPy thinks otherwise. Every output is compared byte for byte, its header
field for field. Runs in an empty directory; exits with 1 if a case failed, and prints the command of each that did.
"""

import os
import subprocess
import sys

import numpy as np

KEYS = ["<u4", ">u4", "<i4", ">i4", "<u8", ">u8", "<i8", ">i8", "<f4", ">f4", "<f8", ">f8", "|u1", "|b1", ">u2", "<u2", "|i1", "<i2", ">i2",
        "<f2", ">f2", "<M8[ns]", "<m8[us]",
        "S1", "S5", "S16", "V1", "V3", "V16"]
OTHERS = ["<c8", "<c16", np.dtype(np.clongdouble).str, "<U3", "V7", "S20"]
RANKS = [1, 2, 3, 5]


def draw_values(rng, dtype, count):
    """Few values, so that many are equal."""
    if dtype.kind in "SV":
        names = [rng.integers(0, 256, dtype.itemsize, dtype=np.uint8).tobytes() for _ in range(4)]
        return np.frombuffer(b"".join(names[i] for i in rng.integers(0, 4, count)), dtype)
    if dtype.kind in "Mm":
        return rng.integers(-3, 3, count).astype("<i8").view(dtype)
    if dtype.kind == "f":
        return rng.choice(np.array([-np.inf, -2.5, 0, 1, 1e30 if dtype.itemsize > 2 else 6e4, np.inf]), count).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(dtype)
    least = -2 if dtype.kind == "i" else 0
    return (rng.integers(least, 3, count) * (1 if dtype.itemsize < 4 else 1 << 8 * dtype.itemsize - 3)).astype(dtype)


def draw_dtype(rng):
    """A structure, and the names of fields in it that can be keys with their dtypes."""
    fields, keys = [], []
    for number in range(int(rng.integers(1, 6))):
        kind, name = str(rng.choice(KEYS)), f"f{number}"
        draw = rng.random()
        if draw < 0.2:
            fields.append((name, str(rng.choice(OTHERS))))
        elif draw < 0.35:
            fields.append((name, kind, (2, 3)))
            keys.append((f"{name}[{rng.integers(2)}][{rng.integers(3)}]", kind))
        elif draw < 0.5:
            fields.append((name, np.dtype([("x", kind), ("y.z", "<f4"), ("w", "u1", (2,))], align=rng.random() < 0.5)))
            keys += [(f"{name}.x", kind), (f"{name}.y.z", "<f4"), (f"{name}.w[1]", "u1")]
        else:
            fields.append((name, kind))
            keys.append((name, kind))
    if not keys:
        fields.append(("k", "<u4"))
        keys.append(("k", "<u4"))
    return np.dtype(fields, align=rng.random() < 0.5), keys


def field_of(array, name):
    """array[name], with a.b and a[1]."""
    for part in name.replace("y.z", "y:z").split("."):
        part, *places = part.replace("]", "").split("[")
        array = array[part.replace(":", ".")]
        for place in places:
            array = array[:, int(place)]
    return array


def codes_of(values, descends):
    """Numbers that order as the values do."""
    if values.dtype.kind in "SV":
        texts = [value.tobytes() for value in np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)]
        place = {text: i for i, text in enumerate(sorted(set(texts)))}
        codes = np.array([place[text] for text in texts], np.int64)
    else:
        codes = np.unique(values, return_inverse=True)[1].reshape(-1)
    return -codes if descends else codes


def rows_of(array):
    """The bytes of each element."""
    return np.frombuffer(array.tobytes(), np.uint8).reshape(len(array), -1 if len(array) else 1)


def read_file(path):
    """dtype, shape, bytes behind the header; of several files behind each other."""
    with open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        assert not fortran
        return dtype, shape, file.read()


class Case:
    """One command; what it writes is removed when it is compared."""

    def __init__(self, program, ranks):
        self.launch = [word if word != "RANKS" else str(ranks) for word in program]
        self.ranks, self.words, self.why = ranks, [], []

    def run(self, *words):
        self.words = [str(word) for word in words]
        ended = subprocess.run(self.launch + self.words, capture_output=True, text=True, timeout=300, check=False)
        if ended.returncode or ended.stderr:
            self.why.append(f"exit code {ended.returncode}: {ended.stderr.strip()}")

    def expect(self, path, dtype, shape, data):
        """The output is this; with %r in its name, that of all ranks behind each other."""
        if self.why:
            return
        paths = [path.replace("%r", str(rank)) for rank in range(self.ranks)] if "%r" in path else [path]
        found, count = b"", 0
        for name in paths:
            if name.endswith(".npy"):
                found_dtype, found_shape, more = read_file(name)
                if found_dtype != dtype or found_shape[1:] != shape[1:]:
                    self.why.append(f"{name}: {found_dtype} {found_shape}, not {dtype} {shape}")
                count += found_shape[0]
            else:
                with open(name, "rb") as file:
                    more = file.read()
            found += more
            os.remove(name)
        if found != data or (path.endswith(".npy") and count != shape[0]):
            self.why.append(f"{path}: other bytes")

    def passed(self):
        for name in os.listdir("."):
            os.remove(name)
        if self.why:
            print(f"failed: {' '.join(self.launch + self.words)}\n    " + "; ".join(self.why))
        return not self.why


def save_parts(rng, array, name):
    """The array in one file or several. Returns their names."""
    parts = int(rng.choice([1, 1, 3]))
    cuts = np.sort(rng.integers(0, len(array) + 1, parts - 1))
    names = [f"{name}{i}.npy" for i in range(parts)]
    for path, part in zip(names, np.split(array, cuts)):
        np.save(path, part)
    return names


def draw_count(rng):
    return int(rng.choice([0, 1, 2, 700, int(rng.integers(3000))]))


def draw_values_file(rng, count):
    """An array that travels: any dtype and shape. Returns it, file and options."""
    shape = (count,) + [(), (3,), (2, 2)][rng.integers(3)]
    dtype = np.dtype(str(rng.choice(["<u8", ">f4", "S3", "<U2", "<c8", "|b1"])))
    values = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    if dtype.kind == "U" or rng.random() < 0.3:  # bytes that are no text
        values = np.zeros(shape, dtype)
    if rng.random() < 0.3 and values.size:
        values.tofile("v.raw")
        return values, "v.raw", ["--value-bytes", values.nbytes // count]
    np.save("v.npy", values)
    return values, "v.npy", []


def sort_case(rng, case, names, elements, dtype, order, key_words):
    """sort with what may be written beside the output."""
    shape, rows = elements.shape, rows_of(elements)
    words, index = ["sort", *names, *key_words], f"i{rng.choice(['', '.%r'])}.npy"
    output = str(rng.choice(["out.npy", "out.%r.npy", "out.raw"]))
    wants = [rng.random() < 0.8, rng.random() < 0.5, rng.random() < 0.4]
    wants[0] = wants[0] or not (wants[1] or wants[2])
    if len(key_words) == 0:
        wants[1] = wants[1] or not wants[2]
    words += ["-o", output] if wants[0] else []
    words += ["--index", index] if wants[1] else []
    words += [[], ["--verify=reread"], ["--no-verify"]][rng.integers(3)]
    words += ["--direct-io", str(rng.choice(["auto", "on", "off"])), "--threads", int(rng.integers(1, 4))]
    values, values_out = None, "vo.npy"
    if wants[2]:
        values, path, more = draw_values_file(rng, len(elements))
        values_out = "vo.npy" if path.endswith(".npy") else "vo.raw"
        words += ["--values", path, "-O", values_out, *more]
    case.run(*words)
    if wants[0]:
        case.expect(output, dtype, shape, rows[order].tobytes())
    if wants[1]:
        case.expect(index, np.dtype("<i8"), (len(order),), order.astype("<i8").tobytes())
    if wants[2]:
        case.expect(values_out, values.dtype, values.shape, rows_of(values)[order].tobytes() if len(order) else b"")


def structured_case(rng, case):
    dtype, fields = draw_dtype(rng)
    count = draw_count(rng)
    raw = rng.integers(0, 256, (count, dtype.itemsize), dtype=np.uint8)  # padding, too
    array = raw.view(dtype).reshape(count)
    chosen, total = [], 0
    for i in rng.permutation(len(fields)):
        size = np.dtype(fields[i][1]).itemsize
        if len(chosen) < 8 and total + size <= 16:
            chosen.append(fields[i])
            total += size
    codes, words = [], []
    for name, kind in chosen:
        descends = rng.random() < 0.4
        field_of(array, name)[:] = draw_values(rng, np.dtype(kind), count)
        codes.append(codes_of(field_of(array, name), descends))
        words.append(name + (":desc" if descends else ""))
    order = np.lexsort(codes[::-1]) if count else np.zeros(0, np.int64)
    sort_case(rng, case, save_parts(rng, array, "in"), array, dtype, order, ["--key", ",".join(words)])


def columns_case(rng, case):
    dtype = np.dtype(str(rng.choice(["<f4", ">i8", "<u4", "S3", ">f8"])))
    columns = int(rng.integers(1, 5))
    count = draw_count(rng)
    array = np.array(draw_values(rng, dtype, count * columns)).reshape(count, columns)
    chosen = [int(rng.integers(columns))] + ([0] if dtype.itemsize * 2 <= 16 else [])
    codes = [codes_of(array[:, column], column == 0) for column in chosen]
    words = ",".join(f"{column}{':desc' if column == 0 else ''}" for column in chosen)
    order = np.lexsort(codes[::-1]) if count else np.zeros(0, np.int64)
    sort_case(rng, case, save_parts(rng, array, "in"), array, dtype, order, ["--key", words])


def keys_case(rng, case):
    """Bare keys, which come out little-endian."""
    dtype = np.dtype(str(rng.choice(["<u4", ">u4", "<i8", ">i8", "<f8", ">f4", "|u1", "|i1", "<u2", ">i2", "<f2", ">f2"])))
    keys = np.array(draw_values(rng, dtype, draw_count(rng)))
    names = save_parts(rng, keys, "in")
    little = keys.astype(dtype.newbyteorder("<"))
    descends = rng.random() < 0.4
    order = np.argsort(codes_of(keys, descends), kind="stable") if len(keys) else np.zeros(0, np.int64)
    sort_case(rng, case, names, little, little.dtype, order, ["-r"] if descends else [])


def raw_case(rng, case):
    """Raw records, of which one word says type, place and order."""
    count, width = draw_count(rng), int(rng.integers(12, 41))
    rows = rng.integers(0, 256, (count, width), dtype=np.uint8)
    types = {"u32": "<u4", "i32": "<i4", "f32": "<f4", "u64": "<u8", "i64": "<i8", "f64": "<f8", "bytes3": "V3", "bytes12": "V12",
             "u32>": ">u4", "f64>": ">f8", "i64>": ">i8", "u8": "|u1", "i8": "|i1", "u16": "<u2", "i16>": ">i2", "f16": "<f2",
             "f16>": ">f2"}
    name = str(rng.choice(list(types)))
    dtype = np.dtype(types[name])
    place = int(rng.integers(width - dtype.itemsize + 1))
    values = np.ascontiguousarray(draw_values(rng, dtype, count))
    rows[:, place:place + dtype.itemsize] = values.view(np.uint8).reshape(count, dtype.itemsize)
    descends = rng.random() < 0.4
    order = np.argsort(codes_of(values, descends), kind="stable") if count else np.zeros(0, np.int64)
    half = count // 2
    rows[:half].tofile("a.bin")
    rows[half:].tofile("b.bin")
    key = f"@{place}:{name}{':desc' if descends else ''}"
    case.run("sort", "a.bin", "b.bin", "-o", "out.bin", "--record", width, "--key", key, "--index", "i.npy")
    case.expect("out.bin", None, None, rows[order].tobytes())
    case.expect("i.npy", np.dtype("<i8"), (count,), order.astype("<i8").tobytes())


def gather_case(rng, case):
    values, path, more = draw_values_file(rng, int(rng.integers(1, 2000)))
    index = rng.integers(0, len(values), draw_count(rng)).astype(str(rng.choice(["<i8", "<u8", ">i8"])))
    np.save("i.npy", index)
    more = ["--record", *more[1:]] if more else []
    out = "g.npy" if path.endswith(".npy") else "g.raw"
    more += [[], ["--verify=reread"], ["--no-verify"]][rng.integers(3)]
    more += [[], ["-S", "1"], ["-S", "300K"]][rng.integers(3)]  # with little memory it goes by parts
    case.run("gather", path, "--by", "i.npy", "-o", out, *more)
    shape = (len(index),) + values.shape[1:]
    case.expect(out, values.dtype, shape, rows_of(values)[index.astype(np.int64)].tobytes())


def main():
    seed, cases = int(sys.argv[1]), int(sys.argv[2])
    program = sys.argv[4:] + [sys.argv[3]]
    rng, failures = np.random.default_rng(seed), 0
    kinds = [structured_case, keys_case, structured_case, columns_case, structured_case, raw_case, gather_case]
    for number in range(cases):
        case = Case(program, RANKS[number % len(RANKS)])
        kinds[number % len(kinds)](rng, case)
        failures += not case.passed()
    print(f"seed {seed}: {cases} cases, {failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
