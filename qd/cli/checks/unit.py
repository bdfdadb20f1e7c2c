"""`qd check`: the systemd service that runs this configuration, where there is one, against its time limits.

May import: config, unit_files, protocol's values.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from qd.cli.checks.unit_files import FOREVER, PLACES, Unit, read_unit
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


RUNNING = "sys/fs/cgroup/system.slice/system-qd.slice"
"""Where instances that run have their groups of processes; below the root."""


def of_units(config: Config, units: Sequence[Unit]) -> Iterator[Finding]:
    """What contradicts in each service that runs this configuration; nothing where none does."""
    for unit in units:
        troubles = [*_of_times(config, unit), *_of_ways(unit)]
        yield from (Finding("warn", "unit", f"{unit.name}: {text}") for text in troubles)
        if not troubles:
            yield Finding(
                "ok", "unit", f"{unit.name}: a stop has {_spelled(unit.stop_timeout())} for a grace of "
                f"{spell(config.shutdown.grace)}, the watchdog's period is {spell(unit.watchdog())}"
            )  # fmt: skip


def units_of(file: Path, root: Path = Path("/")) -> list[Unit]:
    """`qd.service` and the instance of `qd@.service` of the file's name, if they run this file.

    A template runs every file of its folder that somebody makes an instance of: where `qd.service` has the file,
    an instance counts only if it is in use.

    Args:
        root: where systemd's folders are looked for.
    """
    found = _running("qd.service", file, root)
    name = f"qd@{file.stem}.service"
    if re.fullmatch(r"[A-Za-z0-9:_.-]+", file.stem) and (not found or _in_use(name, root)):
        found += _running(name, file, root)
    return found


def _running(name: str, file: Path, root: Path) -> list[Unit]:
    unit = read_unit(name, root)
    read = None if unit is None else file_of(unit)
    return [unit] if unit and read and os.path.realpath(read) == os.path.realpath(file) else []


def _in_use(instance: str, root: Path) -> bool:
    """Whether it is enabled, has files of its own, or runs."""
    own = (f"{place}/{each}" for place in PLACES for each in (instance, f"{instance}.d"))
    wanted = [folder for place in PLACES for kind in ("wants", "requires") for folder in root.glob(f"{place}/*.{kind}")]
    paths = [*(root / path for path in (*own, f"{RUNNING}/{instance}")), *(folder / instance for folder in wanted)]
    return any(os.path.lexists(path) for path in paths)


def file_of(unit: Unit) -> Path | None:
    """The configuration that a service's command reads; None where it is no `qd run`."""
    words = _command(unit)
    if "run" not in words:
        return None
    named = _variable(unit, "QD_CONFIG")
    for at, word in enumerate(words[:-1]):
        if word == "--config" or word.startswith("--config="):
            named.append(word.partition("=")[2] or words[at + 1])
    home = home_of(unit)
    if named:
        return home / named[-1]
    return home / LOCAL_FILE if (home / LOCAL_FILE).is_file() else SYSTEM_FILE


def _variable(unit: Unit, name: str) -> list[str]:
    words = [word for value in unit.values("Environment") for word in _words(value, unit.instance)]
    return [word.partition("=")[2] for word in words if word.startswith(f"{name}=")]


def python_path(unit: Unit) -> list[str]:
    """The folders of a service's PYTHONPATH."""
    return [folder for value in _variable(unit, "PYTHONPATH")[-1:] for folder in value.split(os.pathsep) if folder]


def home_of(unit: Unit) -> Path:
    """The folder that a service works in."""
    return Path((unit.value("WorkingDirectory") or "/").lstrip("-").replace("%S", "/var/lib"))


def program_of(unit: Unit) -> str:
    """The program that a service starts."""
    return (_command(unit) or [""])[0]


def _command(unit: Unit) -> list[str]:
    return _words((unit.values("ExecStart") or [""])[-1].lstrip("@-:+!|"), unit.instance)


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
