"""`qd run`: puts the daemon together, and takes it apart again.

Start order, in `run` and `Daemon.run`: signals, configuration, log, handlers, environment, HTTP,
database (its first connection, in the main thread), engine, first count of the rows, READY.
Stop order: STOPPING and /readyz 503, no new claims, running jobs to their end or to the end of the
grace, what is left is handed back, lease keeper, HTTP, log, and last of all the jobs of threads
that could not be ended.
May import: everything below the command line. Owns: the process's exit status.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from functools import partial

from qd.clock import monotonic
from qd.config import load_handlers, remarks
from qd.config.model import Config, LogConfig
from qd.daemon.engine import Engine
from qd.daemon.engines import Engines, Setup
from qd.daemon.http import HttpServer, Route, daemon_routes
from qd.daemon.leaving import leave, leave_at_once
from qd.daemon.notify import Notifier
from qd.daemon.reload import Reloads, Say, Withheld, needs_engine, said
from qd.daemon.signals import Signals, install
from qd.daemon.source import ConfigSource, Source
from qd.daemon.stacks import show_stacks
from qd.daemon.stop import Stop
from qd.daemon.supervisor import Supervisor
from qd.daemon.watchdog import Proof, Watchdog
from qd.errors import ConfigError, HandlerError, QdError, SetupWrong, StoreError
from qd.events import DaemonFailed, DaemonReady, DaemonStarted, Events, Listener, Problem
from qd.executors.environment import scrub
from qd.loading import load_public
from qd.log import LogListener, setup_logging
from qd.log.lines import choose
from qd.metrics import Metrics
from qd.pulse import Pulse
from qd.registry import Registry
from qd.store import open_database
from qd.version import __version__

EX_OK, EX_CANT, EX_SOFTWARE, EX_CONFIG = 0, 1, 70, 78
"""The exit statuses; docs/operations.md says what each asks of a person."""

FIRST_COUNT = 10.0
"""Seconds that READY waits for the first count of the rows, where the database answers."""

Hold = Callable[[str | None], None]
"""Keeps the daemon from claiming until it returns; is told the address of its pages, or None. A stop must end it."""


class CannotStart(Exception):
    """The daemon can't start. Args: what failed, in one line; the exit status."""

    def __init__(self, where: str, error: str, status: int) -> None:
        super().__init__(error)
        self.where, self.error, self.status = where, error, status


def run(path: str | None) -> int:
    """Runs the daemon until it is stopped.

    Args:
        path: the configuration; None looks where the documentation says.

    Returns:
        The exit status: 0 after SIGTERM or SIGINT, 1, 70 or 78 as docs/operations.md says.
    """
    install()
    try:
        source = Source(path)
        config = source.read()
    except ConfigError as error:
        _refuse(error)
        return EX_CONFIG
    return serve(source, config)


def _refuse(error: ConfigError) -> None:
    """Says why there is no configuration, and so no log yet: a line for each problem, with its level in the journal."""
    if choose("auto", 2) != "journal":
        print(*error.problems, sep="\n", file=sys.stderr)
        return
    log = LogListener(LogConfig())
    for problem in error.problems:
        log(DaemonFailed(where="configuration", error=problem))


def serve(source: ConfigSource, config: Config, *listeners: Listener, hold: Hold = lambda address: None) -> int:
    """Runs the daemon with a configuration that was read; what `run` does, and whoever brings his own source.

    Args:
        listeners: told of every event, beside the log and the metrics.
        hold: called right before the engine starts, when all else was done and seen to work.

    Returns:
        The exit status, as `run`.
    """
    signals, notifier = install(), Notifier()
    log = setup_logging(config.log)
    events = Events(log, *listeners, on_fault=lambda error: _record("a listener of events failed", error))
    daemon = Daemon(signals, notifier, source, events, log, hold)
    return daemon.end(_status_of(lambda: daemon.run(config), events))


