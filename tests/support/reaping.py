"""Nothing outlives the tests: what they started ends with them, however they end. May import: nothing of qd."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

_SCRIPT = """
while read -r pid mark; do set -- "$@" "$pid" "$mark"; done
while [ $# -gt 1 ]; do
  tr '\\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -qF -- "$2" && kill -9 "$1"
  shift 2
done
"""


@cache
def _reaper() -> subprocess.Popen[str]:
    """A small process that acts once its stdin ends, as it does when this process dies."""
    return subprocess.Popen(
        ["sh", "-c", _SCRIPT, "reaper"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )


def ends_with_us(pid: int, mark: Path) -> None:
    """Sees to it that a process is killed when this one ends, if it still runs.

    Args:
        mark: a path in its command line that no other process has, should the pid be another's by then.
    """
    pipe = _reaper().stdin
    assert pipe is not None
    pipe.write(f"{pid} {mark}\n")
    pipe.flush()
