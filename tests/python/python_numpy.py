#!/usr/bin/env python3
"""The Python package against NumPy: mpirun -n RANKS python3 -m mpi4py python_numpy.py SEED DTYPES

Of so many dtypes, in both directions, an array is drawn, spread over the ranks in any counts and layouts, and handed to
every function. Results are compared bit for bit with those of NumPy for the whole array, which every rank has.
"""

import signal
import sys

import numpy as np

import hypersort
from python_oracle import DTYPES, Ranks, draw_counts, draw_keys, lay_out, order_columns, stable_order


class Case:
    """Keys of one dtype in one direction."""

    def __init__(self, ranks, dtype, descends):
        rng = ranks.rng
        self.ranks, self.rng, self.descends = ranks, rng, descends
        self.dtype = np.dtype(dtype)
        self.total = int(rng.choice([0, 1, 7, rng.integers(2000)]))
        self.whole = draw_keys(rng, dtype, self.total, rng.random() < 0.5)
        self.counts = draw_counts(rng, self.total, ranks.size)
        self.mine = lay_out(rng, ranks.part(self.whole, self.counts))
        self.order = stable_order(self.whole, descends)
        self.native = self.whole.astype(self.dtype.newbyteorder("=")) if not self.dtype.isnative else self.whole
        self.name = f"{self.dtype} {'descending' if descends else 'ascending'} {self.counts.tolist()}"

    def equal(self, what, got, whole, counts=None):
        self.ranks.equal(f"{self.name}: {what}", got, self.ranks.part(whole, self.counts if counts is None else counts))

    def sorts(self):
        in_order = self.native[self.order]
        self.equal("sort", hypersort.sort(self.mine, descending=self.descends), in_order)
        wanted = draw_counts(self.rng, self.total, self.ranks.size)
        got = hypersort.sort(self.mine, descending=self.descends, out_count=int(wanted[self.ranks.rank]))
        self.equal("sort out_count", got, in_order, wanted)
        even = [len(part) for part in np.array_split(np.arange(self.total), self.ranks.size)]
        self.equal("sort even", hypersort.sort(self.mine, descending=self.descends, out_count="even"), in_order, even)
        out = np.empty(int(wanted[self.ranks.rank]), self.native.dtype).view(np.memmap)
        got = hypersort.sort(self.mine, descending=self.descends, out=out)
        self.equal("sort out", out, in_order, wanted)
        self.ranks.expect("sort returns out", got is out)
        self.equal("input", np.array(self.mine), self.whole)

    def placed(self):
        """A copy of the keys, at an address that may be a multiple of their size alone."""
        mine = np.ascontiguousarray(self.ranks.part(self.native, self.counts)).copy()
        if self.dtype.itemsize == 4 or self.rng.random() < 0.5:
            room = np.empty(len(mine) + 1, mine.dtype)
            room[1:] = mine
            mine = room[1:]
        return mine

    def sorts_in_place(self):
        mine, there, out = self.placed(), self.placed(), self.placed()
        hypersort.sort_in_place(mine, descending=self.descends)
        self.equal("sort_in_place", mine, self.native[self.order])
        got = hypersort.sort(there, descending=self.descends, out=there)
        self.equal("sort out of itself", there, self.native[self.order])
        hypersort.sort(self.mine, descending=self.descends, out=out)
        self.equal("sort out, at any address", out, self.native[self.order])
        self.ranks.expect("sort returns itself", got is there)

    def argsorts(self):
        self.equal("argsort", hypersort.argsort(self.mine, descending=self.descends), self.order)
        wanted = draw_counts(self.rng, self.total, self.ranks.size)
        index = hypersort.argsort(self.mine, descending=self.descends, out_count=int(wanted[self.ranks.rank]))
        self.equal("argsort out_count", index, self.order, wanted)
        self.equal("take", hypersort.take(self.mine, lay_out(self.rng, index)), self.whole[self.order], wanted)
        back = np.zeros(len(self.mine), self.dtype)
        hypersort.put(back, lay_out(self.rng, index), self.ranks.part(self.whole[self.order], wanted))
        self.equal("put", back, self.whole)
        out = np.empty(len(index), np.int64)
        hypersort.argsort(self.mine, descending=self.descends, out=out)
        self.equal("argsort out", out, self.order, wanted)

    def columns(self):
        """By few bytes, then by the keys the other way."""
        first = draw_keys(self.rng, "S3", self.total, True)
        texts = np.unique(first, return_inverse=True)[1].reshape(-1)
        order = np.lexsort([*order_columns(self.whole, self.descends), -texts])
        mine = [lay_out(self.rng, self.ranks.part(first, self.counts)), self.mine]
        if self.dtype.itemsize > 13:
            return  # keys have 16 bytes together at most
        self.equal("argsort_columns", hypersort.argsort_columns(mine, descending=[True, self.descends]), order)

    def by_key(self):
        values = [
            self.rng.integers(0, 1000, (self.total, 3), "i4"),
            np.arange(self.total, dtype=">i8"),
            draw_keys(self.rng, "S5", self.total, False),
        ][: int(self.rng.integers(4))]
        mine = [lay_out(self.rng, self.ranks.part(value, self.counts)) for value in values if value.ndim == 1]
        mine = [self.ranks.part(values[0], self.counts), *mine] if values else []
        wanted = draw_counts(self.rng, self.total, self.ranks.size)
        count = int(wanted[self.ranks.rank])
        got = hypersort.sort_by_key(self.mine, *mine, descending=self.descends, out_count=count)
        for i, (array, whole) in enumerate(zip(got, [self.native, *values])):
            self.equal(f"sort_by_key {i} of {len(values)}", array, whole[self.order], wanted)
        self.ranks.expect("sort_by_key arrays", len(got) == 1 + len(values))
        keys = self.ranks.part(self.native, self.counts).copy()
        places = self.ranks.part(np.arange(self.total), self.counts).copy()
        before = hypersort.check(keys, places)
        hypersort.sort_by_key_in_place(keys, places, descending=self.descends)
        after = hypersort.check(keys, places, places, descending=self.descends)
        placed = after.placed_fingerprint == before.placed_fingerprint
        self.ranks.expect("check of values", after.in_order and after.first_unstable == -1 and placed, f"{before} {after}")
        self.equal("sort_by_key_in_place keys", keys, self.native[self.order])
        self.equal("sort_by_key_in_place values", places, self.order)

    def uniques(self):
        order = stable_order(self.whole)
        in_order = self.native[order]
        bits = np.ascontiguousarray(in_order).view("u1").reshape(self.total, self.dtype.itemsize)
        begins = np.append(True, (bits[1:] != bits[:-1]).any(axis=1))[: self.total]
        first = np.flatnonzero(begins)
        inverse = np.empty(self.total, np.int64)
        inverse[order] = np.cumsum(begins) - 1
        wholes = [in_order[begins], order[first], inverse, np.diff(np.append(first, self.total))]
        flags = [bool(self.rng.integers(2)) for _ in range(3)]
        given = self.mine
        if self.rng.random() < 0.25:  # keys in order
            given = hypersort.sort(self.mine)
            wholes[1:3] = first, np.cumsum(begins) - 1
        got = hypersort.unique(
            given, return_index=flags[0], return_inverse=flags[1], return_counts=flags[2],
            assume_sorted=given is not self.mine,
        )  # fmt: skip
        got = got if any(flags) else (got,)
        kept = self.ranks.comm.allgather(len(got[0]))
        self.ranks.expect(f"{self.name}: unique keeps", sum(kept) == len(first), f"{kept}, not {len(first)}")
        names = ["keys", *(name for name, say in zip(["index", "inverse", "counts"], flags) if say)]
        for name, array in zip(names, got):
            whole = wholes[["keys", "index", "inverse", "counts"].index(name)]
            self.equal(f"unique {name}", array, whole, self.counts if name == "inverse" else kept)
        self.ranks.expect("unique arrays", len(got) == 1 + sum(flags))

    def looks(self):
        before = hypersort.check(self.mine, descending=self.descends)
        in_order = hypersort.sort(self.mine, descending=self.descends)
        after = hypersort.check(in_order, descending=self.descends)
        expect, name = self.ranks.expect, self.name
        expect(f"{name}: check", after.in_order and after.count == self.total, f"{after}")
        expect(f"{name}: fingerprint", before.fingerprint == after.fingerprint, f"{before} {after}")
        expect(f"{name}: its 128 bits", self.total == 0 or before.fingerprint >> 64 > 0, f"{before}")
        moved = np.flatnonzero(self.order != np.arange(self.total))
        if before.in_order and len(moved) > 0:
            expect(f"{name}: disorder", self.native.tobytes() == self.native[self.order].tobytes(), f"{before}")
        if self.total == 0:
            return
        places = self.rng.integers(-self.total, self.total, (3, 2)).T
        got = hypersort.select(self.mine, places, descending=self.descends)
        self.ranks.equal(f"{name}: select", got, self.native[self.order][places])
        expect("select of one", np.ndim(hypersort.select(self.mine, -1)) == 0)
        self.quantiles()

    def quantiles(self):
        if self.dtype.kind in "mM" or self.dtype == hypersort.uint128:
            return
        q = self.rng.random(3)
        with np.errstate(invalid="ignore"):  # of signalling NaNs
            doubles = self.native.astype("f8")
        # -0.0 and +0.0 are one number here. NumPy's last bit may be another one: it has several forms of the mean.
        for method in ("linear", "lower", "higher"):
            with np.errstate(invalid="ignore", over="ignore"):
                wanted = np.quantile(doubles, q, method=method)
                got = hypersort.quantile(self.mine, q, method=method).astype("f8")
            same = np.array_equal(got, wanted, equal_nan=True) if method != "linear" else is_near(got, wanted)
            self.ranks.expect(f"{self.name}: quantile {method}", same, f"{got} {wanted}")
        with np.errstate(invalid="ignore", over="ignore"):
            median, wanted = hypersort.median(self.mine), np.quantile(doubles, 0.5)
        self.ranks.expect(f"{self.name}: median", is_near(median, wanted), f"{median} {wanted}")

    def run(self):
        self.sorts()
        self.sorts_in_place()
        self.argsorts()
        self.columns()
        self.by_key()
        self.uniques()
        self.looks()


def is_near(got, wanted):
    """Equal, but for the last bits of a mean; any number where the mean of NumPy passes through an infinity."""
    return bool(np.all(~np.isfinite(wanted) | np.isclose(got, wanted, rtol=1e-12, atol=0)))


def main():
    signal.alarm(240)  # a rank that waits for ever is a failure
    ranks = Ranks(int(sys.argv[1]))
    some = ranks.rng.permutation(len(DTYPES))[: int(sys.argv[2])]
    for dtype in [DTYPES[i] for i in some]:
        for descends in (False, True):
            Case(ranks, dtype, descends).run()
    ranks.expect("the median of infinities", hypersort.median(np.full(3, np.inf)) == np.inf)
    ranks.finish("arrays")


if __name__ == "__main__":
    main()
