#!/usr/bin/env python3
"""Arrays of GPU libraries without a GPU: mpirun -n RANKS python3 -m mpi4py python_interface.py

CuPy and PyTorch are replaced by modules whose arrays lie in host memory and say that they lie in GPU memory; the host
engine sorts them, and a library in between notes which stream it was given. What is under test is the package alone:
what it reads of an interface, what it refuses, where results come from, and which streams are waited for.
"""

import signal
import sys
import types

import numpy as np

import hypersort
from hypersort import _library
from python_oracle import Ranks


class FakeArray:
    """An array of the module cupy."""

    def __init__(self, array, **interface):
        self.array, self.interface = array, interface
        self.dtype, self.shape = array.dtype, array.shape

    @property
    def __cuda_array_interface__(self):
        a = self.array
        face = {"shape": a.shape, "typestr": a.dtype.str, "data": (a.ctypes.data, not a.flags.writeable), "version": 3}
        return {**face, "stream": 1, **self.interface}

    def __len__(self):
        return len(self.array)

    def __getitem__(self, place):
        return FakeArray(self.array[place])

    def copy(self):
        return FakeArray(self.array.copy())


FakeArray.__module__ = "cupy"
sys.modules["cupy"] = types.SimpleNamespace(empty=lambda shape, dtype: FakeArray(np.empty(shape, dtype)))


class FakeType:
    """A dtype of the module torch; text is how it reads."""

    def __init__(self, name, numpy_name=None):
        self.name, self.numpy = name, np.dtype(numpy_name or name)

    def __str__(self):
        return f"torch.{self.name}"


class FakeTensor:
    """A tensor of the module torch, which has no stream in its interface."""

    def __init__(self, array, dtype, device, conj=False):
        self.array, self.dtype, self.conj = array, dtype, conj
        self.device = types.SimpleNamespace(type=device)
        self.shape = array.shape

    def __len__(self):
        return len(self.array)

    def __getitem__(self, place):
        return FakeTensor(self.array[place], self.dtype, self.device.type)

    def is_contiguous(self):
        return self.array.flags.c_contiguous

    def is_conj(self):
        return self.conj

    def data_ptr(self):
        return self.array.ctypes.data

    def element_size(self):
        return self.array.itemsize

    def clone(self):
        return FakeTensor(self.array.copy(), self.dtype, self.device.type)


FakeTensor.__module__ = "torch"
FAKE_TYPES = {name: FakeType(name) for name in ("float32", "int64", "uint8", "complex64")}
FAKE_TYPES["bfloat16"] = FakeType("bfloat16", "u2")


def fake_torch_empty(shape, dtype, device):
    return FakeTensor(np.empty(shape, dtype.numpy), dtype, getattr(device, "type", device))


sys.modules["torch"] = types.SimpleNamespace(
    empty=fake_torch_empty, **FAKE_TYPES,
    cuda=types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=0x70)),
)  # fmt: skip


class Between:
    """The library, with a note of the streams that it is given and of those that are waited for."""

    def __init__(self, library):
        self.library, self.given, self.waited = library, [], []

    def __getattr__(self, name):
        function = getattr(self.library, name)
        if name not in _library._abi.FUNCTIONS or name.startswith(("hsort_last", "hsort_destroy", "hsort_check")):
            return function

        def call(*arguments):
            self.given.append(arguments[-1])
            return function(*arguments[:-1], None)  # the host engine knows no streams

        return call

    def cudaStreamSynchronize(self, stream):
        self.waited.append(stream.value)
        return 0


def error_of(call, *arguments, **words):
    """The text of what is raised; "" if nothing is."""
    try:
        call(*arguments, **words)
    except hypersort.ArgumentError as error:
        return error.text
    return ""


