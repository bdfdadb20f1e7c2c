"""A child's ear: the thread that hears the daemon while the main thread runs a handler.

It passes interruptions on as the daemon's timekeeper does in a thread, and with a signal to the main
thread besides, which ends blocking system calls. It takes no lock that a handler could hold. A job
whose daemon is gone, or hasn't been heard of for most of a lease, ends with the process: it may be
running elsewhere soon. May import: function, interruption, orphan, wire, clock, errors, job, registry.
"""

from __future__ import annotations

import queue
import select
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from qd.clock import monotonic
from qd.errors import LeaseLost
from qd.executors.function import FunctionRun
from qd.executors.interruption import Interruption
from qd.executors.orphan import end_group
from qd.executors.wire import Frames, Message, frame
from qd.job import Job
from qd.registry import REGISTRY

FOREVER = 3600.0
"""Seconds between two looks when there is nothing to wait for."""

SILENCE = 2 / 3
"""Part of the lease after which a daemon that says nothing counts as frozen. It may have renewed last half a lease
before it fell silent, so that the lease ends half a lease after; a sweep that then looks twice takes the job a third
later. By then this process must have ended."""

WAKE_AGAIN = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Seconds after an interruption at which the main thread gets one more signal: the first may have come
right before a system call that then waits."""


@dataclass(eq=False, slots=True)
class Task:
    """One job to be run.

    Attributes:
        payload: as the row has it.
        patience: seconds without a word from the daemon after which it may be another's soon.
        log: level and format, as they are in the daemon now; None: it has no log of its own.
        noted: the daemon knows that the handler is about to end the job itself; or the job is over.
    """

    job: Job
    run: FunctionRun
    payload: str
    patience: float
    log: list[str] | None
    noted: threading.Event = field(default_factory=threading.Event)


class Line:
    """The child's end of the socket; blocking."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket, self._frames = connection, Frames()
        self._lock = threading.Lock()

    def say(self, say: str, **fields: Any) -> None:
        """Sends a message whole."""
        with self._lock:
            self.socket.sendall(frame(say, **fields))

    def hear(self) -> list[Message] | None:
        """Waits for what comes; None: the daemon has closed the line."""
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            return None
        return list(self._frames.feed(data)) if data else None

    def first(self) -> Message | None:
        """Waits for the first message; the daemon sends no other before it was answered."""
        while (heard := self.hear()) is not None:
            if heard:
                return heard[0]
        return None


class Listener:
    """Hears and passes on.

    Args:
        finish: how `job.complete` ends a job.
    """

    def __init__(self, line: Line, finish: Callable[[Any, Job], bool]) -> None:
        self._line, self._finish = line, finish
        self._main = threading.main_thread().ident or 0
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._task: Task | None = None
        self._heard_at = 0.0
        self._wake_at: list[float] = []

    # ------------------------------------------------------------------ the main thread's side

    def start(self) -> None:
        """Starts the thread."""
        threading.Thread(target=self._listen, name="qd listener", daemon=True).start()

    def next(self) -> Task | None:
        """Waits for the next job; None: there will be none."""
        return self._tasks.get()

    def over(self) -> None:
        """The job has ended."""
        task, self._task = self._task, None
        if task is not None:
            task.noted.set()

    def announce_completion(self, token: str) -> None:
        """Tells the daemon that the handler is about to end the job itself; returns once it knows.

        Raises:
            LeaseLost: the handler has returned: this is a thread that it has left behind.
        """
        task = self._task
        if task is not None and task.job.token == token:
            self._line.say("completing", token=token)
            task.noted.wait()
        if task is None or task.job.token != token or self._task is not task:
            raise LeaseLost("its handler has returned, so the job is no longer this thread's to complete: roll back")

    # ------------------------------------------------------------------ its own

    def _listen(self) -> None:
        try:
            while (messages := self._next_messages()) is not None:
                for message in messages:
                    self._heard_at = message.get("at", self._heard_at)  # when it was sent: it may have lain here
                    self._take(message)
        except OSError:  # a handler has closed all descriptors: the daemon sees it, and ends us
            threading.Event().wait(max(0.0, self._left()))
            end_group(
                "a handler has closed the connection to the daemon, and nobody has ended this for most of a lease"
            )
        except BaseException as error:  # deaf, it could be stopped by nobody
            end_group(f"the listening thread broke: {type(error).__name__}: {error}")
        if self._task is not None:
            end_group("the daemon is gone")
        self._tasks.put(None)

    def _next_messages(self) -> list[Message] | None:
        poll = select.poll()
        poll.register(self._line.socket, select.POLLIN)
        while not poll.poll(self._patience() * 1000):
            self._wake_again()
            if self._left() <= 0 and not poll.poll(0):  # a handler may have kept us from looking for long
                end_group("nothing heard from the daemon for most of a lease: the job may be another's soon")
        return self._line.hear()

    def _left(self) -> float:
        """Seconds until the job may be another's without our knowing."""
        task = self._task
        return FOREVER if task is None else self._heard_at + task.patience - monotonic()

    def _patience(self) -> float:
        """Seconds until there is something to do though nothing is heard."""
        wake_at = self._wake_at[0] if self._wake_at and self._task is not None else float("inf")
        return max(0.0, min(self._left(), wake_at - monotonic())) + 0.001

    def _wake_again(self) -> None:
        if self._wake_at and monotonic() >= self._wake_at[0] and self._task is not None:
            del self._wake_at[0]
            signal.pthread_kill(self._main, signal.SIGTERM)

    def _take(self, message: Message) -> None:
        task, say = self._task, message["say"]
        if say == "run":
            self._begin(message)
        elif task is None:
            return
        elif say == "noted":
            if message["token"] == task.job.token:
                task.noted.set()
        elif say == "lost":
            task.job.lost.set()
        elif say == "interrupt":
            self._wake(lambda: task.run.interrupt(Interruption(message["why"])))
        elif say == "insist":
            self._wake(task.run.insist)

    def _wake(self, tell: Callable[[], None]) -> None:
        tell()
        now = monotonic()
        self._wake_at = [now, *(now + seconds for seconds in WAKE_AGAIN)]
        self._wake_again()

    def _begin(self, message: Message) -> None:
        handler = REGISTRY.get(message["type"])
        job = Job(
            id=message["id"], queue=message["queue"], type=message["type"], payload=None, attempt=message["attempt"],
            max_attempts=message["max_attempts"], priority=message["priority"],
            enqueued_at=datetime.fromisoformat(message["enqueued_at"]), token=message["token"],
            deadline=message["deadline"], finish=self._finish,
        )  # fmt: skip
        if message["lost"]:
            job.lost.set()
        began = partial(self._line.say, "began", token=job.token)
        run = FunctionRun(job, handler.function if handler is not None else None, 0.0, began)
        self._wake_at = []
        self._task = Task(job, run, message["payload"], message["lease"] * SILENCE, message["log"])
        self._tasks.put(self._task)
