#!/usr/bin/env python3
"""HDF5 files for test_hdf5.sh, written to the folder that is the working one: `hdf5_files.py first` makes what most of its cases begin
with, and `hdf5_files.py others`, in/ being there, files that lead to other files: to victim.h5 by links and as virtual datasets, to
raw.h5 by its bytes, and to block0.h5 and so on by a pattern."""

import sys

import h5py
import numpy as np


def snap():
    rng = np.random.default_rng(5)
    with h5py.File("snap.h5", "w") as file:
        file["Header/n"] = 5
        group = file.create_group("g")
        group["id"] = rng.integers(0, 300, 1000).astype("<u8")
        packed = {"chunks": (70, 3), "compression": "gzip", "maxshape": (None, 3)}
        group.create_dataset("pos", data=rng.random((1000, 3)), **packed)
        group["cube"] = rng.random((1000, 2, 2))
        group["kind"] = np.zeros(1000, [("a", "<i4"), ("b", "S3")])
        group["long"] = rng.random(1000).astype("<f16")
        group["five"] = np.arange(5)
        group["one"] = 7
        group["soft"] = h5py.SoftLink("/g/id")
        group["sub/more"] = np.arange(1000)
        group["sub/few"] = np.arange(3)
        group["sub/soft"] = h5py.SoftLink("/g/id")
        group["sub/up"] = group
        group["sub/type"] = np.dtype("<f4")
        group["sub"].attrs["to"] = group.ref
        group["id"].attrs["reference"] = group.ref
        # Lists of references, as netCDF writes them; and some in an array that is not the first member of a structure.
        group["id"].make_scale("rows")
        group["cube"].dims[0].attach_scale(group["id"])
        inner = h5py.h5t.create(h5py.h5t.COMPOUND, 20)
        inner.insert(b"a", 0, h5py.h5t.STD_I32LE)
        inner.insert(b"r", 4, h5py.h5t.array_create(h5py.h5t.STD_REF_OBJ, (2,)))
        h5py.h5a.create(group["kind"].id, b"inner", inner, h5py.h5s.create(h5py.h5s.SCALAR))
        file["same/id"] = np.zeros(100, "<i4")
        file["same/number"] = np.arange(100)
        file["texts"] = np.array(["ab", "c"], dtype=h5py.string_dtype())
        file["keys"] = rng.random(1000)
        file["scalar"] = 3
        bad = file.create_group("bad")
        bad["id"] = np.arange(2)
        bad["names"] = np.array(["ab", "c"], dtype=h5py.string_dtype())
        refs = file.create_group("refs")
        refs["id"] = np.arange(2)
        refs.create_dataset("to", (2,), np.dtype([("a", "<i4"), ("r", h5py.ref_dtype)]))
        wide = file.create_group("wide")
        wide["id"] = np.arange(2)
        wide["row"] = np.zeros((2, 65537), "u1")
        lossy = file.create_group("lossy")
        lossy["id"] = np.arange(100)
        lossy.create_dataset("v", data=rng.random(100), scaleoffset=3)
        strange = file.create_group("strange")
        strange["id"] = np.arange(100)
        strange.create_dataset("v", data=rng.random(100), compression="lzf")


def other():
    with h5py.File("other.h5", "w") as file:
        file["g/id"] = np.arange(5, dtype="<u4")
        file["g/pos"] = np.zeros((5, 3))
        file["signed"] = np.zeros(5, "<i4")
        for name, shape in ("p", (5, 2, 3)), ("q", (5, 3, 2)):
            file[f"{name}/id"] = np.arange(5)
            file[f"{name}/x"] = np.zeros(shape)
        # A short and a wide number that no key can be: of another precision, and of another exponent.
        short, wide = h5py.h5t.STD_U16LE.copy(), h5py.h5t.IEEE_F32LE.copy()
        short.set_precision(12)
        wide.set_fields(15, 7, 8, 0, 7)
        wide.set_size(2)
        wide.set_ebias(127)
        for name, kind in (b"twelve", short), (b"bf16", wide):
            h5py.h5d.create(file.id, name, kind, h5py.h5s.create_simple((4,)))


