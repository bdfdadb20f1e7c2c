"""Programs whose clock a test sets: the time of day only, what the monotonic clock says is left alone.

A server's is set by libfaketime. A Python process's is not: under libfaketime 0.9.10 `time.sleep` of
Python 3.11 fails with EINVAL; there time.time itself goes by the file.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.server import ROOT, ServerMissing

LIBRARY = "libfaketimeMT.so.1"


def _library() -> Path:
    kind = os.environ.get("QD_TEST_SERVER")
    if kind:  # it brings the one that fits its libc
        places = list((ROOT / "var" / "servers" / kind / "root/usr/lib").glob("*/faketime"))
    else:
        places = [ROOT / "var" / "faketime", *Path("/usr/lib").glob("*/faketime")]
    for place in places:
        if (place / LIBRARY).exists():
            return place / LIBRARY
    raise ServerMissing("no libfaketime on this machine (.ci/faketime takes it out of Debian's package)")


class Clock:
    """A clock that programs go by which were started with its `env`.

    Args:
        file: where its offset stands.

    Raises:
        ServerMissing: it is for a server, and there is no libfaketime.
    """

    def __init__(self, file: Path, *, server: bool) -> None:
        self._file = file
        self.set(0)
        self.env = self._of_server() if server else self._of_python()

    def _of_python(self) -> dict[str, str]:
        folder = ROOT / "tests" / "support" / "stepped"
        return {"STEPPED_CLOCK": str(self._file), "PYTHONPATH": f"{folder}:{ROOT}"}

    def _of_server(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, seconds: int) -> None:
        """So far it is off from now on."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}")
        new.replace(self._file)
