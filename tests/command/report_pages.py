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
TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1}
KINDS = {"sort keys": 0, "local sort": 0, "sort": 1, "merge": 1, "send": 2, "copy": 3, "read file": 4, "write file": 4, "agree": 5}


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


def figures_of(unit):
    return {prefix + unit: 1000.0**i for i, prefix in enumerate(["", *"kMGTPE"])}


def is_near(text, value, units):
    """A number of four digits, with its unit."""
    number, _, unit = text.partition(" ")
    return unit in units and abs(float(number) * units[unit] - value) <= 5.1e-4 * abs(value)


def rows_under(root, heading):
    """The texts of the table under a heading that begins so, without its head."""
    rows, under = [], False
    for element in root.find(f"{XML}body"):
        if element.tag == f"{XML}h2":
            under = element.text.startswith(heading)
        elif under and element.tag == f"{XML}table":
            rows += [["".join(cell.itertext()) for cell in row] for row in element][1:]
    return rows


def wrong_facts(root, run):
    facts = {row[0].text: "".join(row[1].itertext()) for row in root.find(f".//{XML}table[@class='facts']")}
    wanted = {"output": run["output"], "order": run.get("order"), "by": run.get("key"), "index": run.get("index"), "build": run["build"]}
    exchange = run.get("exchange") or "none"
    wanted["how"] = f"engine {run['engine']}" + (f", exchange {exchange}" if exchange != "none" else "")
    if exchange != "none" and "transport" in run:
        wanted["how"] += f", transport {run['transport']}"
    for name, texts in ("input", run["inputs"]), ("hosts", run.get("hosts") or []):
        wanted[name] = ", ".join(texts[:16]) + (f", and {len(texts) - 16} more" if len(texts) > 16 else "")
    verify = run["verify"]
    wanted["verified"] = ", ".join(f"{name.replace('_', ' ')}: {'yes' if good else 'NO'}" for name, good in verify.items()) if verify else "no"
    if job := run.get("job"):
        wanted["job"] = f"{job['id']}, {job['scheduler']}, restarted {job['restarts']} times"
    for name, text in wanted.items():
        if facts.get(name, "") != shown(text or ""):
            yield f"{name} is {facts.get(name)!r}, not {text!r}"
    if (facts.get(None) == "The result is wrong.") != bool(verify and not all(verify.values())):
        yield f"the result is {facts.get(None)!r}"
    if "bytes" in run and not is_near(facts["size"], run["bytes"], figures_of("B")):
        yield f"the size is {facts['size']}"
    if run.get("gkeys_per_s") and run.get("keys"):
        rates = facts["rate"].split(", ")
        if rates[2:] != ["with reading and writing"] or not is_near(
                rates[0], run["gkeys_per_s"] * 1e9, figures_of("keys/s")) or not is_near(
                rates[1], run["gkeys_per_s"] * 1e9 * run["bytes"] / run["keys"], figures_of("B/s")):  # fmt: skip
            yield f"the rate is {facts['rate']}"
    if run.get("passes") == 2 and f"{run['runs']} sorted runs, {run['segments']} segments" not in facts.get("passes", ""):
        yield f"passes are {facts.get('passes')}"


def wrong_tables(root, run, beside):
    bytes_of = figures_of("B")
    sums = [sum(value for phase, value in one["phases"].items() if phase not in beside) for one in run["per_rank"]]
    phases = {row[0].replace(" beside the others", ""): row[1:] for row in rows_under(root, "Phases")}
    for phase in run["per_rank"][0]["phases"]:
        values = [one["phases"][phase] for one in run["per_rank"]]
        if (phase in phases) != (max(values) >= 1e-6):
            yield f"{phase} is in the table, or is not"
        elif phase in phases:
            most, rank, mean, least, times = phases[phase]
            mean_of = sum(values) / len(values)
            if not (is_near(most, max(values), TIMES) and is_near(mean, mean_of, TIMES) and is_near(least, min(values), TIMES)
                    and values[int(rank)] == max(values) and abs(float(times) - max(values) / mean_of) < 0.006):  # fmt: skip
                yield f"{phase}: {phases[phase]}"
    paths = {row[0]: row[1:] for row in rows_under(root, "Paths")}
    for name, path in (run.get("paths") or {}).items() if run["moved_bytes"] else ():
        pairs, *sizes, seconds, rate = paths[name]
        told = [path[size] for size in ("moved_bytes", "crossed_bytes", "moved_bytes_largest")]
        if not (int(pairs) == path["pairs"] and all(is_near(*one, bytes_of) for one in zip(sizes, told)) and is_near(seconds, path["seconds"], TIMES)
                and is_near(rate, path["gb_per_s"] * 1e9, figures_of("B/s"))):  # fmt: skip
            yield f"the path {name}: {paths[name]}"
    least = {row[0]: row[1:] for row in rows_under(root, "Beside the least")}
    ranks, size, runs = run["ranks"], run.get("bytes"), run.get("run_bytes_on_disk") or 0
    wanted = [("slowest rank", max(sums), sum(sums) / ranks, TIMES)]
    if size:
        wanted += [("bytes between ranks", run["moved_bytes"], size * (ranks - 1) / ranks, bytes_of),
                   ("bytes read and written", 2 * (size + runs), 2 * size, bytes_of)]  # fmt: skip
    for name, was, floor, units in wanted:
        if name in least and not (is_near(least[name][0], was, units) and is_near(least[name][1], floor, units)
                                  and abs(float(least[name][2]) - was / floor) < 0.006):  # fmt: skip
            yield f"{name}: {least[name]}"


