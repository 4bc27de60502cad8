"""SORTED holds the keys of INPUT as NumPy sorts them: the same values at every place, the same bits overall.

usage: real_files.py INPUT SORTED [DTYPE of raw files]
"""
import sys
import numpy as np


def load(path, dtype):
    return np.fromfile(path, dtype) if dtype else np.load(path)


dtype = sys.argv[3] if len(sys.argv) > 3 else None
keys, found = load(sys.argv[1], dtype), load(sys.argv[2], dtype)
bits = np.dtype(f"u{keys.dtype.itemsize}")
assert found.dtype == keys.dtype and found.shape == keys.shape, (found.dtype, found.shape)
assert np.array_equal(np.sort(keys), found, equal_nan=keys.dtype.kind == "f"), "not as NumPy sorts them"
assert np.array_equal(np.sort(keys.view(bits)), np.sort(found.view(bits))), "not the same bits"
