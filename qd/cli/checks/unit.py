"""`qd check`: the systemd service that runs this configuration, where there is one, against its time limits.

May import: config, unit_files, protocol's values.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from qd.cli.checks.unit_files import FOREVER, Unit, read_unit
from qd.config.load import LOCAL_FILE, SYSTEM_FILE
from qd.config.model import Config
from qd.duration import spell
from qd.store.protocol import Finding

TO_END = 15.0
"""Seconds that TimeoutStopSec should have over the grace: what was interrupted ends, its ends are written."""

TO_COUNT = 10.0
"""Seconds that the first count of the rows may take before READY, besides connecting."""

SHORTEST_WATCHDOG = 10.0
"""Seconds; below it a machine that is merely busy has its daemon killed."""


def of_unit(config: Config, file: Path, root: Path = Path("/")) -> Iterator[Finding]:
    """What contradicts in each service that runs this file; nothing where none does.

    Args:
        root: where systemd's folders are looked for.
    """
    for unit in units_of(file, root):
        troubles = [*_of_times(config, unit), *_of_ways(unit)]
        yield from (Finding("warn", "unit", f"{unit.name}: {text}") for text in troubles)
        if not troubles:
            yield Finding(
                "ok", "unit", f"{unit.name}: a stop has {_spelled(unit.stop_timeout())} for a grace of "
                f"{spell(config.shutdown.grace)}, the watchdog's period is {spell(unit.watchdog())}"
            )  # fmt: skip


def units_of(file: Path, root: Path = Path("/")) -> list[Unit]:
    """`qd.service` and the instance of `qd@.service` of the file's name, if they run this file."""
    names = ["qd.service"]
    if re.fullmatch(r"[A-Za-z0-9:_.-]+", file.stem):
        names.append(f"qd@{file.stem}.service")
    found = [unit for name in names if (unit := read_unit(name, root)) is not None]
    wanted = os.path.realpath(file)
    return [unit for unit in found if (read := file_of(unit)) is not None and os.path.realpath(read) == wanted]


def file_of(unit: Unit) -> Path | None:
    """The configuration that a service's command reads; None where it is no `qd run`."""
    words = _words((unit.values("ExecStart") or [""])[-1].lstrip("@-:+!|"), unit.instance)
    if "run" not in words:
        return None
    variables = [word for value in unit.values("Environment") for word in _words(value, unit.instance)]
    named = [word.partition("=")[2] for word in variables if word.startswith("QD_CONFIG=")]
    for at, word in enumerate(words[:-1]):
        if word == "--config" or word.startswith("--config="):
            named.append(word.partition("=")[2] or words[at + 1])
    home = Path((unit.value("WorkingDirectory") or "/").lstrip("-").replace("%S", "/var/lib"))
    if named:
        return home / named[-1]
    return home / LOCAL_FILE if (home / LOCAL_FILE).is_file() else SYSTEM_FILE


def _words(text: str, instance: str) -> list[str]:
    try:
        return [word.replace("%i", instance).replace("%%", "%") for word in shlex.split(text)]
    except ValueError:
        return []


def _of_times(config: Config, unit: Unit) -> Iterator[str]:
    grace, stop, watchdog = config.shutdown.grace, unit.stop_timeout(), unit.watchdog()
    if stop < grace + TO_END:
        yield (
            f"TimeoutStopSec is {_spelled(stop)}, but shutdown.grace is {spell(grace)}: each stop depends on systemd "
            f"giving more time than it says. Set it to {spell(grace + TO_END)} or more, or lower the grace"
        )
    database = config.database
    needed = database.connect_timeout + database.statement_timeout + TO_COUNT
    if database.driver == "mysql" and unit.start_timeout() < needed:
        yield (
            f"TimeoutStartSec is {_spelled(unit.start_timeout())}, but with a database that answers slowly READY may "
            f"take {spell(needed)} (connect_timeout, statement_timeout, the first count). Raise it"
        )
    if watchdog == 0:
        yield "has no WatchdogSec: a daemon that hangs is not restarted. Set it to 60s"
    elif watchdog < SHORTEST_WATCHDOG:
        yield (
            f"WatchdogSec is {spell(watchdog)}: a busy machine has the daemon killed. Set it to "
            f"{spell(SHORTEST_WATCHDOG)} or more"
        )


def _of_ways(unit: Unit) -> Iterator[str]:
    """How systemd knows that it runs, and how it ends it."""
    kind = unit.choice("Type")
    if not kind.startswith("notify"):
        yield f"Type is {kind}: systemd waits for no READY and hears no watchdog. Set it to notify"
    mode = unit.choice("KillMode")
    if mode != "mixed":
        effect = {
            "control-group": "a stop ends programs and child processes of running jobs at once, whatever their grace",
            "process": "what jobs leave behind outlives the daemon",
            "none": "nothing is ended at a stop",
        }
        yield f"KillMode is {mode}: {effect[mode]}. Set it to mixed"
    if unit.choice("Restart") == "no":
        yield "has no Restart: a daemon that dies stays down. Set it to always"


def _spelled(seconds: float) -> str:
    return "infinity" if seconds == FOREVER else spell(seconds)
