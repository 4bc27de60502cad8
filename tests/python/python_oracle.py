"""What the tests of the Python package share: the order of hypersort.h said again by NumPy, arrays drawn at random, and
a count of failures over all ranks."""

import sys

import numpy as np
from mpi4py import MPI

import hypersort

DTYPES = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", ">u2", ">i4", ">f4", ">u8", ">f8",
          "M8[ns]", "m8[us]", hypersort.uint128]  # fmt: skip
try:
    import ml_dtypes

    DTYPES.append(np.dtype(ml_dtypes.bfloat16))
except ImportError:
    pass
NAT = np.iinfo(np.int64).min


def is_float(dtype):
    return dtype.kind == "f" or dtype.name == "bfloat16"


def order_columns(values, descends):
    """Columns of numbers that order as the library orders these keys, the most significant one last, as of np.lexsort.

    NaNs come last in both directions: the positive ones by their bits, then the negative ones by theirs, turned round.
    """
    sign = -1 if descends else 1
    if values.dtype == hypersort.uint128:
        parts = values["low"], values["high"]
        return [~part if descends else part for part in parts]
    if not is_float(values.dtype):
        whole = values.view("i8") if values.dtype.kind in "mM" else values.astype(values.dtype.newbyteorder("="))
        whole = whole.astype("u1") if whole.dtype == bool else whole
        return [~whole if descends else whole]
    native = values.astype(values.dtype.newbyteorder("=")) if values.dtype.kind == "f" else values
    bits = native.view(f"u{values.dtype.itemsize}").astype("i8" if values.dtype.itemsize < 8 else "u8")
    negative = np.signbit(native)
    nan = np.isnan(native)
    number = np.where(nan, 0, native).astype("f8") * sign
    zero = np.where(nan | negative, 0, 1) * sign  # -0.0 before +0.0
    within = np.where(nan, np.where(negative, ~bits, bits), 0)
    return [within, zero, number, np.where(nan, np.where(negative, 2, 1), 0)]


def stable_order(values, descends=False):
    """The stable argsort of keys."""
    return np.lexsort(order_columns(values, descends))


def draw_keys(rng, dtype, count, few):
    """Any bits, with NaNs, zeros and infinities among floats, or few values."""
    dtype = np.dtype(dtype)
    different = int(rng.integers(1, 30)) if few else count
    if dtype == bool:
        return rng.integers(0, 2, count).astype(bool)
    values = np.frombuffer(rng.bytes(different * dtype.itemsize), dtype).copy()
    if is_float(dtype) and different:
        special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf], dtype)
        at = rng.integers(0, different, different // 4 + 1)
        values[at] = special[rng.integers(0, len(special), len(at))]
    if dtype.kind in "mM":
        whole = values.view("i8")
        whole[whole == NAT] = 0
    return values[rng.integers(0, different, count)] if few else values


def draw_counts(rng, total, ranks):
    """How many each rank has: any, with empty ranks; in a quarter of the cases all on one."""
    counts = np.zeros(ranks, np.int64)
    if rng.random() < 0.25:
        counts[rng.integers(ranks)] = total
    else:
        cuts = np.sort(rng.integers(0, total + 1, ranks - 1))
        counts[:] = np.diff([0, *cuts, total])
    return counts


def lay_out(rng, values):
    """The same array as users have it: contiguous, with strides, at an odd address, read-only, or turned round.

    Records are laid out as bytes: NumPy may leave out what lies between their fields.
    """
    if values.dtype.names and values.dtype != hypersort.uint128:
        return lay_out(rng, values.view(f"V{values.dtype.itemsize}")).view(values.dtype)
    layout = int(rng.integers(5))
    if layout == 1:
        wide = np.repeat(values, 3)
        return wide[1::3]
    if layout == 2:
        room = np.zeros(values.nbytes + 1, "u1")
        room[1:] = values.view("u1") if values.size else []
        return room[1:].view(values.dtype)
    if layout == 3:
        values = values.copy()
        values.flags.writeable = False
    if layout == 4:
        return values[::-1].copy()[::-1]
    return values


def bytes_of(array):
    """All bytes of a contiguous array: tobytes() of records may leave out what lies between their fields."""
    return array.view(f"V{array.dtype.itemsize}").tobytes() if array.dtype.names else array.tobytes()


def in_order(records, order):
    """records[order], with what lies between fields."""
    return records.view(f"V{records.dtype.itemsize}")[order].view(records.dtype)


class Ranks:
    """The ranks of a test, all of which draw the same arrays and take their parts."""

    def __init__(self, seed):
        self.comm = MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size
        self.rng = np.random.default_rng(seed)
        self.failures = self.checks = 0

    def part(self, values, counts):
        """This rank's part of a whole array."""
        begin = int(np.sum(counts[: self.rank]))
        return values[begin : begin + int(counts[self.rank])]

    def expect(self, what, holds, text=""):
        """Count a failure of this rank, and say what it is."""
        self.checks += 1
        if not holds:
            self.failures += 1
            print(f"failed on rank {self.rank} of {self.size}: {what} {text}", flush=True)

    def equal(self, what, got, wanted):
        """Bit for bit, and of the same dtype."""
        same = got.dtype == wanted.dtype and got.shape == wanted.shape and bytes_of(got) == bytes_of(wanted)
        self.expect(what, same, f"\n  got    {got!r}\n  wanted {wanted!r}")

    def finish(self, what):
        """End with 1 on every rank if any has a failure."""
        failures, checks = self.comm.allreduce(self.failures), self.comm.allreduce(self.checks)
        if self.rank == 0:
            print(f"{what} on {self.size} ranks: {checks} checks, {failures} failures", flush=True)
        sys.exit(failures > 0)
