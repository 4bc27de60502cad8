#!/usr/bin/env python3
"""Sorts of HDF5 by the command against NumPy: hdf5_numpy.py SEED CASES HYPERSORT MPIRUN...

Drawn are groups of datasets, with groups in them, and datasets alone: types (both byte orders, structures, strings, enumerations,
opaque and odd ones), shapes, chunks, filters, attributes; links that lead to groups again, also to those around them; one file or
several; keys, ranks, and what is in the output's file before. All is read back by h5py and compared byte for byte with NumPy's stable
order. Runs in an empty directory; exits with 1 if a case failed.
"""

import os
import subprocess
import sys

import h5py
import numpy as np
from numpy.lib import recfunctions
from records_numpy import codes_of, draw_values

RANKS = [1, 2, 3, 5, 7]
NUMBERS = ["<u4", ">u4", "<i4", "<u8", ">u8", ">i8", "<i8", "<f4", ">f4", "<f8", ">f8", "|u1", "|i1", "<u2", ">i2", "<f2", ">f2"]
TEXTS = ["S1", "S5", "S16"]
GROUPS = ["stars", "stars/in er", "stars/in er/dust", "a.b", "none", "Mass"]  # in the group that is sorted


def bytes_of(rows):
    """Without the padding of structures, which HDF5 need not keep."""
    return (recfunctions.repack_fields(rows, align=False) if rows.dtype.names else rows).tobytes()


def draw_type(rng):
    """A dtype, and what of it can be a key: parts of its name, and how to get at the values."""
    draw = rng.random()
    if draw < 0.6:
        return np.dtype(str(rng.choice(NUMBERS))), [("", lambda rows: rows)]
    if draw < 0.7:
        return np.dtype(str(rng.choice(TEXTS))), [("", lambda rows: rows)]
    if draw < 0.75:
        return np.dtype("?"), [("", lambda rows: rows.view("i1"))]
    if draw < 0.8:
        return h5py.enum_dtype({"GAS": 0, "HALO": 1, "STAR": 4}, basetype=">i4"), [("", lambda rows: rows)]
    if draw < 0.9:
        kind = str(rng.choice(NUMBERS))
        inner = np.dtype([("x", "<f4"), ("k.l", kind), ("w", "u1", (2,))], align=rng.random() < 0.5)
        return inner, [(".x", lambda rows: rows["x"]), (".k.l", lambda rows: rows["k.l"]), (".w[1]", lambda rows: rows["w"][:, 1])]
    return np.dtype(str(rng.choice(["<c8", "V7", ">c16", "<f16"]))), []


def draw_rows(rng, dtype, count, shape):
    """Rows of any bytes, but of numbers few values, and of odd ones none that are no numbers."""
    all_of = count * int(np.prod(shape, dtype=int))
    if dtype.names:
        rows = np.frombuffer(rng.bytes(all_of * dtype.itemsize), np.uint8).view(dtype).copy() if all_of else np.zeros(0, dtype)
        for name in dtype.names:
            base = dtype[name].base
            rows[name] = np.array(draw_values(rng, base, rows[name].size)).reshape(rows[name].shape)
    elif dtype.kind in "VcO" or dtype.itemsize == 16 and dtype.kind == "f":
        rows = np.frombuffer(rng.bytes(all_of * dtype.itemsize), dtype) if dtype.kind == "V" else rng.random(all_of).astype(dtype)
    elif h5py.check_enum_dtype(dtype):
        rows = rng.choice(np.array([0, 1, 4]), all_of).astype(dtype)
    else:
        rows = np.array(draw_values(rng, dtype, all_of))
    return rows.reshape((count,) + shape)


def draw_storage(rng, count, shape, dtype):
    """How a dataset is stored."""
    if 0 in shape or rng.random() < 0.4:
        return {}
    chunks = (int(rng.integers(1, max(2, count + 5))),) + tuple(int(rng.integers(1, n + 1)) for n in shape)
    if np.prod(chunks) * dtype.itemsize < 64 and count > 100:  # thousands of them only take time
        chunks = (100,) + shape
    storage = {"chunks": chunks, "maxshape": ((None, count + 7)[rng.integers(2)],) + shape}
    if rng.random() < 0.7:
        storage |= [{"compression": "gzip", "compression_opts": int(rng.integers(10))}, {"shuffle": True},
                    {"compression": "gzip", "shuffle": True, "fletcher32": True}][rng.integers(3)]
    if dtype.kind in "iuf" and dtype.itemsize <= 8 and not dtype.metadata:
        storage["fillvalue"] = 3
    return storage


