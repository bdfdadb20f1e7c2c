"""A virtual environment for each peer, with pinned versions from PyPI, kept from run to run.

May import: processes. Owns: the environments' folder, which may be removed at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.processes import NotRun

ROOT = Path(__file__).resolve().parents[1]
PINS = Path(__file__).parent / "peers" / "pins"
"""`NAME.txt`: every package of a peer's environment with its version, as pip wants it."""

INSTALL = 600.0
"""Seconds that pip may take."""


class Environments:
    """The peers' environments, all of the Python that runs the benchmark.

    Args:
        folder: where they are kept.
        say: told of each that is made.
        pins: where the pins are.
    """

    def __init__(self, folder: Path, say: Callable[[str], None], pins: Path = PINS) -> None:
        self._folder, self._say, self._pins = folder, say, pins
        self._refused: dict[str, NotRun] = {}

    def bin(self, name: str, build: Sequence[str] = ()) -> Path:
        """The folder of an environment's programs; makes it where it isn't there or not of today's pins.

        Args:
            name: the peer.
            build: the distribution's packages that pip may need to build one; installed as root if it fails without.

        Raises:
            NotRun: it can't be made; said once and then remembered.
        """
        if name in self._refused:
            raise self._refused[name]
        place = self._folder / name
        wanted = hashlib.sha256((self._pins / f"{name}.txt").read_bytes() + sys.version.encode()).hexdigest()
        ready = place / "ready"
        if not ready.exists() or ready.read_text() != wanted:
            try:
                self._make(name, place, build)
            except NotRun as refused:
                self._refused[name] = refused
                raise
            ready.write_text(wanted)
            installed = ", ".join(" ".join(package) for package in self.versions(name).items())
            self._say(f"{name}: {installed or 'nothing'}")
        return place / "bin"

    def versions(self, name: str) -> dict[str, str]:
        """What is installed there, by name."""
        return dict(json.loads((self._folder / name / "versions.json").read_text()))

    def _make(self, name: str, place: Path, build: Sequence[str]) -> None:
        self._say(f"installing {name} into {place.relative_to(ROOT) if place.is_relative_to(ROOT) else place}")
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        _run(sys.executable, "-m", "venv", str(place))
        try:
            self._install(name, place)
        except NotRun:
            if not build or os.getuid() != 0 or shutil.which("apt-get") is None:
                raise
            _run(str(ROOT / ".ci" / "apt"), *build)
            self._install(name, place)
        listed = json.loads(_run(str(place / "bin" / "pip"), "list", "--format=json", "--exclude=pip"))
        versions = {package["name"]: package["version"] for package in listed if package["name"] != "setuptools"}
        (place / "versions.json").write_text(json.dumps(versions, indent=1))

    def _install(self, name: str, place: Path) -> None:
        options = ["--quiet", "--disable-pip-version-check", "--requirement", str(self._pins / f"{name}.txt")]
        _run(str(place / "bin" / "pip"), "install", *options)


def _run(*argv: str) -> str:
    """What a program says; NotRun with its last words where it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        raise NotRun(f"{Path(argv[0]).name} took longer than {INSTALL:.0f} s") from error
    if done.returncode:
        raise NotRun(f"{Path(argv[0]).name} {argv[1]}: {' '.join((done.stderr or done.stdout).split())[-300:]}")
    return done.stdout
