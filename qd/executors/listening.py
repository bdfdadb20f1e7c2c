"""A child's ear: the thread that hears the daemon while the main thread runs a handler.

It passes interruptions on as the daemon's timekeeper does in a thread, and with a signal to the main
thread besides, which ends blocking system calls. It takes no lock that a handler could hold. A job
whose daemon is gone, or hasn't been heard of for a whole lease, ends with the process: it may be
running elsewhere by then. May import: function, interruption, orphan, wire, clock, job, registry.
"""

from __future__ import annotations

import queue
import select
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from qd.clock import monotonic
from qd.executors.function import FunctionRun
from qd.executors.interruption import Interruption
from qd.executors.orphan import end_group
from qd.executors.wire import Frames, Message, frame
from qd.job import Job
from qd.registry import REGISTRY

FOREVER = 3600.0
"""Seconds between two looks when there is nothing to wait for."""

WAKE_AGAIN = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Seconds after an interruption at which the main thread gets one more signal: the first may have come
right before a system call that then waits."""


@dataclass(eq=False, slots=True)
class Task:
    """One job to be run.

    Attributes:
        payload: as the row has it.
        lease: seconds without a word from the daemon after which it may be another's.
        log: level and format, as they are in the daemon now; None: it has no log of its own.
    """

    job: Job
    run: FunctionRun
    payload: str
    lease: float
    log: list[str] | None


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
        self._noted = threading.Event()
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
        self._task = None

    def announce_completion(self, token: str) -> None:
        """Tells the daemon that the handler is about to end the job itself; returns once it knows."""
        self._noted.clear()
        self._line.say("completing", token=token)
        self._noted.wait()

    # ------------------------------------------------------------------ its own

    def _listen(self) -> None:
        try:
            while (messages := self._next_messages()) is not None:
                for message in messages:
                    self._heard_at = message.get("at", self._heard_at)  # when it was sent: it may have lain here
                    self._take(message)
        except OSError:  # a handler has closed all descriptors: the daemon sees it, and ends us
            threading.Event().wait(max(0.0, self._left()))
            end_group("a handler has closed the connection to the daemon, and nobody has ended this for a whole lease")
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
                end_group("nothing heard from the daemon for a whole lease: the job may be another's by now")
        return self._line.hear()

    def _left(self) -> float:
        """Seconds until the job's lease may have run out without our knowing."""
        task = self._task
        return FOREVER if task is None else self._heard_at + task.lease - monotonic()

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
        elif say == "noted":
            self._noted.set()
        elif task is None:
            return
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
        self._task = Task(job, run, message["payload"], message["lease"], message["log"])
        self._tasks.put(self._task)