def put_attributes(rng, thing):
    thing.attrs["units"] = "Mpc / h"  # of variable length
    thing.attrs["fixed"] = np.bytes_(b"text")
    thing.attrs["numbers"] = rng.random((2, 3)).astype(">f4")
    thing.attrs["pairs"] = np.array([(1, 2.5)], [("a", ">i2"), ("b", "<f8")])
    thing.attrs.create("names", ["x", "yy", ""], dtype=h5py.string_dtype())
    thing.attrs["nothing"] = h5py.Empty("<f4")
    if rng.random() < 0.2:
        thing.attrs["long"] = np.zeros(20000, "<f8") if thing.file.libver[0] != "earliest" else 5


def same_attributes(one, other):
    if sorted(one.attrs) != sorted(name for name in other.attrs):
        return f"attributes {sorted(other.attrs)}"
    for name in one.attrs:
        a, b = one.attrs[name], other.attrs[name]
        ids = [h5py.h5a.open(thing.id, name.encode()) for thing in (one, other)]
        if ids[0].get_type() != ids[1].get_type() or (not isinstance(a, h5py.Empty) and not np.array_equal(a, b)):
            return f"attribute {name}"
    return ""


def same_storage(given, found, count):
    """The dataset is stored as the first input's; how far it may grow."""
    lists = [dataset.id.get_create_plist() for dataset in (given, found)]
    layouts = [[plist.get_chunk() if plist.get_layout() == h5py.h5d.CHUNKED else None,
                [plist.get_filter(i) for i in range(plist.get_nfilters())]] for plist in lists]
    most = tuple(None if n is None else max(n, count) for n in given.maxshape[:1]) + given.maxshape[1:]
    if given.chunks is None:
        most = found.shape
    if layouts[0] != layouts[1] or found.maxshape != most or given.id.get_type() != found.id.get_type():
        return f"stored as {layouts[1]}, {found.maxshape}, {found.dtype}"
    if given.dtype.kind in "iuf" and given.fillvalue != found.fillvalue:
        return "another fill value"
    return ""