def run_refusals(ranks, sorter):
    """What an interface may say, and the host engine refuses arrays in GPU memory."""
    keys = np.arange(10, dtype="f4")[::-1].copy()
    wide, turned = np.arange(20.0), keys.astype(">f4")
    refused = [
        ("strides", FakeArray(wide[::2], strides=wide[::2].strides), "contiguous"),
        ("a stream 0", FakeArray(keys, stream=0), "stream 0"),
        ("a mask", FakeArray(keys, mask=FakeArray(keys)), "mask"),
        ("byte order", FakeArray(turned), "byte order"),
        ("dimensions", FakeArray(keys.reshape(2, 5)), "2 dimensions"),
        ("complex", FakeArray(keys.view("c8")), "not a key type"),
        ("a complex tensor", FakeTensor(keys.view("c8"), FAKE_TYPES["complex64"], "cuda"), "not a key type"),
        ("a tensor with strides", FakeTensor(keys[::2], FAKE_TYPES["float32"], "cuda"), "contiguous"),
        ("another device", FakeTensor(keys, FAKE_TYPES["float32"], "xpu"), "device"),
    ]
    for name, array, word in refused:
        text = error_of(sorter.sort, array)
        ranks.expect(name, word in text, text)
    lazy = FakeTensor(keys.view("c8"), FAKE_TYPES["complex64"], "cuda", conj=True)
    ranks.expect("conjugated later", "resolve_conj" in error_of(sorter.take, lazy, np.arange(5)))
    lazy.conj, lazy.is_neg = False, lambda: True
    ranks.expect("negated later", "resolve_neg" in error_of(sorter.take, lazy, np.arange(5)))
    read_only = keys.copy()
    read_only.flags.writeable = False
    ranks.expect("read-only", "read-only" in error_of(sorter.sort_in_place, FakeArray(read_only)))
    ranks.expect("records", "structured NumPy" in error_of(sorter.sort_records, FakeArray(keys.view([("a", "f4")])), "a"))
    ranks.expect("index of i4", "int64" in error_of(sorter.take, FakeArray(keys), FakeArray(np.zeros(1, "i4"))))
    sorter._on_gpu = False
    ranks.expect("the host engine", "engine in use is host" in error_of(sorter.sort, FakeArray(keys)))
    sorter._on_gpu = True


def run_streams(ranks, sorter):
    """Which stream the library is given, and which are waited for before."""
    keys, between = np.arange(10, dtype="f4"), sorter._library
    for said, given in [(1, None), (2, 2), (0x1234, 0x1234), (None, None)]:
        between.given.clear()
        sorter.sort(FakeArray(keys, stream=said), out=FakeArray(keys.copy(), stream=None))
        ranks.expect(f"stream {said}", between.given == [given], f"{between.given}")
    between.given.clear()
    sorter.sort_in_place(FakeArray(keys.copy(), stream=0x1234, version=2))
    ranks.expect("version 2 has no stream", between.given == [None], f"{between.given}")
    between.given.clear()
    sorter.sort(FakeArray(keys, stream=5), out=FakeArray(keys.copy(), stream=7))
    ranks.expect("two streams", (between.given, between.waited) == ([7], [5]), f"{between.given} {between.waited}")
    between.given.clear()
    between.waited.clear()
    sorter.sort_by_key(FakeArray(keys, stream=5), FakeArray(keys, stream=1))
    ranks.expect("of values", (between.given, between.waited) == ([5], [1]), f"{between.given} {between.waited}")
    between.given.clear()
    sorter.sort(FakeTensor(keys, FAKE_TYPES["float32"], "cuda"))
    ranks.expect("the stream of a tensor", between.given == [0x70], f"{between.given}")
    between.given.clear()
    sorter.sort(FakeTensor(keys, FAKE_TYPES["float32"], "cpu"))
    ranks.expect("a tensor in host memory", between.given == [None], f"{between.given}")


