"""Inputs to begin with, from those of the other tests: corpus.py npy|manifest|journal|options|json FOLDER writes a file for each."""
import json
import pathlib
import re
import shlex
import sys

tests = pathlib.Path(__file__).resolve().parent.parent


def npy():
    """The dictionaries of test_npy.c, behind a head of each version."""
    text = (tests / "files/test_npy.c").read_text()
    dictionaries = set(re.findall(r'"(\{(?:[^"\\\n]|\\")*)"', text))
    events = "".join(re.findall(r'"([^"]*)"', re.search(r"define EVENTS (.*?)\n\n", text, re.S)[1]))
    for descr, shape in re.findall(r'DICT_OF\("([^"]*)", "([^"]*)"\)', text) + [(events, "(7,)")]:
        dictionaries.add(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}")
    for dictionary in dictionaries:
        bytes_ = dictionary.replace('\\"', '"').encode()
        for version in 1, 2, 3:
            yield b"\x93NUMPY" + bytes([version, 0]) + len(bytes_).to_bytes(2 if version == 1 else 4, "little") + bytes_


def manifest():
    """The manifest that test_manifest.c edits, and with each of its edits; without checksums, which the harness appends."""
    text = (tests / "checkpoint/test_manifest.c").read_text()
    lines = re.findall(r'"(.*)\\n"', re.search(r"char good\[\] = (.*?);", text, re.S)[1])
    yield "\n".join(lines + [""]).encode()
    yield "\n".join([line for line in lines if not line.startswith("written")] + [""]).encode()
    for place, edited in re.findall(r'\{"([^"]*)", "([^"]*)"\}', text):
        yield "\n".join([edited if line.startswith(place) else line for line in lines] + [""]).encode()


def journal():
    """The plan that test_run_journal.c edits, with each of its edits, and its lines; without checksums, which the harness appends."""
    text = (tests / "checkpoint/test_run_journal.c").read_text()
    text = re.sub(r'"\s*\n\s*"', "", text)
    lines = re.search(r'good_plan\[\] = "(.*)";', text)[1].split("\\n")
    yield ("p" + "\n".join(lines)).encode()
    for place, edited in re.findall(r'\{"([^"]*)", "([^"]*)"\}', text):
        yield ("p" + "\n".join([edited if line.startswith(place) else line for line in lines])).encode()
    for line in re.findall(r'"((?:run|segment|output|dealing|counted|dealt|row) [^"\\]*)"', text):
        yield ("l" + line).encode()


def options():
    """The command lines in the tests of the command that are whole without the shell, a word a line."""
    for script in sorted((tests / "command").glob("*.sh")):
        runs = r'^ *(?:ok \d+|refused \d+ \d+ "[^"]*"|refused_everywhere \d+ "[^"]*") (.*)$'
        for line in re.findall(runs, script.read_text(), re.M):
            if not re.search(r"[$`&|<>\\]", line):
                yield "\n".join(shlex.split(line, comments=True)).encode()


def json_texts():
    """The texts of test_json.c, and reports and traces as test_report.py makes them."""
    text = (tests / "command/test_json.c").read_text()
    for written in re.findall(r'^ +\{"((?:[^"\\]|\\.)*)", ', text, re.M):
        yield b"r" + written.encode().decode("unicode_escape").encode("latin-1")
    sys.path.insert(0, str(tests / "command"))
    import report_pages

    yield b"r" + json.dumps(report_pages.made_up_run(2)).encode()
    yield b"t" + json.dumps(report_pages.made_up_trace(2)).encode()


folder = pathlib.Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
inputs = list({"npy": npy, "manifest": manifest, "journal": journal, "options": options, "json": json_texts}[sys.argv[1]]())
if len(inputs) < 20:
    sys.exit(f"corpus.py: the tests gave {len(inputs)} inputs for {sys.argv[1]}: they have changed, and this must follow")
for number, content in enumerate(inputs):
    (folder / f"test-{number:03}").write_bytes(content)