def _status_of(act: Callable[[], int], events: Events) -> int:
    try:
        return act()
    except CannotStart as why:
        events.publish(DaemonFailed(where=why.where, error=why.error))
        return why.status
    except Exception as error:  # a bug in the main thread: said in one line, then whole; systemd starts us again
        events.publish(DaemonFailed(where="main loop", error=said(error)))
        _record("the main loop ended by an error", error)
        return EX_SOFTWARE


def _record(message: str, error: BaseException) -> None:
    logging.getLogger("qd.daemon").error(message, exc_info=error)


class Daemon:
    """All parts of the process, by name."""

    def __init__(
        self, signals: Signals, notifier: Notifier, source: ConfigSource, events: Events, log: LogListener, hold: Hold
    ) -> None:
        self._signals, self._notifier, self._source = signals, notifier, source
        self._events, self._log, self._hold = events, log, hold
        self._pulse = Pulse("main loop", FIRST_COUNT + 120)
        self._engines = Engines(events, Engine)
        self._proof = Proof(lambda: [self._pulse, *self._engines.pulses()])
        self._http: HttpServer | None = None
        self._supervisor: Supervisor | None = None

    # ------------------------------------------------------------------ start

    def run(self, config: Config) -> int:
        """From the configuration to the end of the stop; the exit status."""
        scrub(os.environ)
        events = Withheld(self._events)  # a wrong password is said once, as what keeps it from starting
        setup = Setup(config, self._handlers(config), open_database(config.database, events), events.release)
        self._metrics = Metrics(config, setup.registry, self._engines, self._fault("metrics"))
        self._metrics.show_depths(self._engines.depths)
        self._events.listen(self._metrics, *self._metrics.kinds)
        self._events.publish(DaemonStarted(__version__, self._source.file, setup.database.info().connector))
        self._remark(config)
        self._http = self._served(config)
        supervisor = self._supervisor = self._supervised(setup)
        if not self._signals.stop_asked():
            self._begin(setup, supervisor)
        supervisor.run()
        return EX_CONFIG if supervisor.wrong is not None else EX_OK

    def _handlers(self, config: Config) -> Registry:
        try:
            with self._signals.ending_at_once():
                registry = load_handlers(config)
        except (ConfigError, HandlerError) as error:
            raise CannotStart("handlers", said(error), EX_CONFIG) from error
        load_public()
        self._signals.install()  # a module may have taken a signal
        return registry

    def _served(self, config: Config) -> HttpServer | None:
        try:
            return self._listening(config)
        except QdError as error:
            raise CannotStart("http", str(error), EX_CANT) from error

    def _begin(self, setup: Setup, supervisor: Supervisor) -> None:
        answers = self._ask(setup)
        self._hold(self._http.address if self._http else None)
        if self._signals.stop_asked():
            return
        self._engines.start(setup)
        if answers:
            self._await_first_count()
        if self._signals.stop_asked():
            return
        self._notifier.ready(supervisor.status(self._engines.ready()))
        info = setup.database.info()
        self._events.publish(
            DaemonReady(
                server=info.server,
                claim_path=info.claim_path.value if info.claim_path else "unknown",
                http=self._http.address if self._http else "off",
            )
        )

    def _ask(self, setup: Setup) -> bool:
        """Whether the database answers; the process's first connection, while no other thread makes one."""
        try:
            setup.database.check()
        except SetupWrong as error:
            raise CannotStart("database", str(error), EX_CONFIG) from error
        except StoreError:  # away: said by the database itself; the engine goes on asking
            setup.adopted()
            return False
        setup.adopted()
        return True

    def _await_first_count(self) -> None:
        end, a_moment = monotonic() + FIRST_COUNT, threading.Event()
        while not self._engines.depths().stamp and monotonic() < end and not self._signals.stop_asked():
            a_moment.wait(0.01)  # not at the signals: a SIGHUP stays queued until READY

    # ------------------------------------------------------------------ parts

    def _listening(self, config: Config) -> HttpServer | None:
        if config.http.listen is None:
            return None
        server = HttpServer(config.http.listen, self._routes(), self._fault("http"))
        server.start()
        return server

    def _routes(self) -> dict[str, Route]:
        return daemon_routes(lambda accept: self._metrics.page(accept), self._overdue, self._unready)

    def _overdue(self) -> str | None:
        worst = self._proof.worst()
        return None if worst is None else f"{worst.loop} is {worst.seconds:.1f} s overdue"

    def _unready(self) -> str | None:
        stopping = self._supervisor is not None and self._supervisor.stop is not None
        return "stopping" if stopping else self._engines.ready()

    def _supervised(self, setup: Setup) -> Supervisor:
        notifier, events, wake = self._notifier, self._events, self._signals.wake
        reloads = Reloads(setup, self._prepare, self._apply, notifier, events, wake, self._after_reload)
        show = partial(show_stacks, self._log)
        watchdog = Watchdog(notifier, self._proof, events, notifier.watchdog_usec / 1e6, show)
        return Supervisor(self._signals, notifier, self._engines, reloads, watchdog, self._pulse, events, show)

    def _remark(self, config: Config) -> None:
        """Says what is allowed but probably not meant."""
        for remark in remarks(config):
            self._events.publish(Problem(where="configuration", error=remark))

    def _fault(self, where: str) -> Callable[[BaseException], None]:
        return lambda error: self._events.publish(Problem(where=where, error=said(error)))

    # ------------------------------------------------------------------ reload

    def _prepare(self, old: Setup, say: Say) -> Setup:
        say("reading the file")
        config = self._source.read()
        say("importing handlers")
        registry = old.registry if config.handlers == old.config.handlers else load_handlers(config)
        if config.database == old.config.database:
            return Setup(config, registry, old.database)
        say("asking the new database")
        events = Withheld(self._events)
        database = open_database(config.database, events)
        database.check()
        return Setup(config, registry, database, events.release)

    def _apply(self, old: Setup, new: Setup) -> None:
        moved = new.config.http.listen != old.config.http.listen
        http = self._listening(new.config) if moved else self._http
        # Before the engine: jobs may wait already for a queue that is new here, to be counted under its name.
        self._metrics.reconfigure(new.config, new.registry)
        try:
            if needs_engine(old, new):
                self._engines.start(new)
        except Exception:
            self._metrics.reconfigure(old.config, old.registry)
            if moved and http is not None:
                http.close()
            raise
        new.adopted()
        self._remark(new.config)
        if new.config.log != old.config.log:
            self._log.apply(new.config.log)
        before, self._http = self._http, http
        if moved and before is not None:  # not in the main loop: it may take a second
            threading.Thread(target=before.close, name="qd http close", daemon=True).start()

    def _after_reload(self, word: str) -> None:
        assert self._supervisor is not None
        self._notifier.ready(self._supervisor.status(self._engines.ready(), word))

    # ------------------------------------------------------------------ end

    def end(self, status: int) -> int:
        """Takes down what is left.

        Returns:
            The status, for a normal exit; doesn't return where a thread could not be ended.
        """
        try:
            self._see_engines_stopped()
        except Exception as error:  # what broke the main loop (descriptors that a handler closed) breaks this too
            _record("the threads' end could not be awaited", error)
        if self._http is not None:
            self._http.close()
        self._signals.ignore()
        if self._engines.stuck():
            leave_at_once(status, self._last_act)
        return leave(status)

    def _last_act(self) -> None:
        for engine in self._engines.all():
            engine.last_act()

    def _see_engines_stopped(self) -> None:
        """After a normal stop they are; after a failure they get the moment that a second SIGTERM gives them."""
        under_way = self._supervisor.stop if self._supervisor is not None else None
        stop = under_way or Stop(self._engines.all(), 0.0, self._signals.wake)
        stop.hurry()
        while not stop.over():
            self._signals.wait(min(0.1, stop.left()))
            self._signals.take()
