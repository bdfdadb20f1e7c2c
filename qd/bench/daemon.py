"""A daemon of the bench, seen from the bench: started, released, heard, counted, ended.

May import: the plan, what is told from inside, the executors' environment, clock, errors, the pure modules.
Owns: the daemon's process and its pipes.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from select import select
from typing import Any

from qd.bench.timeline import Seen
from qd.clock import monotonic
from qd.errors import ConnectionLost, QdError, SetupWrong

START_WITHIN = 60.0
"""Seconds that a daemon may take to be ready, on a machine that is busy with other things."""

STALLED = 60.0
"""Seconds without anything being done after which it is given up."""

STOP_WITHIN = 10.0
"""Seconds that a daemon gets to stop in order: its grace, what it promises after that, and a slow machine's time."""

EX_CONFIG = 78
"""How a daemon ends that can't start for what a person must put right."""

_PAGE_WITHIN = 30.0
_ENDED_WITHIN = 1.0
_TURN = 0.2


class BenchFailed(QdError):
    """The bench can't go on; the text is one line."""


class BenchDaemon:
    """A daemon; once it is made it runs.

    Args:
        order: the first line that it is told, see `inside.order`.
        queue: for the process list.
        environ: all that it sees of the environment.

    Attributes:
        seen: what it has done, as it told last.
        starts: when jobs that it told of were started, by their ids; who asked takes them out.
    """

    def __init__(self, order: bytes, queue: str, environ: Mapping[str, str]) -> None:
        self.seen, self.starts = Seen(), dict[int, float]()
        self._held, self._address = False, ""
        self._broken = ""
        self._unread = b""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (it is closed with the daemon)
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("start_daemon.py")), queue],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, bufsize=0,
            env=dict(environ), start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._say(order)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def fileno(self) -> int:
        """Readable when it has told something, or has ended."""
        return self._stdout.fileno()

    def hear(self) -> None:
        """Takes in what it has told; for when it is readable.

        Raises:
            ConnectionLost: it has lost the database.
            SetupWrong, BenchFailed: it has ended.
        """
        told = os.read(self._stdout.fileno(), 1 << 16)
        if not told:
            raise self._ended()
        *lines, self._unread = (self._unread + told).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def held(self) -> bool:
        """Whether it is ready but for its engine, and waits for `release`."""
        return self._held

    def release(self) -> None:
        """It may claim from now on."""
        self._say(b"go\n")

    def counters(self) -> dict[str, float]:
        """The samples of its metrics page that have no labels or only the queue's, by name.

        Raises:
            SetupWrong, BenchFailed: it has ended, or doesn't answer.
        """
        from prometheus_client.parser import text_string_to_metric_families

        families = text_string_to_metric_families(self._page())
        samples = (sample for family in families for sample in family.samples)
        counters: dict[str, float] = {}
        for sample in samples:
            if set(sample.labels) <= {"queue"}:
                counters[sample.name] = counters.get(sample.name, 0.0) + sample.value
        return counters

    def peak(self) -> int | None:
        """Bytes of memory that it has had at its most (VmHWM), without its children's; None where that isn't told."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return None
        lines = (line.split() for line in status.splitlines())
        return next((int(words[1]) << 10 for words in lines if words and words[0] == "VmHWM:"), None)

    def ask_to_stop(self) -> None:
        """SIGTERM."""
        if self._process.poll() is None:
            self._process.terminate()

    def stop(self) -> None:
        """Sees to it that it has ended, in order or else by force; its pipes are closed."""
        self.ask_to_stop()
        try:
            self._process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
        self.let_go()

    def let_go(self) -> None:
        """Closes its pipes, which ends it; doesn't wait for that."""
        for stream in (self._stdin, self._stdout, self._log):
            stream.close()

    def last_words(self) -> str:
        """The end of its log, in one line."""
        self._log.seek(0)
        said = [" ".join(line.split()) for line in self._log.read().decode(errors="replace").splitlines()]
        return " / ".join(line for line in said[-3:] if line)[-600:] or "it said nothing"

    def _kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)

    def _say(self, words: bytes) -> None:
        try:
            self._stdin.write(words)
        except BrokenPipeError:
            raise self._ended() from None

    def _take(self, message: dict[str, Any]) -> None:
        say = message.pop("say")
        if say == "seen":
            self.seen = Seen(**message)
        elif say == "started":
            self.starts.update(message["jobs"])
        elif say == "held":
            self._held, self._address = True, message["http"]
        elif say == "lost":
            raise ConnectionLost(f"the bench's daemon has lost the database: {message['why']}")
        elif say == "broken":
            self._broken = message["why"]

    def _ended(self) -> QdError:
        with suppress(subprocess.TimeoutExpired):  # it has closed its stdout but lives on: then it is ended
            self._process.wait(STOP_WITHIN)
        self._kill()
        status = self._process.wait()
        if status == EX_CONFIG and self._broken:
            return SetupWrong(f"the bench's daemon can't start: {self._broken}")
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with {status}"
        return BenchFailed(f"the bench's daemon {how}: {self._broken or self.last_words()}")

    def _page(self) -> str:
        connection = http.client.HTTPConnection(self._address, timeout=_PAGE_WITHIN)
        try:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            return answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            with suppress(subprocess.TimeoutExpired):  # a port that is closed is how an end shows first
                self._process.wait(_ENDED_WITHIN)
                raise self._ended() from None
            raise BenchFailed(f"the metrics of the bench's daemon can't be read: {error}") from None
        finally:
            connection.close()


def hear_all(daemons: Sequence[BenchDaemon], within: float = _TURN) -> None:
    """Waits for what any of them tells, and takes it in. Raises as `BenchDaemon.hear`.

    Args:
        within: seconds at most.
    """
    for daemon in select(daemons, [], [], within)[0]:
        daemon.hear()


def await_held(daemons: Sequence[BenchDaemon]) -> None:
    """Waits until all are ready but for their engines. Raises BenchFailed where that takes too long."""
    deadline = monotonic() + START_WITHIN
    while not all(daemon.held() for daemon in daemons):
        hear_all(daemons)
        if monotonic() > deadline:
            raise BenchFailed(f"a daemon of the bench wasn't ready within {START_WITHIN:g} s")


def await_finished(daemons: Sequence[BenchDaemon], jobs: int, done: Callable[[int], None]) -> None:
    """Waits until so many jobs are finished by all of them together.

    Args:
        done: called with how many more are.

    Raises:
        BenchFailed: an attempt failed, or nothing moves any more.
    """
    moved_at, before = monotonic(), 0
    while before < jobs:
        hear_all(daemons)
        if any(daemon.seen.failed for daemon in daemons):
            raise BenchFailed("a job that does nothing has failed; `qd check` may say why")
        now = sum(daemon.seen.finished for daemon in daemons)
        if now > before:
            done(now - before)
            moved_at, before = monotonic(), now
        elif monotonic() - moved_at > STALLED:
            said = "; ".join(daemon.last_words() for daemon in daemons)
            raise BenchFailed(f"nothing was done for {STALLED:g} s with {jobs - now:,} jobs left: {said}")


def stop_all(daemons: Sequence[BenchDaemon]) -> None:
    """Ends them, side by side."""
    for daemon in daemons:
        daemon.ask_to_stop()
    for daemon in daemons:
        daemon.stop()
