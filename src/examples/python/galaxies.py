"""Sort records that are spread over the ranks: by group, and in each group by mass, the greatest first."""

import numpy as np
from mpi4py import MPI

import hypersort

comm = MPI.COMM_WORLD
galaxies = np.zeros(4, [("group", "<i4"), ("mass", "<f8"), ("name", "S8")])
for i in range(4):
    galaxies[i] = (i % 2, (comm.rank + 3 * i) % 5, f"NGC {10 * comm.rank + i}")

galaxies = hypersort.sort_records(galaxies, ["group", "-mass"], comm)
for group, mass, name in galaxies:
    print(f"rank {comm.rank}: group {group}, mass {mass:g}, {name.decode()}", flush=True)

# Numbers that all ranks learn, without sorting. Arrays of CuPy, PyTorch or Numba are taken where they lie, in GPU memory.
median = hypersort.median(galaxies["mass"], comm)
if comm.rank == 0:
    print(f"median mass: {median:g}")
