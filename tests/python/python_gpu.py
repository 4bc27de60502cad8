#!/usr/bin/env python3
"""The Python package on GPUs: mpirun -n RANKS python3 -m mpi4py python_gpu.py SEED

Arrays of CuPy, PyTorch and Numba, of those that are there, and always of a class of this file that has device memory by
the CUDA runtime and nothing but the interface. Results are compared with those that NumPy arrays give.
"""

import ctypes
import signal
import sys

import numpy as np

import hypersort
from hypersort import _library
from python_oracle import Ranks, draw_counts, draw_keys, stable_order


class DeviceArray:
    """Device memory with an interface, and nothing else."""

    runtime = None  # the CUDA runtime that the library is linked with
    to_device, to_host = 1, 2

    def __init__(self, array):
        self.dtype, self.shape = array.dtype, array.shape
        self.memory = ctypes.c_void_p()
        self.call("cudaMalloc", ctypes.byref(self.memory), ctypes.c_size_t(max(array.nbytes, 1)))
        self.copy(self.memory, ctypes.c_void_p(array.ctypes.data), array.nbytes, self.to_device)

    def __del__(self):
        self.runtime.cudaFree(self.memory)

    def __len__(self):
        return self.shape[0]

    def call(self, name, *arguments):
        code = getattr(self.runtime, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: error {code}")

    def copy(self, to, source, count, kind):
        self.call("cudaMemcpy", to, source, ctypes.c_size_t(count), ctypes.c_int(kind))

    def numpy(self):
        array = np.empty(self.shape, self.dtype)
        self.copy(ctypes.c_void_p(array.ctypes.data), self.memory, array.nbytes, self.to_host)
        return array

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.memory.value, False), "version": 3,
                "stream": 1}  # fmt: skip


def cupy_home(gpu):
    import cupy

    cupy.cuda.Device(gpu).use()
    return cupy.asarray, cupy.asnumpy


def torch_home(gpu):
    import torch

    torch.cuda.set_device(gpu)
    return lambda array: torch.from_numpy(array.copy()).cuda(), lambda tensor: tensor.cpu().numpy()


def numba_home(gpu):
    from numba import cuda

    cuda.select_device(gpu)
    return lambda array: cuda.to_device(array.copy()), lambda array: array.copy_to_host()


def run_home(ranks, name, make, back):
    """All calls with arrays of one library."""
    rng, has_results = ranks.rng, name != "interface"
    for dtype in ("i4", "f8", "u8", "f2", "u1"):
        total = int(rng.integers(200000))
        whole, counts = draw_keys(rng, dtype, total, rng.random() < 0.5), draw_counts(rng, total, ranks.size)
        order = stable_order(whole)
        mine, what = ranks.part(whole, counts), f"{name} {dtype} {counts.tolist()}"
        there = make(mine)
        hypersort.sort_in_place(there)
        ranks.equal(f"{what}: in place", back(there), ranks.part(whole[order], counts))
        there, out, index = make(mine), make(mine), make(np.zeros(len(mine), np.int64))
        hypersort.sort(there, out=out)
        ranks.equal(f"{what}: out", back(out), ranks.part(whole[order], counts))
        hypersort.argsort(there, out=index)
        ranks.equal(f"{what}: argsort", back(index), ranks.part(order, counts))
        hypersort.take(there, index, out=out)
        ranks.equal(f"{what}: take", back(out), ranks.part(whole[order], counts))
        ranks.expect(f"{what}: check", hypersort.check(out).in_order)
        if total:
            ranks.equal(f"{what}: select", np.asarray(hypersort.select(there, [0, -1])), whole[order][[0, -1]])
        if has_results:
            got = hypersort.sort(there, out_count="even")
            ranks.expect(f"{what}: its library", type(got) is type(there))
            even = [len(part) for part in np.array_split(np.arange(total), ranks.size)]
            ranks.equal(f"{what}: even", back(got), ranks.part(whole[order], even))
            keys, values = hypersort.sort_by_key(there, make(ranks.part(np.arange(total), counts).copy()))
            ranks.equal(f"{what}: keys", back(keys), ranks.part(whole[order], counts))
            ranks.equal(f"{what}: values", back(values), ranks.part(order, counts))
            got = hypersort.unique(there, return_counts=True)
            ours = hypersort.unique(mine, return_counts=True)
            for device, host in zip(got, ours):
                ranks.equal(f"{what}: unique", back(device), host)


def run_streams(ranks):
    """Keys that a stream of CuPy makes while the sort is called."""
    import cupy

    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        keys = cupy.arange(1 << 24, dtype="u4")
        for _ in range(50):  # work that lasts
            keys = keys * np.uint32(747796405) + np.uint32(2891336453)
        got = hypersort.sort(keys)
    after = hypersort.check(got)
    ranks.expect("a stream", after.in_order and after.fingerprint == hypersort.check(keys).fingerprint)


def main():
    signal.alarm(240)
    ranks = Ranks(int(sys.argv[1]))
    sorter = hypersort.sorter_of()
    if sorter.engine != "cuda":
        if ranks.rank == 0:
            print("skipped: no GPU that the library can use")
        sys.exit(77)
    DeviceArray.runtime = _library.load()
    DeviceArray.runtime.cudaSetDevice(sorter.gpu_index)
    run_home(ranks, "interface", DeviceArray, DeviceArray.numpy)
    for name, home in [("cupy", cupy_home), ("torch", torch_home), ("numba", numba_home)]:
        try:
            make, back = home(sorter.gpu_index)
        except ImportError:
            if ranks.rank == 0:
                print(f"left out: no {name}")
            continue
        run_home(ranks, name, make, back)
        if name == "cupy":
            run_streams(ranks)
    ranks.finish("GPU arrays")


if __name__ == "__main__":
    main()
