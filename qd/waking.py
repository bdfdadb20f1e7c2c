"""Waking the daemons of this host, so that a fresh job needn't wait for their next poll.

Each daemon binds a datagram socket in the runtime directory; who enqueued and committed sends it
the names of the queues. It is a hint and nothing more: without it, or where a datagram is lost,
the next poll finds the job. May import: job. Owns the sockets `wake-PID-NONCE.sock`.

Who may reach the socket is decided by the directory (0700, or 0770 with a group that the
applications' users are in) and by the socket's own mode, 0660.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from qd.job import NAME_PATTERN

MAX_SOCKETS = 256
"""Daemons that one `wake` reaches at most."""

_MAX_READ = 1000
_MAX_DATAGRAM = 65536
_MAX_PATH = 100  # bytes; the kernel's limit for a unix address is 107
_SOCKET_MODE = 0o660


def wake(*queues: str) -> None:
    """Tells the daemons of this host to look at these queues now. Never raises, never blocks.

    Call it after your own commit; `Client` and the command line do it by themselves.

    Args:
        queues: names of queues; with none nothing is done.
    """
    names = [name for name in queues if isinstance(name, str) and re.fullmatch(NAME_PATTERN, name)]
    if not names:
        return
    message = "\n".join(dict.fromkeys(names)).encode()[:_MAX_DATAGRAM]
    # A full buffer means that it is awake; a refused one that its owner is dead. Neither matters here.
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for path in _sockets():
            with suppress(OSError), _address(path) as address:
                sender.sendto(message, address)


class WakeSocket:
    """A daemon's ear: wait for `fileno()` to become readable, then `read()`.

    Raises:
        OSError: there is no directory that it may be bound in; run without it.
    """

    def __init__(self) -> None:
        folder = _own_directory()
        _remove_dead(folder)
        self._pid = os.getpid()
        self.path = folder / f"wake-{self._pid}-{secrets.token_hex(4)}.sock"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            with _address(self.path) as address:
                self._socket.bind(address)
            self.path.chmod(_SOCKET_MODE)
        except BaseException:
            self._socket.close()
            raise

    @classmethod
    def try_bind(cls) -> WakeSocket | None:
        """One, or None where there is no directory for it: then polls alone find fresh jobs."""
        try:
            return cls()
        except OSError:
            return None

    def fileno(self) -> int:
        """The descriptor, to wait for."""
        return self._socket.fileno()

    def read(self) -> set[str]:
        """The queues that were named since the last call; empty if none. Doesn't wait."""
        names: set[str] = set()
        for _ in range(_MAX_READ):  # who floods it keeps nobody here
            try:
                message = self._socket.recv(_MAX_DATAGRAM)
            except OSError:
                break
            names.update(message.decode("ascii", "replace").split("\n"))
        return {name for name in names if len(name) <= 64 and re.fullmatch(NAME_PATTERN, name)}

    def close(self) -> None:
        """Closes it and removes its file; may be called twice."""
        self._socket.close()
        if os.getpid() == self._pid:  # a forked child closes its copy only
            with suppress(OSError):
                self.path.unlink()


def directories() -> list[Path]:
    """Where daemons' sockets may be, the best place first.

    $QD_RUNTIME_DIR alone if set; else $RUNTIME_DIRECTORY (systemd's), /run/qd, $XDG_RUNTIME_DIR/qd
    and a folder of this user's under the temp folder. All of them are looked at by `wake`, for an
    application has a $RUNTIME_DIRECTORY of its own; the daemon binds in the first it can.
    """
    if own := os.environ.get("QD_RUNTIME_DIR"):
        return [Path(own)]
    found = [Path(part) for part in os.environ.get("RUNTIME_DIRECTORY", "").split(":") if part][:1]
    found.append(Path("/run/qd"))
    if session := os.environ.get("XDG_RUNTIME_DIR"):
        found.append(Path(session) / "qd")
    return [*found, Path(tempfile.gettempdir()) / f"qd-{os.getuid()}"]


def _own_directory() -> Path:
    """The first directory to bind in, made if it may be made."""
    for folder in directories():
        with suppress(OSError):
            if folder != Path("/run/qd"):  # the service's own, made by systemd; never by hand
                folder.mkdir(mode=0o700, exist_ok=True)
            if _usable(folder):
                return folder
    raise OSError(f"no runtime directory: none of {', '.join(map(str, directories()))} is a folder to write in")


def _usable(folder: Path) -> bool:
    """A real folder, writable, and no stranger's: anyone may make a folder under /tmp."""
    status = folder.lstat() if folder.parent == Path(tempfile.gettempdir()) else folder.stat()
    stranger = folder.parent == Path(tempfile.gettempdir()) and status.st_uid != os.getuid()
    return stat.S_ISDIR(status.st_mode) and not stranger and os.access(folder, os.W_OK | os.X_OK)


def _sockets() -> list[Path]:
    found: list[Path] = []
    for folder in directories():
        with suppress(OSError):
            found += [Path(entry.path) for entry in os.scandir(folder) if _is_ours(entry.name)]
    return found[:MAX_SOCKETS]


def _is_ours(name: str) -> bool:
    return name.startswith("wake-") and name.endswith(".sock")


def _remove_dead(folder: Path) -> None:
    """Removes sockets that nobody listens on. Asked of the kernel: pids mean nothing across containers."""
    for path in (folder / entry for entry in os.listdir(folder) if _is_ours(entry)):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe, suppress(OSError):
            probe.setblocking(False)
            try:
                with _address(path) as address:
                    probe.connect(address)
            except ConnectionRefusedError:
                path.unlink()


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """The path as an address; by way of its folder's descriptor where it is too long for one."""
    if len(os.fsencode(path)) <= _MAX_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
