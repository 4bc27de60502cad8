#!/usr/bin/env python3
"""HDF5 files that lead to other files, for test_hdf5.sh: to victim.h5 by links and as virtual datasets, to raw.h5 by its bytes, and to
block0.h5 and so on by a pattern. Written to the folder that is the working one; in/ is there."""

import h5py
import numpy as np


def virtual(name, source, dataset):
    """A file whose /P/id is that of another, which need not be there yet."""
    layout = h5py.VirtualLayout((9,), "<i8")
    layout[:] = h5py.VirtualSource(source, dataset, (9,))
    with h5py.File(name, "w") as file:
        file.create_group("P").create_virtual_dataset("id", layout)


def links():
    for name in ("cor.h5", "victim.h5"):
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
    links()
    virtuals()
    of_bytes()
    of_blocks()
