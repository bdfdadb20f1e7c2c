"""Starts a program in a session of its own, and holds its process and its three pipes. POSIX only.

`posix_spawn` and not `subprocess`: only it gives the child an empty signal mask and default
dispositions, whatever the calling thread has blocked and the daemon ignores, without running Python
in a forked child of a threaded process. May import: nothing of qd.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_DEFAULTED = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]


class Program:
    """A started program and its process group, until `close`.

    Attributes:
        stdin, stdout, stderr: our ends of its pipes, non-blocking; None once closed.
        pidfd: becomes readable at its exit; None where the system has no such thing.
        status: its exit status, or minus the signal's number that killed it; None before it has
            exited, and where somebody else in this process has reaped it.
    """

    def __init__(self, pid: int, ours: Sequence[int], *, use_pidfd: bool) -> None:
        self.pid = pid
        self.stdin: int | None
        self.stdout: int | None
        self.stderr: int | None
        self.stdin, self.stdout, self.stderr = ours
        self.pidfd = _pidfd(pid) if use_pidfd else None
        self.status: int | None = None
        self._exited = self._taken = False

    def exited(self) -> bool:
        """Whether it has exited; it isn't reaped, so that its process group's number stays taken."""
        if not self._exited:
            try:
                found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # somebody else in this process has reaped it
                self._exited = self._taken = True
                return True
            if found is not None:
                self._exited = True
                self.status = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        return self._exited

    def signal_group(self, number: int) -> None:
        """Sends a signal to its process group; to be called only before `reap`."""
        if not self._taken:  # else the number may be another's by now
            with suppress(ProcessLookupError, PermissionError):  # gone, or changed to another user
                os.killpg(self.pid, number)

    def reap(self) -> None:
        """Waits for its end and frees its number."""
        with suppress(ChildProcessError):  # somebody else has done it
            os.waitpid(self.pid, 0)

    def group_is_dead(self) -> bool:
        """After `reap`: whether nothing of its process group runs any more."""
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):  # nobody, or another user's, whom we can't end
            return True
        return _only_zombies(self.pid)

    def close_pipe(self, fd: int) -> None:
        """Closes one of our ends."""
        for name in ("stdin", "stdout", "stderr"):
            if getattr(self, name) == fd:
                setattr(self, name, None)
        os.close(fd)

    def close(self) -> None:
        """Closes all that is open."""
        for fd in (self.stdin, self.stdout, self.stderr, self.pidfd):
            if fd is not None:
                os.close(fd)
        self.stdin = self.stdout = self.stderr = self.pidfd = None


def spawn(argv: Sequence[str], environ: Mapping[str, str], *, use_pidfd: bool = True) -> Program:
    """Starts a program, found through PATH; no shell.

    It gets pipes as its first three descriptors and no other, an empty signal mask, default signal
    dispositions, a session and process group of its own, and the working directory as it is.

    Raises:
        OSError: it can't be started; the errno says why.
        ValueError: an argument or variable can't be passed on (a NUL, a lone surrogate).
    """
    pipes: list[int] = []
    try:
        for _ in range(3):
            pipes.extend(_above_standard(fd) for fd in os.pipe())
        theirs, ours = (pipes[0], pipes[3], pipes[5]), (pipes[1], pipes[2], pipes[4])
        for fd in ours:
            os.set_blocking(fd, False)
        pid = _start(argv, environ, theirs)
    except BaseException:
        _close_all(pipes)
        raise
    _close_all(theirs)
    return Program(pid, ours, use_pidfd=use_pidfd)


def _start(argv: Sequence[str], environ: Mapping[str, str], theirs: Sequence[int]) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(theirs)]
    actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in _inheritable()]  # type: ignore[misc]
    return os.posix_spawnp(
        argv[0], list(argv), dict(environ), file_actions=actions, setsid=True, setsigmask=[], setsigdef=_DEFAULTED
    )


def _inheritable() -> list[int]:
    """What a library has opened without close-on-exec; Python itself never does."""
    found = []
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):  # the listing's own descriptor, or one closed meanwhile
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
    return found


def _above_standard(fd: int) -> int:
    """The same pipe on a number above 2: a daemon may run with its standard descriptors closed."""
    if fd > 2:
        return fd
    other = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return other


def _close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # an old kernel, a sandbox, another system
        return None


def _only_zombies(group: int) -> bool:
    """Whether all of the group have ended and only wait for a parent that doesn't reap, as in a
    container whose first process is no init; False where the system doesn't tell."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            state, _, its_group = entry.read_bytes().rpartition(b")")[2].split()[:3]
            if int(its_group) == group and state not in (b"Z", b"X"):
                return False
    return Path("/proc/self/stat").exists()
