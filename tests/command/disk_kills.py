#!/usr/bin/env python3
"""Kills sorts that go by way of the disk and goes on with them: disk_kills.py SEED KILLS KINDS HYPERSORT MPIRUN...

KINDS says what is sorted to which outputs (KINDS below), by commas. KILLS times and more in each phase of each kind all ranks and mpirun are
killed outright, or in a third of the cases asked to stop: when so many lines are in the journals, and some milliseconds later. What is
left has names of the command's own and each output is the old one or the new one whole. Then the same command on another number of ranks, killed again in a third of the cases,
must end with the wanted bytes and leave nothing. Runs in an empty directory.
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

RUNS, KEYS, TEMPORARY, CHECKPOINT = 24, 150000, ["one", "two"], "kept"
KINDS = {  # options, and the outputs that they name
    "keys": (["-o", "out"], ["out"]),
    "index": (["--index", "i"], ["i"]),
    "values": (["--values", "values", "--value-bytes", "3", "-o", "out", "-O", "v"], ["out", "v"]),
    "unique": (["--unique", "-o", "out"], ["out"]),
    "counts": (["--unique", "--counts", "c", "--index", "i", "--values", "values", "--value-bytes", "3", "-o", "out", "-O", "v"],
               ["out", "v", "i", "c"]),
    "rank": (["-o", "out.%r"], ["out.%r"]),
}
ID = "[0-9a-f]{16}"
NAME = r"(out(\.\d)?|v|i|c)"
OWN_NAMES = re.compile(rf"{NAME}(\.hypersort-{ID}(-dealt)?\.part|(\.[0-9a-f]{{8}})?\.hypersort-runs(-{ID}-sorted|/(plan|sorted|journal-\d+|"
                       rf"run-\d{{6}}(\.part)?|manifest[.\w-]*|\.hypersort-lock))?)?|{CHECKPOINT}(/(journal-\d+|manifest|\.hypersort-\w+))?"
                       rf"|{NAME}\.hypersort-{ID}\+dealt\.part")  # what an output was before, while several get their names


def journal_lines(kind):
    """Parts of which there is a whole line of that kind, of all ranks."""
    found = set()
    for name in glob.glob("**/journal-*", recursive=True):
        try:
            with open(name, encoding="ascii") as file:
                found |= {line.split()[1] for line in file if line.startswith(kind + " ") and line.endswith("\n")}
        except FileNotFoundError:
            pass
    return len(found)


def shares(ranks):
    """Where the shares of so many ranks begin and end."""
    return [KEYS // ranks * rank + KEYS % ranks * rank // ranks for rank in range(ranks + 1)]


def pieces_of(kind, ranks):
    """How many are dealt out: with a file per rank they are cut where one begins, too."""
    if kind == "keys":
        return 0
    part = -(-KEYS // RUNS)
    return len(set(range(0, KEYS, part)) | set(shares(ranks)[:-1] if kind == "rank" else []))


def phases_of(kind):
    return ["runs", "cuts", "segments"] + ([] if kind == "keys" else ["deal"]) + ["end"]


def is_time(phase, wanted, pieces):
    """Has the sort come so far?"""
    if phase in ("runs", "segments"):
        return journal_lines(phase[:-1]) >= wanted
    if phase == "deal":
        return journal_lines("segment") >= RUNS and journal_lines("dealt") >= wanted
    return journal_lines("run") >= RUNS and (phase == "cuts" or journal_lines("segment") >= RUNS and journal_lines("dealt") >= pieces)


def phase_now(pieces):
    runs, segments, dealt = (journal_lines(line) for line in ("run", "segment", "dealt"))
    if runs < RUNS or segments < RUNS:
        return "runs" if runs < RUNS else "cuts" if segments == 0 else "segments"
    return "end" if dealt >= pieces else "deal"


def sorted_outputs(keys, values):
    """What each output is to be, of all keys and of each key one."""
    order = sorted(range(KEYS), key=keys.__getitem__)
    heads = [n for n in range(KEYS) if n == 0 or keys[order[n]] != keys[order[n - 1]]]
    counts = [end - begin for begin, end in zip(heads, heads[1:] + [KEYS])]
    both = []
    for places in (order, [order[n] for n in heads]):
        both.append({"out": struct.pack(f"<{len(places)}Q", *(keys[n] for n in places)), "i": struct.pack(f"<{len(places)}q", *places),
                     "v": b"".join(values[3 * n:3 * n + 3] for n in places), "c": struct.pack(f"<{len(counts)}q", *counts)})
    return both


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
        self.draw, self.launch, self.failures, self.ended, self.stopped, self.reached = random.Random(seed), launch, 0, 0, 0, []
        keys = [self.draw.randrange(1 << self.draw.choice([4, 64])) for _ in range(KEYS)]
        values = self.draw.randbytes(3 * KEYS)
        self.all, self.unique = sorted_outputs(keys, values)
        with open("in", "wb") as file:
            file.write(struct.pack(f"<{KEYS}Q", *keys))
        with open("values", "wb") as file:
            file.write(values)
        for name in TEMPORARY:
            os.mkdir(name)

    def fail(self, text):
        self.failures += 1
        print(f"failed: {text}", flush=True)

    def begin_case(self, kind):
        self.kind, self.options, names = kind, *KINDS[kind]
        self.ranks = set()  # on which it was killed
        self.named = False  # an output has its name before the end: what was dealt out to it is dealt out again
        self.wanted = {name: (self.unique if kind in ("unique", "counts") else self.all)[name.removesuffix(".%r")] for name in names}
        for name in glob.glob("out*"):
            os.remove(name)
        for name in self.files_of(8):
            with open(name, "wb") as file:
                file.write(b"old")

    def files_of(self, ranks):
        """The outputs of so many ranks, and what each must be."""
        files = {}
        for name, wanted in self.wanted.items():
            if name.endswith("%r"):
                ends = shares(ranks)
                files |= {name.replace("%r", str(rank)): wanted[8 * ends[rank]:8 * ends[rank + 1]] for rank in range(ranks)}
            else:
                files[name] = wanted
        return files

    def start(self, ranks, words):
        command = [word if word != "RANKS" else str(ranks) for word in self.launch]
        command += ["sort", "in", "--type", "u64", "--engine", "host", "--threads", "1", "--runs", str(RUNS), "--json", *self.options, *words]
        with open("/dev/null", "rb") as nothing:
            return subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def kill_in(self, phase, ranks, words, soon=False):
        """False: it ended before. soon: as soon as the phase has begun, as it was over when the signal came."""
        wanted, later = (1, 0) if soon else (self.draw.randrange(RUNS), self.draw.choice([0, self.draw.random() * 0.02]))
        process, deadline = self.start(ranks, words), time.monotonic() + 120
        while process.poll() is None and not is_time(phase, wanted, pieces_of(self.kind, ranks)) and time.monotonic() < deadline:
            time.sleep(0.0005)
        time.sleep(later)
        if process.poll() is not None:
            process.communicate()
            return False
        if self.draw.random() < 2 / 3:
            kill_all(process)
            return True
        return self.stop(process, ranks)

    def stop(self, process, ranks):
        """Ask one rank, or mpirun, which hands it on. False: it ended all the same."""
        ranks_pids = children_of(process.pid)
        asked = self.draw.choice([(process.pid, signal.SIGUSR1)] + [(pid, signal.SIGTERM) for pid in ranks_pids[:1]])
        try:
            if ranks_pids:  # else mpirun alone would end of it
                os.kill(*asked)
        except ProcessLookupError:
            pass
        _, err = process.communicate(timeout=300)
        if process.returncode == 0:
            return False
        line = "hypersort: stopped by SIG(USR1|TERM) while .*\n"
        if process.returncode == -signal.SIGUSR1 and asked[0] == process.pid and re.fullmatch(f"({line})?", err):
            return True  # mpirun, whose ranks had just ended, is killed by what it has nobody to hand on to
        if process.returncode != 75 or not re.fullmatch(line, err):
            self.fail(f"{self.kind}, {ranks} ranks: stopped with exit code {process.returncode}: {err.strip()}")
        self.stopped += 1
        return True

    def look_at_rest(self, text, ranks):
        """Only names of ours, and each output is the old one or the new one. Which phase was it?"""
        names = [os.path.join(folder, name)[2:] for folder, folders, files in os.walk(".") for name in folders + files]
        foreign = [name for name in names if not OWN_NAMES.fullmatch(re.sub("^(one|two)/", "", name)) and name not in ["in", "values", *TEMPORARY]]
        if foreign:
            self.fail(f"{text}: left {foreign}")
        for name, wanted in self.files_of(ranks).items():
            with open(name, "rb") as file:
                found = file.read()
            self.named = self.named or found == wanted
            before = [self.files_of(others).get(name) for others in self.ranks]  # of which it may have had its name
            if found not in [b"old", wanted, *before]:
                self.fail(f"{text}: {name} is neither the old nor the new one")
        self.reached.append((self.kind, phase_now(pieces_of(self.kind, ranks))))
        self.ranks.add(ranks)

    def finish(self, text, ranks, words):
        begun = bool(glob.glob("**/manifest", recursive=True))
        dealt = journal_lines("dealt")
        process = self.start(ranks, words)
        out, err = process.communicate(timeout=300)
        stale = re.fullmatch("(hypersort: \\S*\\.part was left by a run that was killed.*\n)+", err)
        if process.returncode or (err and not (stale and not begun)):
            self.fail(f"{text}: exit code {process.returncode}: {err.strip()}")
        else:
            report = json.loads(out)
            if (report["resumed"] == "begun") != begun:
                self.fail(f"{text}: resumed is {report['resumed']}, with a manifest: {begun}")
            dealt *= self.kind != "rank" or ranks in self.ranks  # on another number of ranks the pieces are others
            mixed = self.kind == "rank" and len(self.ranks) > 1  # of which some are gone, if the files were made anew
            if report["kept_dealt"] != dealt and not self.named and not mixed:
                self.fail(f"{text}: kept are {report['kept_dealt']} parts of {dealt} that were dealt out")
        for name, wanted in self.files_of(ranks).items():
            with open(name, "rb") as file:
                if file.read() != wanted:
                    self.fail(f"{text}: {name} has other bytes")
        for name in glob.glob("*.hypersort-*.part") if stale else []:
            os.remove(name)
        left = {name for name in os.listdir(".") if not re.fullmatch(NAME, name)} - {"in", "values", *TEMPORARY}
        left |= {f"{name}/{inner}" for name in TEMPORARY for inner in os.listdir(name)}
        if os.path.isdir(CHECKPOINT):
            left = left - {CHECKPOINT} | set(os.listdir(CHECKPOINT))
        if left:
            self.fail(f"{text}: left {sorted(left)}")

    def case(self, kind, phase, soon):
        self.begin_case(kind)
        words = [word for name in self.draw.choice([[], TEMPORARY]) for word in ("-T", name)]
        words += self.draw.choice([[], ["--checkpoint", CHECKPOINT]])
        ranks = [self.draw.choice([1, 2, 3, 5]) for _ in range(3)]
        if kind == "rank" and self.draw.random() < 1 / 2:
            ranks = ranks[:1] * 3
        text = f"{kind}: killed in {phase}, on {ranks} ranks, {' '.join(words)}"
        if not self.kill_in(phase, ranks[0], words, soon):
            self.ended += 1
        else:
            self.look_at_rest(text, ranks[0])
            if self.draw.random() < 1 / 3 and self.kill_in(self.draw.choice(phases_of(kind)), ranks[1], words):
                self.look_at_rest(text + ", then again", ranks[1])
        self.finish(text, ranks[2], words)


def main():
    seed, count, kinds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(",")
    kills = Kills(seed, sys.argv[5:] + [sys.argv[4]])
    wanted = [(kind, phase) for kind in kinds for phase in phases_of(kind)]
    for number in range(40 * count):  # the phase may be over when the signal comes
        for kind, phase in wanted:
            if number < count or kills.reached.count((kind, phase)) < count:
                kills.case(kind, phase, number >= count)
    for kind in kinds:
        print(f"{kind}: killed when this was under way {({phase: kills.reached.count((kind, phase)) for phase in phases_of(kind)})}")
    print(f"seed {seed}: {len(kills.reached)} kills and stops, {kills.stopped} of these stops, {kills.ended} ended before, {kills.failures} failures")
    sys.exit(kills.failures > 0 or any(place not in kills.reached for place in wanted))


if __name__ == "__main__":
    main()
