"""SIGHUP: a new configuration whole, or the old one whole.

What may take time (reading the file, importing new modules, asking a new database) happens in a
thread, and counts only if it is over within BOUND; what changes the daemon happens afterwards, in
the main loop, at once. systemd is answered either way.
May import: daemon.engines, daemon.notify, config, events and what is below. Owns: the preparing thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from qd.clock import monotonic
from qd.config.model import Config
from qd.daemon.engines import Setup
from qd.daemon.notify import Notifier
from qd.errors import ConfigError, QdError
from qd.events import Event, Events, ReloadApplied, ReloadRefused

BOUND = 1.5
"""Seconds that a new configuration may take to prove itself; systemd is answered within 2."""

STEADY = ("log", "shutdown", "console")
"""Sections that no engine is built from."""

Say = Callable[[str], None]
Prepare = Callable[[Setup, Say], Setup]
"""Makes the new setup out of the old one; raises where it can't be right. Says what it is about to do."""

Apply = Callable[[Setup, Setup], None]
"""Exchanges the old setup for the new one, at once, or raises and changes nothing."""


class Withheld(Events):
    """What a new database says before it is ours: kept back, so that one that is refused leaves no trace.

    Args:
        events: where it goes once it is ours.
    """

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events, self._kept, self._ours = events, list[Event](), False

    def publish(self, event: Event) -> None:
        """Passes it on, or keeps it."""
        if self._ours:
            self._events.publish(event)
        else:
            self._kept.append(event)

    def release(self) -> None:
        """It is ours: says what was kept, and passes on from now."""
        self._ours = True
        for event in self._kept:
            self._events.publish(event)
        self._kept = []


class Preparation:
    """One attempt to make the new setup, in a thread of its own."""

    def __init__(self, prepare: Prepare, old: Setup, wake: Callable[[], None]) -> None:
        self._prepare, self._old, self._wake = prepare, old, wake
        self._deadline = monotonic() + BOUND
        self._step = "begins"
        self.setup: Setup | None = None
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="qd reload", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.setup = self._prepare(self._old, self._say)
        except Exception as error:  # whatever is wrong with the new one refuses the reload
            self.error = error
        except SystemExit as error:  # a module's idea of an error
            self.error = RuntimeError(f"exit {error.code}")
        finally:
            self._wake()

    def _say(self, step: str) -> None:
        self._step = step

    def ended(self) -> bool:
        """Its thread is gone."""
        return not self._thread.is_alive()

    def left(self) -> float:
        """Seconds until it is too late."""
        return max(0.0, self._deadline - monotonic())

    def why_late(self) -> str:
        """What it spent its time on."""
        return f"not done within {BOUND:g} s, still at: {self._step}; what ran goes on"


class Reloads:
    """Takes requests to reload and brings each to its end. Main thread only.

    Args:
        setup: what runs now; the attribute is always what runs.
        after: called after each reload, refused or not, for the closing READY=1.

    Attributes:
        refused: why the last reload was refused; empty: it wasn't.
    """

    def __init__(
        self,
        setup: Setup,
        prepare: Prepare,
        apply: Apply,
        notifier: Notifier,
        events: Events,
        wake: Callable[[], None],
        after: Callable[[str], None],
    ) -> None:
        self.setup, self.refused = setup, ""
        self._prepare, self._apply, self._notifier, self._events = prepare, apply, notifier, events
        self._wake, self._after = wake, after
        self._asked = False
        self._under_way: Preparation | None = None
        self._abandoned: Preparation | None = None

    def ask(self) -> None:
        """Wants a reload; requests that come while one is under way become one that follows it."""
        self._asked = True

    def wait(self) -> float | None:
        """Seconds until `turn` has something to do at the latest; None: nothing."""
        return None if self._under_way is None else self._under_way.left()

    def turn(self) -> None:
        """Ends the one under way if it is done or too late; begins the next if one is asked for."""
        now = self._under_way
        if now is not None and (now.ended() or not now.left()):
            self._under_way = None
            self._finish(now)
        if self._asked and self._under_way is None:
            self._asked = False
            self._begin()

    def _begin(self) -> None:
        self._notifier.reloading()
        if self._abandoned is not None and not self._abandoned.ended():
            self._refuse(f"an earlier reload: {self._abandoned.why_late()}. If that never ends, restart the daemon")
            return
        self._abandoned = None
        self._under_way = Preparation(self._prepare, self.setup, self._wake)

    def _finish(self, done: Preparation) -> None:
        if not done.ended():
            self._abandoned = done
            self._refuse(done.why_late())
        elif done.setup is None:
            self._refuse(said(done.error))
        else:
            self._adopt(done.setup)

    def _adopt(self, new: Setup) -> None:
        changed = differences(self.setup.config, new.config)
        try:
            self._apply(self.setup, new)
        except Exception as error:  # a port that is taken, a thread that can't be started: the old one goes on
            self._refuse(said(error))
            return
        self.setup, self.refused = new, ""
        self._events.publish(ReloadApplied(changed=", ".join(changed) or "nothing"))
        self._after("configuration reloaded")

    def _refuse(self, reason: str) -> None:
        self.refused = reason
        self._events.publish(ReloadRefused(reason=reason))
        self._after(f"reload refused: {reason}")


def differences(old: Config, new: Config) -> list[str]:
    """The sections in which the two differ."""
    return [name for name in Config.model_fields if getattr(old, name) != getattr(new, name)]


def needs_engine(old: Setup, new: Setup) -> bool:
    """Whether the change is one that engines are built from."""
    changed = [name for name in differences(old.config, new.config) if name not in STEADY]
    if changed == ["http"]:
        return old.config.http.refresh != new.config.http.refresh
    return bool(changed) or old.database is not new.database


def said(error: BaseException | None) -> str:
    """An error as one line for a person: of ours the text says all, of another its name is half of it."""
    if isinstance(error, ConfigError):
        return "; ".join(error.problems)
    lines = " ".join(str(error).split())
    if lines and isinstance(error, QdError):
        return lines
    return f"{type(error).__name__}: {lines}" if lines else type(error).__name__
