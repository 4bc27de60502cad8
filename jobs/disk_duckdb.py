#!/usr/bin/env python3
"""Sort uniform u64 keys with DuckDB, from a table on disk into another one, and print the seconds.

    jobs/disk_duckdb.py WORK KEYS MEMORY_BYTES THREADS
"""

import os
import sys
import time

import duckdb


def main():
    work, keys, memory, threads = sys.argv[1], *map(int, sys.argv[2:])
    path = os.path.join(work, "out.duckdb")
    base = duckdb.connect(path, config={"memory_limit": f"{memory}B", "threads": threads, "temp_directory": os.path.join(work, "out.tmp")})
    base.execute("SET preserve_insertion_order = false")
    base.execute(f"CREATE TABLE keys AS SELECT hash(range)::UBIGINT AS key FROM range({keys})")
    base.execute("CHECKPOINT")
    os.sync()
    begin = time.monotonic()
    base.execute("CREATE TABLE sorted AS SELECT key FROM keys ORDER BY key")
    base.execute("CHECKPOINT")
    os.sync()
    seconds = time.monotonic() - begin
    (count,) = base.execute("SELECT count(*) FROM sorted").fetchone()
    base.close()
    for name in os.listdir(work):
        if name.startswith("out."):
            full = os.path.join(work, name)
            os.rmdir(full) if os.path.isdir(full) else os.remove(full)
    if count != keys:
        sys.exit(f"{count} of {keys} keys")
    print(f"{seconds:.3f}")


if __name__ == "__main__":
    main()
