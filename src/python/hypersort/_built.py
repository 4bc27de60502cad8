"""What the build knows of itself. This form is that of the source tree; pip and CMake put a literal one there."""

import re
from pathlib import Path

_header = Path(__file__).resolve().parents[2] / "hypersort.h"
VERSION = ".".join(re.findall(r"^#define HSORT_VERSION_\w+ (\d+)", _header.read_text(), re.MULTILINE))
LIBRARY = ""  # the library, seen from this folder; none beside a source tree