def wrong_axis(svg, scale):
    """Times below their lines, at `scale` for a second."""
    for text in svg.iter(f"{XML}text"):
        if text.get("text-anchor") == "middle" and text.text != "0":
            number, unit = text.text.split(" ")
            if abs(float(text.get("x")) - 190 - float(number) * TIMES[unit] * scale) > 0.5:
                yield f"{text.text} stands at {text.get('x')}"


def own_times(trace):
    """By (of streams, name): seconds less those of the spans inside, and how many."""
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    around, own = {}, {}
    for event in trace["traceEvents"]:
        if event["ph"] != "X":
            continue
        thread = event["pid"], event["tid"]
        stack, of_stream = around.setdefault(thread, []), names.get(thread, "").startswith("stream")
        while stack and (len(stack) == 8 or stack[-1][0] <= event["ts"] + 0.0011):
            stack.pop()
        if stack:
            own[stack[-1][1]][0] -= event["dur"] / 1e6
        stack.append((event["ts"] + event["dur"], (of_stream, event["name"])))
        one = own.setdefault((of_stream, event["name"]), [0, 0])
        one[0] += event["dur"] / 1e6
        one[1] += 1
    return own


def wrong_timeline(root, svg, trace):
    scale = 780e6 / max(event["ts"] + event["dur"] for event in trace["traceEvents"] if event["ph"] == "X")
    yield from wrong_axis(svg, scale)
    for rect in svg.iter(f"{XML}rect"):
        title = rect.find(f"{XML}title").text
        if not (parts := re.match(r"(.*), (\S+ [mu]?s) at (\S+ [mu]?s)(, |$)", title)):
            continue
        name, length, begin = parts.group(1, 2, 3)
        length, begin = (float(text.split()[0]) * TIMES[text.split()[1]] for text in (length, begin))
        if abs(float(rect.get("width")) - length * scale) > 0.5 or abs(float(rect.get("x")) - 190 - begin * scale) > 0.5:
            yield f"the bar of {title} is {rect.get('width')} wide, at {rect.get('x')}"
            return
        if name in KINDS and rect.get("class") != f"s{KINDS[name]}":
            yield f"the bar of {title} is a {rect.get('class')}"
            return
    for mark in root.iter(f"{XML}span"):
        name, kinds = "".join(mark.itertext()), [kind.get("class") for kind in mark if kind.get("class", "")[:1] == "s"]
        if kinds and kinds != [f"s{KINDS.get(name, kinds[0][1:])}"]:
            yield f"the mark of {name} is a {kinds}"
    own = own_times(trace)
    for of_stream, heading in (False, "Where time went, on threads"), (True, "Where time went, on streams"):
        mine = {shown(name): one for (stream, name), one in own.items() if stream == of_stream}
        everything, rows = sum(one[0] for one in mine.values()), rows_under(root, heading)
        if len(rows) != min(14, len(mine)) or [row[0] for row in rows][:1] != sorted(mine, key=lambda name: -mine[name][0])[:1]:
            yield f"{heading}: {len(rows)} of {len(mine)} names"
        for name, time, percent, count in rows:
            if abs(mine[name][0]) > 1e-9 and not (is_near(time, mine[name][0], TIMES) and int(count) == mine[name][1]
                    and abs(float(percent) - 100 * mine[name][0] / everything) < 0.06):  # fmt: skip
                yield f"{heading}: {name} {time}, {percent} %, {count} times, for {mine[name]}"
    told = trace["otherData"]["ranks"]
    off = re.search(r"off by (\S+ \w+)(?:, those of streams by (\S+ \w+) more)?\.", "".join(root.itertext()))
    for text, member in zip(off.groups(), ("clock_error_us", "stream_error_us")):
        if not is_near(text or "0 s", max(one.get(member) or 0 for one in told) / 1e6, TIMES):
            yield f"{member}: {text}"


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
    yield from wrong_facts(root, run)
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
        yield from wrong_axis(figures[0], scale)
        yield from wrong_tables(root, run, beside)
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
        yield from wrong_timeline(root, figures[-1], trace)
        lost = sum(one["lost_spans"] for one in trace["otherData"]["ranks"])
        if (f"{lost} spans are lost" in text) != (lost > 0):
            yield f"{lost} spans are lost"


def self_test(page, run, trace):
    assert not list(wrong(page, run, trace)), list(wrong(page, run, trace))
    faults = [("<h1>", "<h1><script>"), ("</h1>", "</h1><script>1</script>"), ("&#60;script&#62;", "<script>"), ("</body>", "<img src='x'/></body>"),
              ("<h2>Phases</h2>", ""), ("width=\"", "width=\"9"), ("rank 1<", "rank 2<"), ("spans are lost", ""), ("4.87 bytes", "4.86 bytes"),
              ("17.18 GB", "17.19 GB"), ("28 GB/s", "28 MB/s"), ("transport mixed", "transport ipc"), ("and 24 more", "and 25 more"), ("</span>: yes", "</span>: no"),
              ("The result is wrong.", ""), ("restarted 1", "restarted 2"), (">20 ms<", ">20 us<"), (">1</td><td class=\"n\">15 ms", ">0</td><td class=\"n\">15 ms"),
              (">536.9 MB<", ">536.9 kB<"), (">1.049 MB<", ">1.049 GB<"), (">570 ms<", ">571 ms<"), (">8.59 GB<", ">17.18 GB<"), (">34.36 GB<", ">34.4 GB<"),
              ("x=\"284.7\"", "x=\"285.7\""), ("x=\"346.0", "x=\"349.0"), ("400 ms at", "410 ms at"), ("class=\"s5\"", "class=\"s4\""),
              (">1.2 s<", ">1.3 s<"), (">55.8<", ">56.8<"), (">400</td>", ">401</td>"), ("8 us more", "9 us more"), ("off by 1.5", "off by 2.5")]  # fmt: skip
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
