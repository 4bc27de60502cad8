"""The version is said once, in hypersort.h; what is built has it as a literal in hypersort/_built.py."""

import re
import shutil
from contextlib import contextmanager
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

here = Path(__file__).resolve().parent


def read_version():
    """From the header, or in a source archive, which has none beside it, from what was written there."""
    header, info = here.parent / "hypersort.h", here / "PKG-INFO"
    if header.exists():
        return ".".join(re.findall(r"^#define HSORT_VERSION_\w+ (\d+)", header.read_text(), re.MULTILINE))
    return re.search(r"^Version: (.*)$", info.read_text(), re.MULTILINE)[1]


@contextmanager
def licence():
    """Has LICENSE beside this file: setuptools takes it from nowhere above. A source archive has its own."""
    beside = here / "LICENSE"
    if beside.exists():
        yield
        return
    shutil.copyfile(here.parents[1] / "LICENSE", beside)
    try:
        yield
    finally:
        beside.unlink()


class BuildPy(build_py):
    """Copies the package, and says in it what it is."""

    def run(self):
        super().run()
        built = Path(self.build_lib) / "hypersort" / "_built.py"
        if built.exists():
            built.unlink()  # it may be a link into the tree
        built.write_text(f'VERSION = "{read_version()}"\nLIBRARY = ""\n')


# The licence is said here because no form of it in pyproject.toml suits setuptools before 77 as well as after 2026.
with licence():
    setup(version=read_version(), license="BSD-3-Clause", cmdclass={"build_py": BuildPy})