def run_results(ranks, sorter):
    """Results are of the library of the input, and right."""
    keys = np.random.default_rng(ranks.rank).integers(0, 50, 100 + ranks.rank).astype("f4")
    wanted, index = sorter.sort(keys), sorter.argsort(keys)
    got = sorter.sort(FakeArray(keys))
    ranks.expect("an array", type(got) is FakeArray and np.array_equal(got.array, wanted))
    ranks.expect("strides of a contiguous one", sorter.check(FakeArray(wanted, strides=wanted.strides)).in_order)
    rows = np.arange(24.0).reshape(4, 3, 2)
    got = sorter.take(FakeArray(rows, strides=rows.strides), np.array([3, 0]))
    ranks.expect("strides of three dimensions", np.array_equal(got.array, rows[[3, 0]]))
    ranks.expect("strides of none", len(sorter.sort(FakeArray(keys[:0], strides=(8,)))) == 0)
    got = sorter.argsort(FakeArray(keys))
    ranks.expect("an index", type(got) is FakeArray and np.array_equal(got.array, index))
    got = sorter.take(FakeArray(keys), got)
    ranks.expect("take", type(got) is FakeArray and np.array_equal(got.array, wanted))
    there, mixed = FakeArray(keys.copy()), np.empty_like(keys)
    sorter.sort_in_place(there)
    sorter.sort(FakeArray(keys), out=mixed)
    ranks.expect("in place", np.array_equal(there.array, wanted) and np.array_equal(mixed, wanted))
    got, counts = sorter.unique(FakeArray(keys), return_counts=True)
    ours = sorter.unique(keys, return_counts=True)
    ranks.expect("unique", np.array_equal(got.array, ours[0]) and np.array_equal(counts.array, ours[1]))
    ranks.expect("unique of one", sorter.unique(np.zeros(100)).base is None)  # no view of 100
    ranks.expect("select", isinstance(sorter.select(FakeArray(keys), [0, -1]), np.ndarray))
    for device in ("cuda", "cpu"):
        tensor = FakeTensor(keys, FAKE_TYPES["float32"], device)
        got, values = sorter.sort_by_key(tensor, FakeTensor(index, FAKE_TYPES["int64"], device))
        ranks.expect(f"tensors {device}", type(got) is FakeTensor and np.array_equal(got.array, wanted))
        ranks.expect(f"values {device}", values.device.type == device and values.dtype is FAKE_TYPES["int64"])
        got = sorter.unique(tensor)
        ranks.expect(f"unique {device}", type(got) is FakeTensor and np.array_equal(got.array, ours[0]))
    # As f16 the second key would be NaN, and last: as bf16 it is the least.
    bits = np.array([0x4000, 0xFF00], "u2")
    got = sorter.sort(FakeTensor(bits, FAKE_TYPES["bfloat16"], "cuda"), out_count="even")
    whole = np.concatenate(ranks.comm.allgather(got.array)).tolist()
    ranks.expect("bf16", whole == [0xFF00] * ranks.size + [0x4000] * ranks.size, f"{whole}")
    unknown = FakeArray(keys)
    unknown.__class__ = type("Unknown", (FakeArray,), {"__module__": "elsewhere"})
    ranks.expect("a base of CuPy's", type(sorter.sort(unknown)) is FakeArray)
    other = types.SimpleNamespace(__cuda_array_interface__=FakeArray(keys).__cuda_array_interface__)
    ranks.expect("no library", "out=" in error_of(sorter.sort, other))
    sorter.sort(other, out=mixed)
    ranks.expect("no library, but out", np.array_equal(mixed, wanted))


def main():
    signal.alarm(120)
    ranks = Ranks(0)
    with hypersort.Sorter(engine="host") as sorter:
        library = sorter._library
        sorter._library = _library._loaded = Between(library)
        sorter._on_gpu = True
        run_refusals(ranks, sorter)
        run_streams(ranks, sorter)
        run_results(ranks, sorter)
        sorter._library = _library._loaded = library
        failing = types.SimpleNamespace(cudaStreamSynchronize=lambda stream: 700)
        for wrong, status in (types.SimpleNamespace(_name="x"), "NO_DEVICE"), (failing, "CUDA"):
            try:
                _library.synchronize(wrong, 1)
                ranks.expect("no stream", False)
            except hypersort.Error as error:
                ranks.expect("no stream", error.status.name == status, f"{error}")
    ranks.finish("interfaces")


if __name__ == "__main__":
    main()