def damaged():
    with h5py.File("snap.h5") as given, h5py.File("uneven.h5", "w") as file:
        for name in ("id", "pos", "cube", "kind", "long"):
            file[f"g/{name}"] = given[f"g/{name}"][:10 if name != "pos" else 9]
    bytes_of_it = open("snap.h5", "rb").read()
    open("cut.h5", "wb").write(bytes_of_it[:len(bytes_of_it) // 2])
    with h5py.File("snap.h5") as file:
        chunk = file["g/pos"].id.get_chunk_info(7)
    spoiled = bytearray(bytes_of_it)
    spoiled[chunk.byte_offset + 9:chunk.byte_offset + 40] = bytes(31)
    open("spoiled.h5", "wb").write(spoiled)
    open("none.h5", "wb").write(b"not at all" * 100)
    open("empty.h5", "wb")
    np.save("keys.npy", np.arange(5.0))


def virtual(name, source, dataset):
    """A file whose /P/id is that of another, which need not be there yet."""
    layout = h5py.VirtualLayout((9,), "<i8")
    layout[:] = h5py.VirtualSource(source, dataset, (9,))
    with h5py.File(name, "w") as file:
        file.create_group("P").create_virtual_dataset("id", layout)


def links():
    for name in ("cor.h5", "victim.h5", "50%.h5"):
        with h5py.File(name, "w") as file:
            file["P/id"] = np.arange(9)[::-1]
    with h5py.File("only.h5", "w") as file:
        file["e"] = h5py.ExternalLink("victim.h5", "/")
    with h5py.File("ext.h5", "w") as file:
        file["e"] = h5py.ExternalLink("victim.h5", "/")
        file["soft"] = h5py.SoftLink("/e")
        file["self"] = h5py.ExternalLink("ext.h5", "/")
        file["gone"] = h5py.ExternalLink("gone.h5", "/")
        file["P/id"] = np.arange(3)


def virtuals():
    virtual("in/of_victim.h5", "../victim.h5", "P/id")
    virtual("of_percent.h5", "50%%.h5", "P/id")
    virtual("of_moved.h5", "/nowhere/victim.h5", "P/id")  # which lies beside it
    virtual("of_virtual.h5", "in/of_victim.h5", "P/id")
    virtual("of_link.h5", "ext.h5", "e/P/id")
    virtual("of_itself.h5", ".", "P/id")
    virtual("of_own.h5", ".", "kept")
    with h5py.File("of_own.h5", "r+") as file:
        file["kept"] = h5py.ExternalLink("victim.h5", "/P/id")


def of_bytes():
    with h5py.File("raw.h5", "w") as file:
        file["x"] = np.arange(9)
        offset = file["x"].id.get_offset()
    with h5py.File("in/of_bytes.h5", "w") as file:
        file.create_group("P").create_dataset("id", (9,), "<i8", external=[("raw.h5", offset, 72)])


def of_blocks():
    """As many as there are."""
    for number in range(3):
        with h5py.File(f"block{number}.h5", "w") as file:
            file["id"] = np.arange(3)
    with h5py.File("of_blocks.h5", "w", libver="latest") as file:
        space = h5py.h5s.create_simple((9,), (h5py.h5s.UNLIMITED,))
        space.select_hyperslab((0,), (h5py.h5s.UNLIMITED,), (3,), (3,))
        layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        layout.set_virtual(space, b"block%b.h5", b"id", h5py.h5s.create_simple((3,)))
        h5py.h5d.create(file.create_group("P").id, b"id", h5py.h5t.STD_I64LE, space, layout)


if __name__ == "__main__":
    made = {"first": (snap, other, damaged), "others": (links, virtuals, of_bytes, of_blocks)}
    for make in made[sys.argv[1]]:
        make()
