"""The folder tree that the demo works on: its regular files, by their names as bytes.

A file's name need not be text, so paths are bytes, and base64 where JSON holds them. May import:
nothing of qd. Owns the rule of what counts: regular files of one file system, no link followed.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Collection
from dataclasses import dataclass

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells whether a file was touched meanwhile."""

    size: int
    modified: int
    changed: int


@dataclass(frozen=True, slots=True)
class Digest:
    """A file as it was read."""

    sha256: str
    size: int


def walk(folder: bytes, leave_out: Collection[bytes] = ()) -> tuple[dict[bytes, Stamp], list[str]]:
    """All regular files under a folder.

    Args:
        folder: absolute.
        leave_out: folders that aren't entered (the demo's own).

    Returns:
        Each file's absolute path with its stamp; what could not be looked into, for people.
    """
    files: dict[bytes, Stamp] = {}
    closed: list[str] = []
    device = os.stat(folder).st_dev
    for at, folders, names in os.walk(folder, onerror=lambda error: closed.append(_closed(error))):
        folders[:] = sorted(name for name in folders if _enter(os.path.join(at, name), device, leave_out))
        for name in sorted(names):
            path = os.path.join(at, name)
            stamp = stamp_of(path)
            if stamp is not None:
                files[path] = stamp
    return files, closed


def _closed(error: OSError) -> str:
    return f"{readable(os.fsencode(error.filename))}: {error.strerror}"


def _enter(path: bytes, device: int, leave_out: Collection[bytes]) -> bool:
    try:
        return path not in leave_out and os.lstat(path).st_dev == device
    except OSError:  # gone meanwhile
        return False


def stamp_of(path: bytes) -> Stamp | None:
    """A regular file's stamp; None: it is gone, or something else."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ctime_ns) if stat.S_ISREG(found.st_mode) else None


def digest(path: bytes, between: Callable[[], None] = lambda: None) -> Digest:
    """Reads a regular file and says its SHA-256 and size.

    Args:
        between: called after each MiB; what it raises ends the reading.

    Raises:
        OSError: it can't be read, is gone, or is no regular file any more.
    """
    sha, size = hashlib.sha256(), 0
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FileNotFoundError(errno.ENOENT, "no regular file any more")
        while chunk := file.read(_CHUNK):
            sha.update(chunk)
            size += len(chunk)
            between()
    return Digest(sha.hexdigest(), size)


def to_text(path: bytes) -> str:
    """A path as JSON can hold it, whatever its bytes."""
    return base64.b64encode(path).decode()


def from_text(text: str) -> bytes:
    """The path that `to_text` made a text of."""
    return base64.b64decode(text, validate=True)


def readable(path: bytes) -> str:
    """A path for people's eyes: what isn't UTF-8 or can't be printed is spelled out."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
