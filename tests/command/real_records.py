"""Records of real keys: each point of the coastline with its Morton code, latitude and longitude.

usage: real_records.py make DATA RECORDS       write them as a structured .npy file
       real_records.py check RECORDS SORTED INDEX KEYS
                                               SORTED and INDEX are those of NumPy's stable sort by KEYS, as --key has them
"""
import sys
import numpy as np

if sys.argv[1] == "make":
    data, path = sys.argv[2:]
    names = ["morton_u64", "latitude_f64", "longitude_f32"]
    columns = [np.load(f"{data}/coastline_{name}.npy") for name in names]
    records = np.zeros(min(map(len, columns)), [("morton", "<u8"), ("latitude", "<f4"), ("longitude", "<f4")])
    for field, column in zip(records.dtype.names, columns):
        records[field] = column[: len(records)]
    np.save(path, records)
else:
    records, found, index = (np.load(path) for path in sys.argv[2:5])
    ranked = []
    for key in sys.argv[5].split(","):
        name, _, descends = key.partition(":")
        places = np.unique(records[name], return_inverse=True)[1]
        ranked.append(-places if descends else places)
    order = np.lexsort(ranked[::-1])
    assert found.dtype == records.dtype and np.array_equal(index, order), "another order than NumPy's"
    assert found.tobytes() == records[order].tobytes(), "not these records"
