"""What every backend is: a private server that is started for its contestants and asleep, stopped, for the others'.

May import: processes. Owns: how programs of the distribution are found or installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from benchmarks.processes import NotRun

ROOT = Path(__file__).resolve().parents[2]

START = 60.0
"""Seconds that a server may take until it answers."""


class Backend(ABC):
    """A server on a free port of the loopback interface.

    Attributes:
        name: for people, e.g. `Redis`.
        durability: what its settings hold a committed job to, in a few words.
        beside: what of that a row of the table has to say.
        running: whether it was started and not stopped since.
    """

    name: str
    durability: str
    beside: str = ""
    running: bool = False

    @abstractmethod
    def start(self) -> None:
        """Starts it, the first time with nothing in it, and waits until it answers.

        Raises:
            NotRun: it can't be had on this machine; the text says what would help.
        """

    @abstractmethod
    def stop(self) -> None:
        """Shuts it down in order."""

    @abstractmethod
    def discard(self) -> None:
        """Ends it, and removes its folder."""

    @abstractmethod
    def version(self) -> str:
        """Its version while it runs."""


def programs(script: str, find: Callable[[], str | None]) -> str:
    """A program of the distribution, installed by `.ci/SCRIPT` where it is missing and that can be done.

    Args:
        find: its path, or None.

    Raises:
        NotRun: in the script's own words.
    """
    found = find()
    if found:
        return found
    done = subprocess.run([ROOT / ".ci" / script], capture_output=True, text=True)
    print(done.stdout, end="", flush=True)
    found = find()
    if done.returncode or not found:
        raise NotRun(" ".join((done.stderr or f"{script}: its programs can't be found").split()))
    return found


def which(*names: str, places: tuple[str, ...] = ()) -> str | None:
    """The first of the programs that is there, also where a plain user's PATH doesn't lead."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin", *places])
    return next((found for found in (shutil.which(name, path=path) for name in names) if found), None)
