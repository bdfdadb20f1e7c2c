"""Runs a Python handler in the worker's own thread. Owns the one place where an exception is thrown in.

`PyThreadState_SetAsyncExc` makes another thread raise at its next step, wherever that is by then. The
race is closed so: the thrower throws only while the window is open, and the window's end waits for a
thrower that is under way and lets what is still on its way hit there and then. All code that may be
hit on the way out lies within as many nets as there can be throws. (Clearing with NULL instead would
not say whether it had hit, and leaves the interpreter up to 3.12 looking for it at every step.)

May import: endings, interruption, failure, clock, job, outcome, registry, log (the running job's id).
"""

from __future__ import annotations

import contextvars
import ctypes
import logging
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from time import sleep
from types import CoroutineType
from typing import TYPE_CHECKING, Any, NoReturn

from qd.clock import monotonic
from qd.executors.endings import interrupted, is_coroutine, raised, returned
from qd.executors.interruption import Interruption
from qd.failure import class_name
from qd.job import Job
from qd.log.current import JOB_ID
from qd.outcome import JobInterrupted, JobTimeout, Outcome
from qd.registry import Function

if TYPE_CHECKING:
    import asyncio

MOST_THROWN = 2
"""Exceptions that are thrown into one run at most: `_within_nets` has one net more."""

CHILD_STATUS = 70
"""Exit status of a forked child that came out of its handler (EX_SOFTWARE)."""

_throw = ctypes.pythonapi.PyThreadState_SetAsyncExc
_throw.argtypes = (ctypes.c_ulong, ctypes.py_object)


class _Own(threading.local):
    """What is this thread's own: the signals that it blocked before its first handler."""

    mask: set[signal.Signals] | None = None


_own = _Own()


def _keep_mask() -> None:
    if _own.mask is None:
        _own.mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())  # type: ignore[assignment]


def _restore_mask() -> None:
    """Undoes what a handler blocked: programs that the next job starts would inherit it."""
    if _own.mask is not None and signal.pthread_sigmask(signal.SIG_BLOCK, ()) != _own.mask:
        signal.pthread_sigmask(signal.SIG_SETMASK, _own.mask)


