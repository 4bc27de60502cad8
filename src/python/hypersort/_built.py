"""What the build knows of itself. This form is for the source tree; pip and CMake put one with literals there."""

import re
from pathlib import Path

_header = Path(__file__).resolve().parents[2] / "hypersort.h"
VERSION = ".".join(re.findall(r"^#define HSORT_VERSION_\w+ (\d+)", _header.read_text(), re.MULTILINE))
LIBRARY = ""  # path of the library, seen from this folder; none in a source tree
