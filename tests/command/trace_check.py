#!/usr/bin/env python3
"""A trace beside the report of its run: trace_check.py TRACE REPORT RANKS. Says what is wrong, one line each; exit code 1 then.
REPORT is /dev/null of a command that has none; of one that sorts nothing it says less, and no byte goes to another rank.

What it looks at stands in `wrong`. `trace_check.py --self` shows it traces that are wrong.
"""

import copy
import json
import re
import sys

ROUNDING = 0.0011  # us: the file has ns


def spans_of(trace):
    """By (pid, tid), in the order of the file."""
    threads = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    return threads


def wrong_threads(threads):
    for thread, spans in threads.items():
        around = []
        for span in spans:
            begin, end = span["ts"], span["ts"] + span["dur"]
            if begin < 0 or span["dur"] < 0:
                yield f"{thread}: {span['name']} begins at {begin} and takes {span['dur']}"
            while around and around[-1] <= begin + ROUNDING:
                around.pop()
            if around and end > around[-1] + ROUNDING:
                yield f"{thread}: {span['name']} at {begin} ends after the span around it"
            around.append(end)
        if any(a["ts"] > b["ts"] for a, b in zip(spans, spans[1:])):
            yield f"{thread}: spans are in no order"


def wrong(trace, report, ranks):
    events, told = trace["traceEvents"], trace["otherData"]["ranks"]
    names = {(e["pid"], e["name"]): e["args"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    spans = [event for event in events if event["ph"] == "X"]
    yield from wrong_threads(spans_of(trace))
    if [rank["rank"] for rank in told] != list(range(ranks)) or {event["pid"] for event in spans} != set(range(ranks)):
        yield "not all ranks are there"
    for rank in range(ranks):
        if not re.fullmatch(rf"rank {rank}, \S+, (host engine|GPU \d+)", names.get((rank, "process_name"), {}).get("name", "")):
            yield f"rank {rank} has no name"
        mine = {event["name"] for event in spans if event["pid"] == rank}
        if not mine >= ({"plan", "agree"} if "per_rank" in report else {"agree"}):
            yield f"rank {rank} has spans {sorted(mine)}"
    if {(event["pid"], event["tid"]) for event in spans} - threads:
        yield "a thread has no name"
    if report and (report["trace"]["spans"] != len(spans) or report["trace"]["lost_spans"] != sum(r["lost_spans"] for r in told)):
        yield f"{len(spans)} spans, and the report says {report['trace']}"
    sent = sum(event["args"].get("sent", 0) for event in spans)
    if sent != report.get("moved_bytes", 0):
        yield f"{sent} bytes were sent, and the report says {report.get('moved_bytes', 0)}"
    if any(not -1 < event["args"].get(which, 0) < ranks for event in spans for which in ("to", "from")):
        yield "bytes go to a rank that is none"
    if "per_rank" not in report:
        return
    if sum(one["moved_bytes"] for one in report["per_rank"]) != report["moved_bytes"]:
        yield "bytes of ranks do not add up"
    for phase, seconds in report.get("parts", report["phases"]).items():
        if phase not in ("read", "write", "verify") and max(one["phases"][phase] for one in report["per_rank"]) != seconds:
            yield f"{phase} takes {seconds} s, which is of no rank"
    for phase in ("read", "write", "verify"):
        if abs(max(one["phases"][phase] for one in report["per_rank"]) - report["phases"][phase]) > 2e-9:
            yield f"{phase} takes {report['phases'][phase]} s, which is of no rank"


def self_test():
    def span(begin, length, pid=0, name="plan", **args):
        return {"ph": "X", "name": name, "pid": pid, "tid": 0, "ts": begin, "dur": length, "args": args}

    def names(pid):
        yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": f"rank {pid}, a, host engine"}}
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": 0, "args": {"name": "main"}}

    spans = [span(0, 9), span(1, 2, name="agree", sent=5, to=1), span(3, 6), span(0, 9, pid=1), span(1, 2, pid=1, name="agree")]
    right = {"traceEvents": [*names(0), *names(1), *spans],
             "otherData": {"ranks": [{"rank": 0, "lost_spans": 0}, {"rank": 1, "lost_spans": 0}]}}  # fmt: skip
    files = {"read": 0.1, "write": 0.2, "verify": 0.0}
    report = {"trace": {"spans": 5, "lost_spans": 0}, "moved_bytes": 5, "phases": {"merge": 2.0, **files},
              "per_rank": [{"moved_bytes": 5, "phases": {"merge": 2.0, **files}}, {"moved_bytes": 0, "phases": {"merge": 1.0, **files}}]}  # fmt: skip
    assert list(wrong(right, report, 2)) == [], list(wrong(right, report, 2))
    changes = ["t['traceEvents'][5]['dur'] = 9", "t['traceEvents'][5]['dur'] = -1", "t['traceEvents'][5]['args']['sent'] = 6",
               "t['traceEvents'][5]['args']['to'] = 2", "del t['traceEvents'][2:4]", "del t['traceEvents'][7:]",
               "t['otherData']['ranks'].pop()", "t['otherData']['ranks'][1]['lost_spans'] = 1", "r['trace']['spans'] = 6",
               "r['per_rank'][0]['moved_bytes'] = 4", "r['phases']['merge'] = 3.0", "r['phases']['write'] = 0.3", "t['traceEvents'][5]['tid'] = 1"]  # fmt: skip
    for change in changes:
        t, r = copy.deepcopy(right), copy.deepcopy(report)
        exec(change)
        assert list(wrong(t, r, 2)), change


if sys.argv[1] == "--self":
    self_test()
else:
    with open(sys.argv[1]) as trace_file, open(sys.argv[2]) as report_file:
        found = list(wrong(json.load(trace_file), json.loads(report_file.read() or "{}"), int(sys.argv[3])))
    print(*found[:10], sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
