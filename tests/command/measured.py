#!/usr/bin/env python3
"""Runs a command and writes what it took: measured.py FILE COMMAND...

FILE.PID gets a line: resident memory at most, bytes read, bytes written (by calls, from the cache or not). Exits as the command does.
Under mpirun each rank has one.
"""

import os
import sys

pid = os.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
with open(f"/proc/{pid}/io", encoding="ascii") as file:
    counts = dict(line.split(": ") for line in file.read().splitlines())
_, status, usage = os.wait4(pid, 0)
with open(f"{sys.argv[1]}.{pid}", "w", encoding="ascii") as file:
    file.write(f"{usage.ru_maxrss * 1024} {counts['rchar']} {counts['wchar']}\n")
sys.exit(os.waitstatus_to_exitcode(status))