class FunctionRun:
    """One run of a function or a coroutine function (see `interruption.Run`).

    The decisive fact is whether what was thrown hit inside the handler. `_thrown` counts throws,
    `_late` those that hit only after the handler had ended: equal means that none hit inside.

    Args:
        announce: called right before the handler is entered; where it raises, the handler isn't.
    """

    ends_with_us = True

    def __init__(
        self, job: Job, function: Function | None, kill_grace: float, announce: Callable[[], None] | None = None
    ) -> None:
        self._job, self._function, self.patience, self._announce = job, function, kill_grace, announce
        self.entered = False
        self._why: Interruption | None = None
        self._thread = self._pid = 0
        self._open = self._sending = self._returned = self._is_async = self._cancelled = False
        self._thrown = self._late = 0
        self._result: object = None
        self._error: BaseException | None = None
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # ------------------------------------------------------------------ the worker's side

    def run(self) -> Outcome:
        """Runs the handler; what it raised, and what was thrown into it, ends here."""
        began = monotonic()
        _keep_mask()
        self._thread, self._pid = threading.get_ident(), os.getpid()
        context = contextvars.Context()  # empty: what one handler sets (decimal precision, ...) the next never sees
        context.run(JOB_ID.set, self._job.id)
        if self._announce is not None and self._why is None:
            self._announce()  # nothing can be thrown in here yet
        self._within_nets(context)
        _restore_mask()
        try:
            outcome = self._outcome(monotonic() - began)
            return outcome if self.entered else replace(outcome, entered=False)
        finally:
            self._error = self._result = None  # no cycle through the traceback

    def _within_nets(self, context: contextvars.Context) -> None:
        try:
            try:
                try:
                    self._enter(context)
                except BaseException as error:  # whatever the handler raised: it becomes the outcome
                    self._error = error
                self._close()
            except BaseException as hit:  # the first that came too late
                self._note(hit)
                self._close()
        except BaseException as hit:  # the second; there is no third
            self._note(hit)
            self._close()

    def _enter(self, context: contextvars.Context) -> None:
        self._open = self.entered = True  # before the look at _why: who sees False after an interruption can rely on it
        if self._why is not None:  # interrupted before it began; see `interrupt` for the order
            self.entered = False
            return
        result: Any = context.run(self._function, self._job)  # type: ignore[arg-type]
        if result is not None and (type(result) is CoroutineType or is_coroutine(result)):
            result = context.run(self._drive, result)
        self._result = result
        self._returned = True

    def _drive(self, coroutine: Coroutine[Any, Any, object]) -> object:
        import asyncio  # only here: it takes 6 MB, in each child

        async def handler() -> object:
            self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()
            if self._why is not None:  # while the loop was made
                self._cancelled = True
                raise asyncio.CancelledError
            return await coroutine

        main = handler()
        try:
            self._is_async = True  # from here on it is cancelled: a throw might hit the loop's own making
            self._let_hit()
            asyncio._set_running_loop(None)  # a loop that a time-out has torn an earlier handler out of
            return asyncio.run(main)
        finally:
            self._loop = None
            main.close()  # where it never began, nothing is left to warn of
            coroutine.close()

    def _close(self) -> None:
        """Shuts the window. Idempotent: it is called again where it was hit."""
        if os.getpid() != self._pid:
            self._leave_child()
        self._open = False
        self._let_hit()

    def _let_hit(self) -> None:
        """Waits for a thrower that is under way; what it threw hits here, if it hasn't yet."""
        while self._sending:  # some microseconds
            sleep(0)
        if self._thrown:
            for _ in range(3):  # the interpreter looks at each turn
                pass

    def _note(self, hit: BaseException) -> None:
        if type(hit) in (JobTimeout, JobInterrupted):
            self._late += 1
        elif self._error is None and not self._returned:  # somebody else's throw; what the handler raised is gone
            self._error = hit

    def _leave_child(self) -> NoReturn:
        """Ends a forked child that came out of its handler: it must settle, claim and close nothing."""
        status = CHILD_STATUS
        try:
            error = self._error
            if error is not None and issubclass(type(error), SystemExit):
                status = _exit_status(error)
            else:
                how = "returned" if error is None else f"raised {class_name(error)}"
                logging.getLogger("qd").warning("a child forked by job %s %s: it ends here", self._job.id, how)
        finally:
            os._exit(status)

    def _outcome(self, seconds: float) -> Outcome:
        error, own = self._error, __file__
        hit_inside = self._cancelled or self._thrown > self._late
        if self._why is not None and (hit_inside or (error is None and not self._returned)):
            return interrupted(self._why, error, seconds, own)
        if error is None:
            return returned(self._result, seconds)
        return raised(error, seconds, own)

    # ------------------------------------------------------------------ the interrupter's side

    def interrupt(self, why: Interruption) -> None:
        """See `Run`. A coroutine is cancelled, since its loop may sleep where nothing can be thrown."""
        self._why = self._why or why
        self._sending = True  # before the look at _open, as _close clears _open before its look at this
        try:
            if self._open and self._is_async:
                self._cancel()
            elif self._open:
                self._throw(why)
        finally:
            self._sending = False

    def insist(self) -> None:
        """See `Run`. Throws into a coroutine that never awaits, or survives its cancellation."""
        self._sending = True
        try:
            loop = self._loop
            if self._open and loop is not None and self._why is not None:
                self._throw(self._why)
                _call_soon(loop, _nothing)  # wakes it
        finally:
            self._sending = False

    def _throw(self, why: Interruption) -> None:
        if self._thrown < MOST_THROWN:
            self._thrown += 1
            _throw(self._thread, why.exception)

    def _cancel(self) -> None:
        loop = self._loop
        if loop is not None:  # else `_drive` sees `_why` by itself, or it is over
            _call_soon(loop, self._cancel_task)

    def _cancel_task(self) -> None:
        if self._task is not None and self._task.cancel():
            self._cancelled = True


def _call_soon(loop: asyncio.AbstractEventLoop, act: Any) -> None:
    with suppress(RuntimeError):  # it has just been closed
        loop.call_soon_threadsafe(act)


def _nothing() -> None:
    pass


def _exit_status(error: BaseException) -> int:
    code = SystemExit.__dict__["code"].__get__(error)
    if code is None:
        return 0
    return code & 0xFF if type(code) is int else 1
