#!/usr/bin/env python3
"""_abi.py against the headers: python_abi.py FOLDER-OF-HEADERS COMPILER...

Lists and functions are read from the headers' text; sizes and offsets of the structs are printed by a C program.
"""

import ctypes
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import hypersort
from hypersort import _abi

LISTS = {"TYPE": _abi.TYPES, "ENGINE": _abi.ENGINES, "EXCHANGE": _abi.EXCHANGES, "TRANSPORT": _abi.TRANSPORTS,
         "BINDING": _abi.BINDINGS, "CHOICE": _abi.CHOICES, "PHASE": _abi.PHASES}  # fmt: skip
CONSTANTS = {"HSORT_PHASES_MAX": _abi.PHASES_MAX, "HSORT_TRANSPORTS_MAX": _abi.TRANSPORTS_MAX,
             "HSORT_FIELDS_MAX": _abi.FIELDS_MAX}  # fmt: skip
NUMBERS = {"int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t, "void": None}  # all others are an int or an enum


def list_of(text, name):
    """The entries of an X-macro list."""
    body = re.search(rf"#define HSORT_{name}_LIST\(X\)(.*?)\n\n", text, re.DOTALL)[1]
    return re.findall(r'X\((\w+), (?:"(\w+)")?', body)


def c_type(text):
    """What ctypes is to have for a declaration: "pointer", or a number."""
    if "*" in text:
        return "pointer"
    word = [word for word in re.findall(r"\w+", text) if word != "const"][0]
    return NUMBERS.get(word, ctypes.c_int)


def is_like(ours, theirs):
    """Whether a type of ctypes passes what the header declares."""
    if theirs == "pointer":
        return ours in (ctypes.c_void_p, ctypes.c_char_p) or issubclass(ours, ctypes._Pointer)
    return ours is theirs


def wrong_functions(text):
    """The functions that are declared otherwise."""
    text = re.sub(r"/\*.*?\*/|//.*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    declared = {name: (result + star, words.split(",")) for result, star, name, words in
                re.findall(r"HSORT_API ([\w ]+?)\s+(\*?)(\w+)\(([^;]*)\);", text)}  # fmt: skip
    for name, (result, arguments) in _abi.FUNCTIONS.items():
        theirs, words = declared[name]
        words = [] if [word.strip() for word in words] == ["void"] else words
        if not is_like(result, c_type(theirs)) or len(words) != len(arguments):
            yield name
        elif not all(is_like(ours, c_type(word)) for ours, word in zip(arguments, words)):
            yield name


def layout_program():
    """C that prints each struct's size, and its members' offsets and sizes."""
    lines = ["#include <hypersort.h>", "#include <stdio.h>", "int main(void) {"]
    for name, struct in _abi.STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for member, *_ in struct._fields_:
            lines.append(
                f'printf("{name}.{member} %zu %zu\\n", offsetof({name}, {member}), sizeof((({name} *)0)->{member}));'
            )
    lines += [f'printf("{name} %d\\n", {name});' for name in CONSTANTS]
    return "\n".join([*lines, "}", ""])


def our_layout():
    for name, struct in _abi.STRUCTS.items():
        yield f"{name} {ctypes.sizeof(struct)}"
        for member, *_ in struct._fields_:
            place = getattr(struct, member)
            yield f"{name}.{member} {place.offset} {place.size}"
    yield from (f"{name} {value}" for name, value in CONSTANTS.items())


def run_program(headers, compiler):
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "layout.c", Path(folder) / "layout"
        source.write_text(layout_program())
        subprocess.run([*compiler, f"-I{headers}", str(source), "-o", str(program)], check=True)
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()


def main():
    headers, compiler = Path(sys.argv[1]), sys.argv[2:]
    text = "".join((headers / name).read_text() for name in ("hypersort_types.h", "hypersort.h"))
    wrong = [name for name, ours in LISTS.items() if [short for _, short in list_of(text, name)] != ours]
    statuses = [name.replace("HSORT_", "") for name, _ in list_of(text, "STATUS")]
    if statuses != [status.name for status in hypersort.Status]:
        wrong.append("STATUS")
    wrong += wrong_functions(text)
    theirs, ours = run_program(headers, compiler), list(our_layout())
    wrong += [f"{a}, here {b}" for a, b in zip(theirs, ours) if a != b]
    if hypersort.__version__ != ".".join(re.findall(r"#define HSORT_VERSION_\w+ (\d+)", text)):
        wrong.append(f"version {hypersort.__version__}")
    for line in wrong:
        print(f"failed: not as the header has it: {line}")
    print(f"{len(LISTS) + 1} lists, {len(_abi.FUNCTIONS)} functions, {len(ours)} sizes, {len(wrong)} failures")
    sys.exit(bool(wrong) or len(theirs) != len(ours))


if __name__ == "__main__":
    main()