class HDF5Case:
    """One group or dataset, in files, sorted and read back."""

    def __init__(self, rng, program, ranks):
        self.rng, self.launch, self.why, self.words = rng, [word if word != "RANKS" else str(ranks) for word in program], [], []
        self.ranks, self.count = ranks, int(rng.choice([0, 1, 2, 6, 300, int(rng.integers(4000)), int(rng.integers(30000))]))
        self.files = int(rng.choice([1, 1, 3]))
        self.cuts = [0, *np.sort(rng.integers(0, self.count + 1, self.files - 1)), self.count]
        self.alone = rng.random() < 0.25
        self.place = str(rng.choice(["/PartType1", "/", "/a/b/c", "/x"]))
        if self.alone and self.place == "/":
            self.place = "/data"
        self.columns, self.keys = {}, []
        self.groups = [] if self.alone or rng.random() < 0.3 else GROUPS
        self.again = self.groups and rng.random() < 0.5  # links lead to groups again
        self.draw_columns()
        self.make_inputs()
        if self.again:
            self.add_again()

    def draw_columns(self):
        rng = self.rng
        for number in range(1 if self.alone else int(rng.integers(1, 7))):
            name = ["ParticleIDs", "Coordinates", "a b", "it's", "Mass.es", "Größe"][number]
            if self.groups and rng.random() < 0.6:
                name = f"{rng.choice(self.groups[:4])}/{name}"
            dtype, parts = draw_type(rng)
            shape = [(), (), (3,), (2, 2), (0,)][rng.integers(2 if self.alone else 5)]
            if number == 0 and not self.alone:
                dtype, parts, shape = np.dtype(str(rng.choice(NUMBERS))), [("", lambda rows: rows)], ()
            if self.alone and not parts:
                dtype, parts = np.dtype("<u8"), [("", lambda rows: rows)]
            rows = draw_rows(rng, dtype, self.count, shape)
            self.columns[name] = (dtype, shape, rows)
            for text, get in parts if 0 not in shape else []:
                place = tuple(int(rng.integers(n)) for n in shape)
                values = get(np.ascontiguousarray(rows[(slice(None),) + place]))
                self.keys.append((name + "".join(f"[{i}]" for i in place) + text, values))

    def make_inputs(self):
        rng, storage, marks = self.rng, {}, np.random.default_rng(int(self.rng.integers(1 << 30)))
        for number in range(self.files):
            with h5py.File(f"in{number}.h5", "w", libver=["earliest", ("v110", "v110")][rng.integers(2)]) as file:
                group = file if self.alone else file.require_group(self.place)
                for name, (dtype, shape, rows) in self.columns.items():
                    part = rows[self.cuts[number]:self.cuts[number + 1]]
                    if name not in storage:
                        storage[name] = draw_storage(rng, self.count, shape, dtype)
                    kept = dict(storage[name])
                    if "maxshape" in kept and kept["maxshape"][0] and kept["maxshape"][0] < len(part):
                        kept["maxshape"] = (None,) + shape
                    if self.alone:
                        name = self.place
                    dataset = group.create_dataset(name, part.shape, dtype, **kept)
                    if part.size:
                        dataset[...] = part
                    put_attributes(marks, dataset)
                if not self.alone:
                    put_attributes(marks, group)
                    group["short"] = np.arange(self.count + 1)
                    self.make_groups(marks, group)
                file.attrs["of the file"] = 1

    def make_groups(self, rng, group):
        """Groups and their attributes; what in them stays behind; and links."""
        for name in self.groups:
            put_attributes(rng, group.require_group(name))
            group[name]["soft"] = h5py.SoftLink("/nowhere")
            if name != "none":
                group[name]["short"] = np.arange(self.count + 1)
        if self.again:
            group["stars/in er/up"] = group["stars"]
            group["stars/top"] = group
            group["a.b/self"] = group["a.b"]
            group["more"] = group["stars/in er"]
            group["none/same"] = group[next(iter(self.columns))]

    def add_again(self):
        """What comes under two names. Of the group of the first one the link "up" then leads to no group around it."""
        below = {"more": "stars/in er", "more/up": "stars", "more/dust": "stars/in er/dust"}
        groups = self.groups + list(below)
        columns = {"none/same": self.columns[next(iter(self.columns))]}
        for new, old in below.items():
            columns |= {f"{new}/{name[len(old) + 1:]}": column for name, column in self.columns.items()
                        if name.rpartition("/")[0] == old}
        self.groups, self.columns = groups, self.columns | columns
        self.keys.append(("none/same", self.keys[0][1]))

    def run(self, *words, code=0):
        if self.why:
            return
        self.words = [str(word) for word in words]
        ended = subprocess.run(self.launch + self.words, capture_output=True, text=True, timeout=300, check=False)
        if ended.returncode != code or (code == 0 and ended.stderr):
            self.why.append(f"exit code {ended.returncode}: {ended.stderr.strip()}")

    def draw_keys(self):
        """Words for --key, and the order."""
        rng = self.rng
        bare = self.alone and not self.columns["ParticleIDs"][0].names and self.columns["ParticleIDs"][0].kind in "iufb"
        if bare:
            descends = bool(rng.random() < 0.4)
            return ["-r"] if descends else [], [codes_of(self.keys[0][1], descends)]
        chosen, total = [], 0
        first = 0 if self.alone else int(rng.integers(len(self.keys)))
        for i in [first, *rng.permutation(len(self.keys))][:4]:
            size = self.keys[i][1].dtype.itemsize
            if total + size <= 16:
                chosen.append((self.keys[i], bool(rng.random() < 0.4)))
                total += size
        words = []
        for (name, _), descends in chosen:
            if self.alone:  # of structures a field, of others the only column
                name = name.removeprefix("ParticleIDs").removeprefix(".") or "0"
            words.append(name + (":desc" if descends else ""))
        return ["--key", ",".join(words)], [codes_of(values, descends) for (_, values), descends in chosen]

    def old_output(self):
        """What lies in the output's file before; what of it must be there after."""
        draw = self.rng.random()
        if draw < 0.4:
            return None
        with h5py.File("out.hdf5", "w") as file:
            if draw < 0.8 and self.place != "/":
                file["Header/numbers"] = np.arange(5)
                file["Header"].attrs["BoxSize"] = 100.0
                file.create_dataset("a/kept", data=np.arange(1000), chunks=(10,), compression="gzip")
            if self.place != "/" and self.rng.random() < 0.7:
                file[self.place] = [1, 2, 3]
            return sorted(name for name in ("Header", "a/kept") if name in file)

    def compare(self, order, kept):
        with h5py.File("in0.h5") as given, h5py.File("out.hdf5") as found:
            for name in kept or []:
                if name not in found:
                    self.why.append(f"{name} is gone")
            if kept and (found["Header"].attrs["BoxSize"] != 100 or list(found["a/kept"]) != list(range(1000))):
                self.why.append("what was there has changed")
            if not self.alone:
                self.why.append(same_attributes(given[self.place], found[self.place]))
                self.compare_members(given[self.place], found[self.place])
            for name, (_, _, rows) in self.columns.items():
                path = self.place if self.alone else f"{self.place.rstrip('/')}/{name}"
                dataset = found[path]
                self.why += [same_storage(given[path], dataset, self.count), same_attributes(given[path], dataset)]
                if dataset.shape != rows.shape or bytes_of(dataset[...]) != bytes_of(rows[order]):
                    self.why.append(f"{name}: other rows")
        self.why = [why for why in self.why if why]

    def compare_members(self, given, found):
        """The groups, with their attributes, and which datasets there are."""
        members = {}
        found.visititems(lambda name, member: members.update({name: member}))
        datasets = {name for name, member in members.items() if isinstance(member, h5py.Dataset)}
        if datasets != set(self.columns) or set(members) - datasets != set(self.groups):
            self.why.append(f"members {sorted(members)}, not {sorted(self.columns)} and {self.groups}")
            return
        self.why += [same_attributes(given[name], found[name]) for name in self.groups]
        if any("soft" in found[name] for name in self.groups):
            self.why.append("a link has come along")

    def damage(self, places, keys):
        """Two rows change places in one dataset, or one byte changes: check must find it."""
        if self.why:
            return
        name = str(self.rng.choice(list(self.columns)))
        with h5py.File("out.hdf5", "r+") as file:
            dataset = file[self.place if self.alone else f"{self.place.rstrip('/')}/{name}"]
            rows = dataset[...]
            if self.count < 2 or rows.size == 0 or self.files > 1 or rows[0].tobytes() == rows[-1].tobytes():
                return
            if self.alone or len(self.columns) == 1 or len({row.tobytes() for row in rows}) == 1:
                return
            rows[[0, -1]] = rows[[-1, 0]]
            dataset[...] = rows
            if all(np.array_equal(file[f"{self.place.rstrip('/')}/{other}"][0].tobytes(),
                                  file[f"{self.place.rstrip('/')}/{other}"][-1].tobytes())
                   for other in self.columns if other != name and self.columns[other][2].size):
                return  # the rows are the same but for it, and so only their order tells
        self.run("check", f"out.hdf5:{self.place}", *keys, "--against", places[0], code=1)

    def passed(self):
        with_inputs = [f"in{i}.h5" for i in range(self.files)]
        before = [open(name, "rb").read() for name in with_inputs]
        keys, codes = self.draw_keys()
        order = np.lexsort(codes[::-1]) if self.count else np.zeros(0, np.int64)
        places = [f"{name}:{self.place}" for name in with_inputs]
        kept = self.old_output()
        more = [[], ["--verify=reread"], ["--no-verify"]][self.rng.integers(3)]
        if self.rng.random() < 0.3:  # the order by way of the disk
            more += ["--runs", int(self.rng.integers(1, 6))]
        elif self.rng.random() < 0.7:  # what keys of 16 bytes and their order take, at most: long datasets then go by parts
            more += ["-S", 104 * -(-self.count // self.ranks) + 1]
        self.run("sort", *places, "-o", f"out.hdf5:{self.place}", *keys, *more, "--threads", int(self.rng.integers(1, 3)))
        if not self.why:
            self.compare(order, kept)
        self.run("check", f"out.hdf5:{self.place}", *keys, *(word for place in places for word in ("--against", place)))
        self.damage(places, keys)
        if before != [open(name, "rb").read() for name in with_inputs]:
            self.why.append("an input has changed")
        if set(os.listdir(".")) != {"out.hdf5", *with_inputs}:
            self.why.append(f"left behind: {os.listdir('.')}")
        if self.why:
            print(f"failed: {' '.join(self.launch + self.words)}\n    {self.count} rows, " + "; ".join(self.why))
        else:
            for name in os.listdir("."):
                os.remove(name)
        return not self.why


def main():
    seed, cases = int(sys.argv[1]), int(sys.argv[2])
    rng, failures = np.random.default_rng(seed), 0
    for number in range(cases):
        case = HDF5Case(rng, sys.argv[4:] + [sys.argv[3]], RANKS[(seed + number) % len(RANKS)])
        if not case.passed():
            failures += 1
            break  # its files stay
    print(f"seed {seed}: {cases} cases, {failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
