"""Starts a program in a session of its own, and holds its process and its pipes. POSIX only.

`posix_spawn` and not `subprocess`: only it gives the child an empty signal mask and default
dispositions, whatever the calling thread has blocked and the daemon ignores, without running Python
in a forked child of a threaded process. May import: clock.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from qd.clock import monotonic

BLIND_WAIT = 0.02
"""Seconds between looks at a process where the system has no pidfd."""

GROUP_WAIT = 1.0
"""Seconds that killed members of a process group get to be gone."""

SPARE_NUMBERS = 64
"""Descriptors that other threads may open between a look at them and a program's start; a new one takes the
lowest number that is free."""

_DEFAULTED = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]


class Process:
    """A started process and its group, until `close`.

    Attributes:
        pidfd: becomes readable at its exit; None where the system has no such thing.
        status: its exit status, or minus the signal's number that killed it; None before it has
            exited, and where somebody else in this process has reaped it.
    """

    def __init__(self, pid: int, *, use_pidfd: bool = True) -> None:
        self.pid = pid
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
        """Sends a signal to its process group; after `reap` to nobody."""
        if not self._taken:  # else the number may be another's by now
            with suppress(ProcessLookupError, PermissionError):  # gone, or changed to another user
                os.killpg(self.pid, number)

    def reap(self) -> None:
        """Waits for its end and frees its number. Idempotent: a second wait could take the end of another child."""
        if self._taken:
            return
        with suppress(ChildProcessError):  # somebody else has done it
            status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            if not self._exited:
                self.status = status
        self._exited = self._taken = True

    def end_group(self) -> None:
        """Kills all of its group and reaps it; returns when the group is gone, or at most GROUP_WAIT later."""
        self.signal_group(signal.SIGKILL)
        self.reap()
        until = monotonic() + GROUP_WAIT
        while not self.group_is_dead() and monotonic() < until:
            time.sleep(0.002)

    def alone(self) -> bool:
        """Whether nothing else of its group runs; False also where that can't be known."""
        return _members(self.pid, besides=self.pid) == []

    def group_is_dead(self) -> bool:
        """After `reap`: whether nothing of its process group runs any more."""
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):  # nobody, or another user's, whom we can't end
            return True
        return _members(self.pid) == []

    def close(self) -> None:
        """Closes its descriptor."""
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


class Program(Process):
    """A started program with its three pipes.

    Attributes:
        stdin, stdout, stderr: our ends of its pipes, non-blocking; None once closed.
    """

    def __init__(self, pid: int, ours: Sequence[int], *, use_pidfd: bool) -> None:
        super().__init__(pid, use_pidfd=use_pidfd)
        self.stdin: int | None
        self.stdout: int | None
        self.stderr: int | None
        self.stdin, self.stdout, self.stderr = ours

    def close_pipe(self, fd: int) -> None:
        """Closes one of our ends."""
        for name in ("stdin", "stdout", "stderr"):
            if getattr(self, name) == fd:
                setattr(self, name, None)
        os.close(fd)

    def close(self) -> None:
        """Closes all that is open."""
        super().close()
        for fd in (self.stdin, self.stdout, self.stderr):
            if fd is not None:
                os.close(fd)
        self.stdin = self.stdout = self.stderr = None


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
            pipes.extend(above(2, fd) for fd in os.pipe())
        theirs, ours = (pipes[0], pipes[3], pipes[5]), (pipes[1], pipes[2], pipes[4])
        for fd in ours:
            os.set_blocking(fd, False)
        pid = start(argv, environ, dict(enumerate(theirs)))
    except BaseException:
        _close_all(pipes)
        raise
    _close_all(theirs)
    return Program(pid, ours, use_pidfd=use_pidfd)


def start(argv: Sequence[str], environ: Mapping[str, str], descriptors: Mapping[int, int]) -> int:
    """Starts a program as `spawn` does; its process id.

    Args:
        descriptors: by its number for each ours; all above its highest number. It gets no other.

    Raises:
        OSError, ValueError: see `spawn`.
    """
    actions = [(os.POSIX_SPAWN_DUP2, ours, number) for number, ours in descriptors.items()]
    actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in _all_numbers() if fd not in descriptors]  # type: ignore[misc]
    return os.posix_spawnp(
        argv[0], list(argv), dict(environ), file_actions=actions, setsid=True, setsigmask=[], setsigdef=_DEFAULTED
    )


def _all_numbers() -> range:
    """Every descriptor above the standard ones that is open, or that another thread may open in this moment.

    Python closes its own on exec; a library (the database driver's C code) may not, and what it opens after we have
    looked would be the program's too. Closing a number that isn't open is no error, within the system's limit.
    """
    highest = max(map(int, os.listdir("/dev/fd")), default=2)
    return range(3, min(highest + SPARE_NUMBERS, resource.getrlimit(resource.RLIMIT_NOFILE)[0]))


def above(number: int, fd: int) -> int:
    """The same file on a descriptor above a number: a daemon may run with its standard descriptors closed."""
    if fd > number:
        return fd
    other = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, number + 1)
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


def _members(group: int, besides: int = 0) -> list[int] | None:
    """Who of the group still runs; None where the system doesn't tell.

    Not those that have ended and only wait for a parent that doesn't reap, as in a container whose
    first process is no init.
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # ended meanwhile
            state, _, its_group = entry.read_bytes().rpartition(b")")[2].split()[:3]
            pid = int(entry.parent.name)
            if int(its_group) == group and state not in (b"Z", b"X") and pid != besides:
                found.append(pid)
    return found if Path("/proc/self/stat").exists() else None
