#!/bin/bash
# HDF5 with little memory: datasets go by parts, and the same rows come out as from one part, on any number of ranks; also where a rank
# fails in a later part.
set -uo pipefail
# shellcheck source=tests/support/cli.sh
. "$(dirname "${BASH_SOURCE[0]}")/../support/cli.sh"
if "$HYPERSORT" version | grep -q ', no HDF5$'; then
    echo "skipped: the build has no HDF5"
    exit 77
fi
need_h5py

"$h5py" - <<'PYTHON'
import h5py
import numpy as np
rng = np.random.default_rng(6)
with h5py.File("long.h5", "w") as file:
    file["g/id"] = rng.integers(0, 9000, 20000)
    file["g/flat"] = rng.random((20000, 20))
    file.create_dataset("g/packed", data=rng.integers(0, 9, (20000, 50)), chunks=(700, 20), compression="gzip", compression_opts=1)
PYTHON
ok 2 sort long.h5:/g -o whole.h5:/g --key id --json
json "r['readings'] == 1"
for ranks in 1 2 3 5 7 8; do
    ok $ranks sort long.h5:/g -o parts.h5:/g --key id -S $((2000000 / ranks)) --verify=reread --json
    json "r['readings'] > 3 and r['runs'] == 0 and r['verify']['fingerprint_ok']"
    "$h5py" -c 'import h5py
one, other = h5py.File("whole.h5")["g"], h5py.File("parts.h5")["g"]
assert all((one[name][...] == other[name][...]).all() for name in ("id", "flat", "packed"))' || fail "other rows by parts on $ranks ranks"
    rm parts.h5
done
if [ "${HAS_FAULTS:-}" = ON ]; then
    for rank in 0 2; do
        HYPERSORT_FAULT=read:$rank:9 refused 3 3 "rank $rank on |long.h5:/g: dataset 'flat' cannot be read" \
            sort long.h5:/g -o parts.h5:/g --key id -S 670000
        HYPERSORT_FAULT=write:$rank:3 refused 3 3 "rank $rank on |parts.h5: dataset 'flat' cannot be written" \
            sort long.h5:/g -o parts.h5:/g --key id -S 670000
        HYPERSORT_FAULT=alloc:$rank:24 refused 3 5 "rank $rank on " sort long.h5:/g -o parts.h5:/g --key id
    done
fi
rm long.h5 whole.h5
finish
