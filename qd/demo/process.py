"""The demo's own processes: started apart from the terminal, ended for certain. May import: nothing of qd."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

SEARCH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
"""Where programs are looked for: a plain user's PATH often lacks the servers' folder."""


def start(argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Starts a program whose output goes to `log`.

    It has a session of its own, so that Ctrl-C reaches only the demo, which ends it in order.
    Where util-linux is there the kernel ends it too, should the demo be killed.
    """
    setpriv = shutil.which("setpriv", path=SEARCH)
    command = [setpriv, "--pdeathsig", "TERM", *argv] if setpriv else list(argv)
    with log.open("ab") as out:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, cwd="/", start_new_session=True
        )


def run(argv: Sequence[str], log: Path) -> int:
    """Runs a program to its end; its exit status. Interrupted, it is ended with all that it started."""
    process = start(argv, log)
    try:
        return process.wait()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def stop(process: subprocess.Popen[bytes], within: float) -> int:
    """SIGTERM, then SIGKILL after `within` seconds; its exit status."""
    process.terminate()
    try:
        return process.wait(within)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def last_words(output: bytes, lines: int = 3) -> str:
    """The last lines of a log, as one line."""
    said = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    return " / ".join(said[-lines:]) or "it said nothing"
