"""A module of handlers whose import takes until a file `go` lies in the working directory."""

from __future__ import annotations

import os
import time

import tests.acceptance.daemon_handlers  # noqa: F401  # they are there then

while not os.path.exists("go"):
    time.sleep(0.02)
