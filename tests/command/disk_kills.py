#!/usr/bin/env python3
"""Kills sorts that go by way of the disk and goes on with them: disk_kills.py SEED KILLS HYPERSORT MPIRUN...

KILLS times and more in each phase all ranks and mpirun are killed outright: when so many lines are in the journals, and some milliseconds
later. What is left has names of the command's own and the old output, or the new one whole. Then the same command on another number
of ranks, killed again in a third of the cases, must end with the wanted bytes and leave nothing. Runs in an empty directory.
"""

import glob
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import time

RUNS, KEYS, TEMPORARY = 24, 150000, ["one", "two"]
PHASES = ["runs", "cuts", "segments", "end"]
OWN_NAMES = re.compile(r"out(\.hypersort-[0-9a-f]{16}\.part|(\.[0-9a-f]{8})?\.hypersort-runs(/(plan|journal-\d+|run-\d{6}(\.part)?|manifest[.\w-]*|"
                       r"\.hypersort-lock))?)?")


def journal_lines(kind):
    """Whole lines of that kind, of all ranks."""
    count = 0
    for name in glob.glob("**/out*.hypersort-runs/journal-*", recursive=True):
        try:
            with open(name, encoding="ascii") as file:
                count += sum(line.startswith(kind + " ") and line.endswith("\n") for line in file)
        except FileNotFoundError:
            pass
    return count


def is_time(phase, wanted):
    """Has the sort come so far?"""
    if phase == "runs":
        return journal_lines("run") >= wanted
    return journal_lines("run") >= RUNS if phase == "cuts" else journal_lines("segment") >= (wanted if phase == "segments" else RUNS)


def children_of(pid):
    found = []
    for name in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(name, encoding="ascii") as file:
                found += [int(word) for word in file.read().split()]
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill_all(process):
    """mpirun and its ranks, which it could tell to end in good order; all are gone afterwards."""
    pids = [process.pid] + children_of(process.pid)
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()
    while any(map(is_alive, pids)):
        time.sleep(0.002)


class Kills:
    def __init__(self, seed, launch):
        self.draw, self.launch, self.failures, self.ended, self.reached = random.Random(seed), launch, 0, 0, []
        keys = [self.draw.randrange(1 << self.draw.choice([4, 64])) for _ in range(KEYS)]
        self.wanted = struct.pack(f"<{KEYS}Q", *sorted(keys))
        with open("in", "wb") as file:
            file.write(struct.pack(f"<{KEYS}Q", *keys))
        for name in TEMPORARY:
            os.mkdir(name)

    def fail(self, text):
        self.failures += 1
        print(f"failed: {text}")

    def start(self, ranks, temporary):
        command = [word if word != "RANKS" else str(ranks) for word in self.launch]
        command += ["sort", "in", "--type", "u64", "-o", "out", "--engine", "host", "--threads", "1", "--runs", str(RUNS), "--json"]
        command += [word for name in temporary for word in ("-T", name)]
        with open("/dev/null", "rb") as nothing:
            return subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def kill_in(self, phase, ranks, temporary):
        """False: it ended before."""
        wanted, later = self.draw.randrange(RUNS), self.draw.choice([0, self.draw.random() * 0.02])
        process, deadline = self.start(ranks, temporary), time.monotonic() + 120
        while process.poll() is None and not is_time(phase, wanted) and time.monotonic() < deadline:
            time.sleep(0.0005)
        time.sleep(later)
        if process.poll() is not None:
            return False
        kill_all(process)
        return True

    def look_at_rest(self, text):
        """Only names of ours, and the output is the old one or the new one. Which phase was it?"""
        names = [os.path.join(folder, name)[2:] for folder, folders, files in os.walk(".") for name in folders + files]
        foreign = [name for name in names if not OWN_NAMES.fullmatch(re.sub("^(one|two)/", "", name)) and name not in ["in", *TEMPORARY]]
        if foreign:
            self.fail(f"{text}: left {foreign}")
        with open("out", "rb") as file:
            if file.read() not in (b"old", self.wanted):
                self.fail(f"{text}: the output is neither the old nor the new one")
        runs, segments = journal_lines("run"), journal_lines("segment")
        self.reached.append("runs" if runs < RUNS else "cuts" if segments == 0 else "segments" if segments < RUNS else "end")

    def finish(self, text, ranks, temporary):
        begun = bool(glob.glob("**/out*.hypersort-runs/manifest", recursive=True))
        process = self.start(ranks, temporary)
        out, err = process.communicate(timeout=300)
        stale = re.fullmatch("hypersort: \\S*out\\.hypersort-[0-9a-f]{16}\\.part was left by a run that was killed.*\n", err)
        if process.returncode or (err and not (stale and not begun)):
            self.fail(f"{text}: exit code {process.returncode}: {err.strip()}")
        elif (json.loads(out)["resumed"] == "begun") != begun:
            self.fail(f"{text}: resumed is {json.loads(out)['resumed']}, with a manifest: {begun}")
        with open("out", "rb") as file:
            if file.read() != self.wanted:
                self.fail(f"{text}: other bytes")
        for name in glob.glob("out.hypersort-*.part") if stale else []:
            os.remove(name)
        left = set(os.listdir(".")) - {"in", "out", *TEMPORARY}
        left |= {f"{name}/{inner}" for name in TEMPORARY for inner in os.listdir(name)}
        if left:
            self.fail(f"{text}: left {sorted(left)}")

    def case(self, phase):
        with open("out", "wb") as file:
            file.write(b"old")
        temporary = self.draw.choice([[], TEMPORARY])
        ranks = [self.draw.choice([1, 2, 3, 5]) for _ in range(3)]
        text = f"killed in {phase}, on {ranks} ranks, -T {temporary}"
        if not self.kill_in(phase, ranks[0], temporary):
            self.ended += 1
        else:
            self.look_at_rest(text)
            if self.draw.random() < 1 / 3 and self.kill_in(self.draw.choice(PHASES), ranks[1], temporary):
                self.look_at_rest(text + ", then again")
        self.finish(text, ranks[2], temporary)


def main():
    kills = Kills(int(sys.argv[1]), sys.argv[4:] + [sys.argv[3]])
    for number in range(8 * int(sys.argv[2])):  # the phase may be over when the signal comes
        for phase in PHASES:
            if number < int(sys.argv[2]) or kills.reached.count(phase) < int(sys.argv[2]):
                kills.case(phase)
    reached = {phase: kills.reached.count(phase) for phase in PHASES}
    print(f"seed {sys.argv[1]}: killed when this was under way {reached}, {kills.ended} ended before, {kills.failures} failures")
    sys.exit(kills.failures > 0 or 0 in reached.values())


if __name__ == "__main__":
    main()
