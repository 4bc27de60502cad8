#!/usr/bin/env python3
"""Pages of hypersort report, looked at: report_pages.py make RANKS RUN TRACE writes a report and a trace that are made up, with names
that would be elements of their own; report_pages.py look PAGE RUN [TRACE] says what is wrong with the page of a report, one line
each, with exit code 1. `report_pages.py self PAGE RUN TRACE` shows it that page with faults.
"""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

NASTY = "<script>alert('1')</script> & \"two\" \u20ac \x01\x7f \U0001f600.npy"
PHASES = ["read", "h2d", "local_sort", "exchange", "merge", "d2h", "gather", "write", "verify"]
XML = "{http://www.w3.org/1999/xhtml}"


def made_up_run(ranks):
    per_rank = [
        {"rank": rank, "host": f"node-{rank // 8}-<i>.cluster.example", "gpu": rank % 8, "gpu_name": NASTY, "moved_bytes": 1000 * rank,
         "phases": {phase: (i + 1) * (1 + rank % 3) / 100 * (phase != "gather") for i, phase in enumerate(PHASES)}}
        for rank in range(ranks)]  # fmt: skip
    return {
        "schema_version": 1, "build": NASTY, "ranks": ranks, "engine": "cuda", "type": "f64", "order": "ascending", "keys": 2**31,
        "bytes": 2**34, "exchange": "direct", "transport": "mixed", "passes": 1, "runs": 0, "segments": 0, "run_bytes_on_disk": 0,
        "phases": {phase: max(one["phases"][phase] for one in per_rank) for phase in PHASES},
        "moved_bytes": sum(one["moved_bytes"] for one in per_rank), "gkeys_per_s": 3.5,
        "crossed_bytes": 2**29, "bytes_per_crossed_key": 4.87 if ranks > 1 else None,
        "paths": {"ipc": {"pairs": 7, "moved_bytes": 2**30, "moved_bytes_largest": 2**20, "crossed_bytes": 2**29, "seconds": 0.01, "gb_per_s": 26.8}},
        "verify": {"sorted": True, "count_ok": True, "fingerprint_ok": False}, "input": NASTY, "inputs": [NASTY] * 40,
        "output": "x" * 300, "resumed": None, "kept_bytes": 0, "job": {"scheduler": "slurm", "id": NASTY, "restarts": 1},
        "hosts": [f"node-{i}-<i>" for i in range(ranks // 8 + 1)], "per_rank": per_rank, "trace": None,
        "command": f"hypersort sort '{NASTY}'", "ended": "2026-01-01T00:00:00Z"}  # fmt: skip


def made_up_trace(ranks):
    events = []
    for rank in range(ranks):
        for thread, name in enumerate(["main", "stream work", "stream out", "thread 1"]):
            events.append({"ph": "M", "name": "thread_name", "pid": rank, "tid": thread, "args": {"name": name}})
        spans = [(0, "sort keys", 0, 1e6), (0, "local sort", 10, 4e5), (0, NASTY, 20, 1e5), (0, "agree", 2e5, 1e5), (1, "sort", 30, 3e5)]
        spans += [(2, "copy", 5e5 + 40 * i, 30) for i in range(200)] + [(3, "read file", 7e5 + 2e4 * i, 1.5e4) for i in range(5)]
        for thread, name, begin, length in spans:
            events.append({"ph": "X", "name": name, "pid": rank, "tid": thread, "ts": begin, "dur": length, "args": {"sent": 9, "to": 1}})
    told = [{"rank": r, "spans": 9, "lost_spans": 2, "clock_error_us": 1.5, "stream_error_us": 8.0} for r in range(ranks)]
    return {"displayTimeUnit": "ms", "otherData": {"ranks": told}, "traceEvents": events}


class Tags(HTMLParser):
    """What a browser's reading has: elements, and addresses in their attributes."""

    def __init__(self):
        super().__init__()
        self.names, self.addresses = set(), []

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "data") or name.startswith("on")]


def shown(text):
    """As a page shows it: without what XML cannot have."""
    return re.sub("[\x00-\x08\x0b-\x1f\x7f]", "\ufffd", text)


def wrong_figure(svg):
    width, height = (float(number) for number in svg.get("viewBox").split()[2:])
    for rect in svg.iter(f"{XML}rect"):
        x, y, w, h = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        if x < 0 or y < 0 or w < 0 or x + w > width + 0.01 or y + h > height + 0.01:
            yield f"a bar at {x}, {y} of {w} x {h} is outside of {width} x {height}"
            return
    for text in svg.iter(f"{XML}text"):
        x, y, letters = float(text.get("x")), float(text.get("y")), 5.6 * len(text.text or "")
        end = {"end": x, "middle": x + letters / 2}.get(text.get("text-anchor"), x + (0 if "in" in text.get("class", "") else letters))
        begin = {"end": x - letters, "middle": x - letters / 2}.get(text.get("text-anchor"), x)
        if begin < -4 or end > width + 4 or y > height:
            yield f"'{text.text}' at {x}, {y} is cut"
            return


