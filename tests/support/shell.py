"""Somebody who copies block after block of the documentation into one shell. May import: nothing of qd."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DONE = "the block is done, status "


def blocks(page: Path, language: str = "sh") -> list[str]:
    """The blocks of a page in one language, in order."""
    return [block for name, block in BLOCK.findall(page.read_text("utf-8")) if name == language]


class Shell:
    """A bash that ends at the first command that fails.

    Args:
        within: a program that runs the rest of its arguments, e.g. on a machine.
    """

    def __init__(
        self, within: Sequence[str] = (), env: Mapping[str, str] = os.environ, cwd: Path | None = None
    ) -> None:
        self._process = subprocess.Popen(
            [*within, "bash", "-eu", "-o", "pipefail"], env=dict(env), cwd=cwd, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.said: list[str] = []

    def runs(self, block: str) -> str:
        """Runs a block, every command of which has to succeed; what it said."""
        assert self._process.stdin is not None and self._process.stdout is not None
        begin = len(self.said)
        self._process.stdin.write(f"{block}\necho; echo '{DONE}'$?\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(DONE):
                return "".join(self.said[begin:])
            self.said.append(line)
        raise AssertionError(f"this block failed:\n{block}\nso far:\n{''.join(self.said)}")

    def close(self) -> None:
        """Ends it and what it started."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)
