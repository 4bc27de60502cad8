"""Files of NumPy through the command, and the command's files through NumPy.

usage: npy_numpy.py, in an empty folder; $HYPERSORT and $MPIRUN as tests/CMakeLists.txt sets them,
$HYPERSORT_SEED to repeat a run.
"""

import os
import subprocess
import sys
import time
import warnings

import numpy as np

RANKS = 3
TYPES = {"u4": "u32", "i4": "i32", "f4": "f32", "u8": "u64", "i8": "i64", "f8": "f64", "u1": "u8", "i1": "i8", "u2": "u16", "i2": "i16",
         "f2": "f16"}
BAD_INPUT = 2

failures = 0


def check(condition, text):
    global failures
    if not condition:
        failures += 1
        if failures <= 20:
            print("failed:", text.strip())


def hypersort(*arguments):
    launch = [*os.environ["MPIRUN"].split(), "--quiet", "-n", str(RANKS)]
    command = [*launch, os.environ["HYPERSORT"], *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def random_keys(rng, dtype, count):
    """Uniform bit patterns: floats among them are NaNs, infinities and denormals too; some keys repeated."""
    keys = rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)
    if dtype.kind == "f" and count > 20:
        keys[:5] = np.array([np.nan, -np.nan, np.inf, -0.0, 0.0], dtype)
    keys[count // 2 :] = keys[: count - count // 2]
    return keys


def reference(keys, reverse):
    """What NumPy makes of the keys; NaN last in both directions."""
    ordered = np.sort(keys)
    if reverse:
        numbers = int((ordered == ordered).sum())  # a NaN is not equal to itself
        ordered[:numbers] = ordered[:numbers][::-1].copy()
    return ordered


def bits(keys):
    """The multiset of bit patterns: NaN payloads and the signs of zeros must come back too."""
    return np.sort(keys.view("u%d" % keys.dtype.itemsize))


def check_sorted(what, source, result, reverse=False):
    keys = source.astype(source.dtype.newbyteorder("<"))
    is_float = keys.dtype.kind == "f"
    check(result.dtype == keys.dtype and result.shape == keys.shape, f"{what}: {result.dtype} {result.shape}")
    check(np.array_equal(result, reference(keys, reverse), equal_nan=is_float), f"{what}: order")
    check(np.array_equal(bits(result), bits(keys)), f"{what}: other keys")


def check_header(what, path, result):
    """The header must be the one NumPy writes, byte for byte."""
    np.save("saved.npy", np.zeros(result.shape, result.dtype))
    with open(path, "rb") as ours, open("saved.npy", "rb") as theirs:
        check(ours.read(128) == theirs.read(128), f"{what}: header differs from numpy.save's")


def accept(what, path, keys, reverse=False):
    run = hypersort("sort", path, "-o", "out.npy", *(["-r"] if reverse else []))
    check(run.returncode == 0, f"{what}: exit code {run.returncode}: {run.stderr}")
    if run.returncode == 0:
        result = np.load("out.npy")
        check_sorted(what, keys, result, reverse)
        check_header(what, "out.npy", result)
        os.remove("out.npy")


def refuse(what, path, word, *options, command="sort"):
    """Exit code 2, one line that names file and cause, nothing left behind."""
    before = sorted(os.listdir())
    run = hypersort(command, path, *(["-o", "out.npy"] if command == "sort" else []), *options)
    check(run.returncode == BAD_INPUT, f"{what}: exit code {run.returncode}: {run.stderr}")
    lines = [line for line in run.stderr.splitlines() if path in line]
    check(len(lines) == 1 and word in lines[0], f"{what}: '{word}' is not in: {run.stderr}")
    check(sorted(os.listdir()) == before, f"{what}: files were left: {os.listdir()}")


def test_good_files(rng):
    for code in TYPES:
        for order in "<>":
            for version in (1, 0), (2, 0), (3, 0):
                what = f"{order}{code} version {version[0]}"
                keys = random_keys(rng, np.dtype(order + code), int(rng.integers(30, 5000)))
                with open("in.npy", "wb") as file, warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that old readers know version 1.0 only
                    np.lib.format.write_array(file, keys, version=version)
                accept(what, "in.npy", keys, reverse=version == (3, 0))


def test_borders(rng):
    for count in 0, 1, RANKS - 1:
        keys = random_keys(rng, np.dtype("<f8"), count)
        np.save("in.npy", keys)
        accept(f"{count} keys", "in.npy", keys)

    keys = random_keys(rng, np.dtype("<u4"), 1000)
    with open("in.npy", "wb") as file:
        header = {"descr": "<u4", "fortran_order": True, "shape": (1000,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(keys.tobytes())
    accept("Fortran order of one dimension", "in.npy", keys)

    mapped = np.lib.format.open_memmap("in.npy", mode="w+", dtype="<i8", shape=(12345,))
    mapped[:] = random_keys(rng, np.dtype("<i8"), 12345)
    mapped.flush()
    accept("memmap", "in.npy", np.array(mapped))


def test_raw(rng):
    for code, name in TYPES.items():
        keys = random_keys(rng, np.dtype("<" + code), 3000)
        keys.tofile("in.bin")
        run = hypersort("sort", "in.bin", "-o", "out.bin", "--type", name)
        check(run.returncode == 0, f"raw {name}: exit code {run.returncode}: {run.stderr}")
        if run.returncode == 0:
            check_sorted(f"raw {name}", keys, np.fromfile("out.bin", "<" + code))
    os.remove("in.bin")


def test_check(rng):
    # Integers: zeros of both signs, and NaNs of both, are equal to NumPy, but have an order for `check`.
    keys = random_keys(rng, np.dtype(">i4"), 4000)
    np.save("sorted.npy", reference(keys, False))
    np.save("unsorted.npy", keys)
    np.save("other.npy", reference(keys, False)[1:])
    for arguments, code in (
        (["sorted.npy"], 0),
        (["sorted.npy", "--against", "unsorted.npy"], 0),
        (["unsorted.npy"], 1),
        (["sorted.npy", "-r"], 1),
        (["sorted.npy", "--against", "other.npy"], 1),
    ):
        run = hypersort("check", *arguments)
        check(run.returncode == code, f"check {arguments}: exit code {run.returncode}: {run.stderr}")


def test_bad_files():
    keys = np.arange(12, dtype="<f8")
    for what, array, word in (
        ("0-D", np.array(5.0), "0 dimensions"),
        ("2-D", keys.reshape(3, 4), "2 dimensions"),
        ("2-D with one column", keys.reshape(12, 1), "2 dimensions"),
        ("Fortran 2-D", np.asfortranarray(keys.reshape(3, 4)), "2 dimensions"),
        ("3-D", keys.reshape(3, 2, 2), "3 dimensions"),
        ("structured", np.zeros(4, [("x", "<f8"), ("y", "<u4")]), "structured"),
        ("structured with one field", np.zeros(4, [("x", "<f8")]), "structured"),
        ("structured, UTF-8", np.zeros(4, [("\N{GREEK SMALL LETTER ALPHA}\u4e2d", "<f8")]), "structured"),
        ("bool", np.zeros(4, bool), "|b1"),
        ("long double", np.zeros(4, np.longdouble), "f16"),
        ("complex", np.zeros(4, "<c8"), "<c8"),
        ("date", np.zeros(4, "<M8[ns]"), "<M8[ns]"),
        ("text", np.array(["ab", "cd"]), "<U2"),
        ("bytes", np.array([b"abcd", b"efgh"]), "|S4"),
        ("void", np.zeros(4, "V8"), "|V8"),
        ("object", np.array([1, None]), "|O"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.save("bad.npy", array)
        refuse(what, "bad.npy", word)

    np.savez("archive.npz", keys)
    os.rename("archive.npz", "bad.npy")
    refuse("an archive", "bad.npy", "not a .npy file")
    np.savetxt("bad.npy", keys)
    refuse("text of numbers", "bad.npy", "not a .npy file")
    np.save("bad.npy", keys)
    refuse("another --type", "bad.npy", "f64", "--type", "u64")
    for what, size, word in (
        ("empty", 0, "empty"),
        ("header cut off", 100, "cut off"),
        ("keys cut off", 128 + 11 * 8, "disagree"),
        ("keys too many", 128 + 13 * 8, "disagree"),
    ):
        np.save("bad.npy", keys)
        os.truncate("bad.npy", size)
        refuse(what, "bad.npy", word)
        refuse(what, "bad.npy", word, command="check")


def test_names(rng):
    """A name in Latin-1 (1.0, 2.0) and in UTF-8 (3.0) is one name, and comes back."""
    for names in ("\u00e9", "\u00b5m"), ("\u4e2d", "\u03b1"):
        records = np.zeros(60, [(names[0], "<u4"), (names[1], "<f8")])
        records[names[0]] = rng.integers(0, 50, 60)
        records[names[1]] = rng.random(60)
        parts = np.split(records, 3)
        versions = [(1, 0), (3, 0), (2, 0)] if names[0] == "\u00e9" else [(3, 0)] * 3
        for i, (part, version) in enumerate(zip(parts, versions)):
            with open(f"part{i}.npy", "wb") as file, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                np.lib.format.write_array(file, part, version=version)
        for files in ["part0.npy"], ["part0.npy", "part1.npy", "part2.npy"], ["part1.npy", "part0.npy"]:
            run = hypersort("sort", *files, "-o", "out.npy", "--key", names[0])
            check(run.returncode == 0, f"{names} of {files}: exit code {run.returncode}: {run.stderr}")
            wanted = np.concatenate([np.load(name) for name in files])
            if run.returncode == 0:
                wanted = wanted[np.argsort(wanted[names[0]], kind="stable")]
                result = np.load("out.npy")
                check(result.dtype == wanted.dtype and (result == wanted).all(), f"{names} of {files}: {result.dtype}")
                os.remove("out.npy")
        refuse(f"no such field beside {names}", "part0.npy", f"its fields are {names[0]}, {names[1]}", "--key", "x")


def test_many_fields(rng):
    """Headers of more than 64 KiB, which NumPy writes in version 2.0, or in 3.0 with names beyond ASCII."""
    for name in "f", "\u4e2d":
        fields = int(rng.integers(4500, 6000))
        records = np.zeros(50, [(f"{name}{i}", "<u2") for i in range(fields)])
        key = f"{name}{int(rng.integers(fields))}"
        records[key] = rng.permutation(50)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.save("many.npy", records)
        with open("many.npy", "rb") as file:
            head = file.read(12)
        check(head[6] == (2 if name == "f" else 3) and int.from_bytes(head[8:], "little") > 65535, f"{name}: {head}")
        run = hypersort("sort", "many.npy", "-o", "out.npy", "--key", key)
        check(run.returncode == 0, f"{fields} fields {name}: exit code {run.returncode}: {run.stderr}")
        if run.returncode == 0:
            result = np.load("out.npy", max_header_size=1 << 24)
            check(result.dtype == records.dtype and (result == records[np.argsort(records[key])]).all(), f"{fields} fields {name}")
            os.remove("out.npy")
    with open("long.npy", "wb") as file:
        file.write(b"\x93NUMPY\2\0" + ((1 << 24) + 1).to_bytes(4, "little"))
    refuse("a header beyond 16 MiB", "long.npy", "claims 16777217 bytes")


def main():
    given = os.environ.get("HYPERSORT_SEED")
    seed = int(given, 0) if given else time.time_ns()
    print("seed", seed, "numpy", np.__version__)
    rng = np.random.default_rng(seed)
    test_good_files(rng)
    test_borders(rng)
    test_raw(rng)
    test_check(rng)
    test_bad_files()
    test_names(rng)
    test_many_fields(rng)
    if failures:
        print(failures, "failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