def wrong(page, run, trace):
    tags = Tags()
    tags.feed(page)
    if extra := tags.names - set("html head meta title style body h1 h2 p code table tr th td span i div svg line text rect".split()):
        yield f"elements {extra}"
    if tags.addresses or re.search(r"url\(|@import|<link", page):
        yield f"something comes from elsewhere: {tags.addresses}"
    root = ElementTree.fromstring(page)
    text = "".join(root.itertext())
    wanted = [run["build"], run.get("command", ""), run["inputs"][0], run["output"] or "", (run["exchange"] or "").replace("none", "")]
    for word in wanted:
        if shown(word) not in text:
            yield f"{word!r} is missing"
    if missing := {"Phases", "Beside the least"} - {heading.text for heading in root.iter(f"{XML}h2")}:
        yield f"headings {missing} are missing"
    others = run.get("index") or run.get("by") or "distinct" in run
    deals = run.get("run_bytes_on_disk") and (run.get("values") or "%" in run["output"])
    if ("bytes read and written" in text) != bool(run["output"] and not others and not deals):
        yield "bytes of files are told where they are not known, or not told"
    figures = list(root.iter(f"{XML}svg"))
    if len(figures) != bool(run.get("per_rank")) + bool(trace):
        yield f"{len(figures)} figures"
        return
    for figure in figures:
        yield from wrong_figure(figure)
    if run.get("per_rank"):
        bars = {}
        for rect in figures[0].iter(f"{XML}rect"):
            rank, phase = re.match(r"rank (\d+), (\w+):", rect.find(f"{XML}title").text).groups()
            bars[int(rank), phase] = float(rect.get("width"))
        beside = ("read", "write") if run.get("passes") == 2 else ()
        seconds = {(one["rank"], phase): value for one in run["per_rank"] for phase, value in one["phases"].items() if phase not in beside}
        scale = sum(bars.values()) / max(sum(seconds.values()), 1e-12)
        for place, value in seconds.items():
            if abs(bars.get(place, 0) - value * scale) > 0.02:
                yield f"the bar of {place} is {bars.get(place, 0)} wide, for {value} s"
                return
    each = run.get("bytes_per_crossed_key")
    if (f"{each or 0:.2f} bytes for each key that changed its node" in text) != bool(each):
        yield f"a key takes {each} bytes between nodes"
    if trace:
        names = {"".join(label.itertext()) for label in figures[-1].iter(f"{XML}text")}
        ranks = {event["pid"] for event in trace["traceEvents"]}
        if missing := {f"rank {rank}" for rank in ranks} - names:
            yield f"the timeline lacks {sorted(missing)[:3]}"
        lost = sum(one["lost_spans"] for one in trace["otherData"]["ranks"])
        if (f"{lost} spans are lost" in text) != (lost > 0):
            yield f"{lost} spans are lost"


def self_test(page, run, trace):
    assert not list(wrong(page, run, trace)), list(wrong(page, run, trace))
    faults = [("<h1>", "<h1><script>"), ("</h1>", "</h1><script>1</script>"), ("&#60;script&#62;", "<script>"), ("</body>", "<img src='x'/></body>"),
              ("<h2>Phases</h2>", ""), ("width=\"", "width=\"9"), ("rank 1<", "rank 2<"), ("spans are lost", ""), ("4.87 bytes", "4.86 bytes")]  # fmt: skip
    for old, new in faults:
        assert old in page, old
        try:
            assert list(wrong(page.replace(old, new), run, trace)), old
        except ElementTree.ParseError:
            pass


def load(name):
    with open(name) as file:
        return json.load(file)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        for name, made in zip(sys.argv[3:], (made_up_run, made_up_trace)):
            with open(name, "w") as file:
                json.dump(made(int(sys.argv[2])), file)
    else:
        with open(sys.argv[2], encoding="utf-8") as file:
            content = file.read()
        inputs = load(sys.argv[3]), load(sys.argv[4]) if len(sys.argv) > 4 else None
        if sys.argv[1] == "self":
            self_test(content, *inputs)
        else:
            found = list(wrong(content, *inputs))
            print(*found[:10], sep="\n", end="\n" if found else "")
            sys.exit(bool(found))
