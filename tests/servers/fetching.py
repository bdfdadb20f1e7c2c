"""Programs of any Debian suite, beside the system's own: downloaded, unpacked, installed nowhere.

A configuration of its own makes apt read another suite and write only below CACHE: the system's lists
and packages stay as they are, and no root is needed. The mirror is the system's own, or QD_DEBIAN_MIRROR's.
A package comes with all that it needs, down to its libc, and runs with that.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.private import lock
from tests.support.server import ROOT, ServerMissing

CACHE = ROOT / "var" / "servers"

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"

_APT = """
Dir::State "{folder}/state";
Dir::State::status "{folder}/state/status";
Dir::Cache "{folder}/cache";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
APT::Architecture "{architecture}";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
// a suite that is no longer renewed outlives its own date; its signature still holds
Acquire::Check-Valid-Until "false";
"""


@dataclass(frozen=True)
class Programs:
    """A folder that looks like the root of another system.

    Attributes:
        root: that folder.
    """

    root: Path

    def command(self, program: str, *arguments: str) -> list[str]:
        """Runs a program of it with its own libc.

        Args:
            program: its path from the root, e.g. `usr/sbin/mysqld`.
        """
        loader = self.one("usr/lib/*/ld-linux*.so*")
        return [str(loader), "--library-path", str(loader.parent), str(self.root / program), *arguments]

    def one(self, pattern: str) -> Path:
        """The first path that matches."""
        found = sorted(self.root.glob(pattern))
        if not found:
            raise ServerMissing(f"{self.root} has no {pattern}: remove it, so that it is fetched anew")
        return found[0]


def fetch(name: str, suite: str, packages: Sequence[str]) -> Programs:
    """Unpacks packages of a Debian suite and all that they need, unless the same ones were before.

    Args:
        name: of the folder in CACHE.
        suite: e.g. `bullseye`.

    Raises:
        ServerMissing: no apt, no such suite at the mirror, no network.
    """
    folder, wanted = CACHE / name, " ".join([suite, *packages])
    with lock(CACHE / f"{name}.lock"):
        if not (folder / "complete").exists() or (folder / "complete").read_text() != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            _download(folder / "apt", suite, packages)
            _unpack(folder)
            shutil.rmtree(folder / "apt")
            (folder / "complete").write_text(wanted)
    return fetched(name)


def fetched(name: str) -> Programs:
    """What `fetch` has put there.

    Raises:
        ServerMissing: it hasn't.
    """
    if not (CACHE / name / "complete").exists():
        raise ServerMissing(f"{name} was not fetched: make test-servers SERVERS={name} does it")
    return Programs(CACHE / name / "root")


def mirror() -> str:
    """Where this system gets Debian from, by its own sources, whatever their format."""
    own = os.environ.get("QD_DEBIAN_MIRROR")
    if own:
        return own
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise ServerMissing("servers are fetched with apt-get and dpkg-deb: this needs a Debian")
    codename = re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.MULTILINE)
    files = _run(["apt-get", "--print-uris", "update"], "apt-get could not read its sources")
    found = re.search(rf"'(\S+?)/?/dists/{codename[1] if codename else ''}/", files)
    if not found:
        raise ServerMissing("apt's sources name no Debian mirror: set QD_DEBIAN_MIRROR to the address of one")
    return found[1]


def _download(folder: Path, suite: str, packages: Sequence[str]) -> None:
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    (folder / "state/status").touch()  # as if nothing were installed: what is needed comes whole
    (folder / "sources.list").write_text(f"deb [signed-by={KEYS}] {mirror()} {suite} main\n")
    architecture = _run(["dpkg", "--print-architecture"], "dpkg").strip()
    (folder / "apt.conf").write_text(_APT.format(folder=folder, architecture=architecture))
    what = f"apt-get could not read {suite} at {mirror()}"
    _run(["apt-get", "update", "--quiet", "--error-on=any"], what, folder / "apt.conf")
    what = f"apt-get could not get {' '.join(packages)} of {suite}"
    _run(["apt-get", "install", "--quiet", "--yes", "--download-only", *packages], what, folder / "apt.conf")


def _unpack(folder: Path) -> None:
    root = folder / "root"
    for part in ("bin", "sbin", "lib", "lib64"):  # as newer suites have it, so that old ones unpack alike
        (root / "usr" / part).mkdir(parents=True)
        (root / part).symlink_to(f"usr/{part}")
    for package in sorted((folder / "apt/cache/archives").glob("*.deb")):
        unpack = (
            'dpkg-deb --fsys-tarfile "$1" | tar --extract --no-same-owner --keep-directory-symlink --directory "$2"'
        )
        _run(["sh", "-ec", unpack, "unpack", str(package), str(root)], f"could not unpack {package.name}")


def _run(command: list[str], what: str, config: Path | None = None) -> str:
    env = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    env |= {"APT_CONFIG": str(config)} if config else {}
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith(("E: ", "dpkg-deb: error", "tar: "))]
        raise ServerMissing(f"{what}: {said[0] if said else 'without a word of why'}")
    return done.stdout
