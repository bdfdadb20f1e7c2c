"""Python imports this by itself where this folder is on PYTHONPATH: the time of day is then off by what a file says."""

from __future__ import annotations

import os
import time
from pathlib import Path

_real, _real_ns = time.time, time.time_ns
_file = os.environ.get("STEPPED_CLOCK")


def _offset() -> int:
    return int(Path(_file).read_text()) if _file else 0


if _file:
    time.time = lambda: _real() + _offset()
    time.time_ns = lambda: _real_ns() + _offset() * 1_000_000_000
