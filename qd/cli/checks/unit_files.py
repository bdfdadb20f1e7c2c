"""Reads a systemd service as systemd does: its file, then its drop-ins, from all places, in order.

Only files are read, so that no systemd has to run and no bus has to answer. `systemctl show` would say what
the manager has loaded, but a check is asked most of all after a change, before `systemctl daemon-reload`,
and what is told here is what holds after it; it is asked also where an image is built and no systemd runs,
and by each verb of root's that looks for the service's password, which mustn't wait for a bus. That it reads
as systemd does is held against a real one's answers (tests/acceptance/test_check_unit.py). Pure, but for the
files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PLACES = (
    "etc/systemd/system.control", "run/systemd/system.control", "run/systemd/transient", "etc/systemd/system",
    "run/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system",
)  # fmt: skip
"""Where units are, the first before the later ones; below the root."""

MANAGER = ("etc/systemd", "run/systemd", "usr/local/lib/systemd", "usr/lib/systemd", "lib/systemd")
"""Where the manager's own defaults are: system.conf and what stands in system.conf.d."""

LARGEST = 1 << 20
"""Bytes of a file that is read; nothing larger is a unit."""

DEFAULT = 90.0
"""Seconds of both limits where nobody says another."""

FOREVER = float("inf")

CHOICES = {
    "Type": ("simple", "exec", "forking", "oneshot", "dbus", "notify", "notify-reload", "idle"),
    "KillMode": ("control-group", "process", "mixed", "none"),
    "Restart": ("no", "always", "on-success", "on-failure", "on-abnormal", "on-abort", "on-watchdog"),
}
"""What systemd takes, the default first."""

_SPANS = {
    "us": 1e-6, "usec": 1e-6, "µs": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1, "sec": 1, "second": 1, "seconds": 1,
    "m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hour": 3600, "hours": 3600,
    "d": 86400, "day": 86400, "days": 86400, "w": 604800, "week": 604800, "weeks": 604800,
    "M": 2629800, "month": 2629800, "months": 2629800, "y": 31557600, "year": 31557600, "years": 31557600,
}  # fmt: skip
_SPAN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ]*)\s*")


Settings = list[tuple[str, str]]
"""Names and values of one section, in the order in which they were assigned."""


@dataclass(frozen=True)
class Unit:
    """A service as its files have it.

    Attributes:
        name: e.g. `qd@mails.service`.
        service: of its section [Service].
        defaults: of the manager's [Manager].
    """

    name: str
    service: Settings = field(default_factory=list)
    defaults: Settings = field(default_factory=list)

    @property
    def instance(self) -> str:
        """What stands between @ and .service; empty where there is none."""
        return self.name.partition("@")[2].removesuffix(".service")

    def value(self, key: str) -> str:
        """The last value of a setting."""
        return ([value for name, value in self.service if name == key] or [""])[-1]

    def choice(self, key: str) -> str:
        """The last value of a setting that takes only certain ones; others count for nothing, but an empty KillMode."""
        allowed = CHOICES[key]
        values = [value or (allowed[0] if key == "KillMode" else "") for name, value in self.service if name == key]
        return ([value for value in values if value in allowed] or [allowed[0]])[-1]

    def values(self, key: str) -> list[str]:
        """All values of a list; an empty one takes back what was before."""
        found: list[str] = []
        for name, value in self.service:
            if name == key:
                found = [*found, value] if value else []
        return found

    def stop_timeout(self) -> float:
        """Seconds from SIGTERM to SIGKILL."""
        return self._limit("TimeoutStopSec", "DefaultTimeoutStopSec")

    def start_timeout(self) -> float:
        """Seconds that READY may take."""
        return self._limit("TimeoutStartSec", "DefaultTimeoutStartSec")

    def watchdog(self) -> float:
        """The watchdog's period in seconds; 0.0: there is none."""
        found = _last_span(self.service, {"WatchdogSec"})
        return 0.0 if found in (None, FOREVER) else found or 0.0

    def _limit(self, key: str, default: str) -> float:
        """Seconds; 0 means for ever, as infinity does."""
        found = _last_span(self.service, {key, "TimeoutSec"})
        if found is None:
            found = _last_span(self.defaults, {default})
        return DEFAULT if found is None else found or FOREVER


def read_unit(name: str, root: Path = Path("/")) -> Unit | None:
    """A service by its name; None where there is none, or where it is masked."""
    template = re.sub(r"@.*\.service$", "@.service", name)
    fragment = _first(name, PLACES, root) or _first(template, PLACES, root)
    text = _text(fragment) if fragment is not None else ""
    if not text:  # a masked one is a link to /dev/null, or empty
        return None
    own = [root / place / f"{each}.d" for place in PLACES for each in (name, template)]
    drop_ins = _by_name([*own, *(root / place / "service.d" for place in PLACES)])
    return Unit(name, settings([text, *_texts(drop_ins)], "Service"), _defaults(root))


def _defaults(root: Path) -> Settings:
    main = _first("system.conf", MANAGER, root)
    more = _by_name(root / place / "system.conf.d" for place in MANAGER)
    return settings(_texts([*([main] if main else []), *more]), "Manager")


def settings(texts: list[str], section: str) -> Settings:
    """What one section assigns, over files that add to each other."""
    return [assigned for text in texts for assigned in _assignments(text, section)]


def _last_span(assigned: Settings, keys: set[str]) -> float | None:
    """The last of these that is a time span; what is none is passed over, as systemd does."""
    spans = [span for name, value in assigned if name in keys and (span := seconds(value)) is not None]
    return spans[-1] if spans else None


def seconds(text: str) -> float | None:
    """A time span as systemd writes it, `1min 30s`, `90`, `infinity`; None where it is none."""
    if text.strip() == "infinity":
        return FOREVER
    total, at = 0.0, 0
    for match in _SPAN.finditer(text):
        if match.start() != at or (match[2] or "s") not in _SPANS:
            return None
        total, at = total + float(match[1]) * _SPANS[match[2] or "s"], match.end()
    return total if at and at == len(text) else None


def _assignments(text: str, wanted: str) -> Iterator[tuple[str, str]]:
    """The assignments of a section: a line that ends in a backslash goes on in the next that is no comment."""
    section, begun = "", ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith(("#", ";")) or (not line and not begun):
            continue
        if line.endswith("\\"):
            begun += f"{line[:-1]} "
            continue
        line, begun = begun + line, ""
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif section == wanted and "=" in line:
            key, _, value = line.partition("=")
            yield key.strip(), value.strip()


def _first(name: str, places: tuple[str, ...], root: Path) -> Path | None:
    return next((file for place in places if (file := root / place / name).is_file() or file.is_symlink()), None)


def _by_name(folders: Iterable[Path]) -> list[Path]:
    """What is in drop-in folders, by the files' own names; of one name the first counts."""
    found: dict[str, Path] = {}
    for folder in folders:
        for file in folder.glob("*.conf"):
            found.setdefault(file.name, file)
    return [found[name] for name in sorted(found)]


def _texts(files: Iterable[Path]) -> list[str]:
    return [text for file in files if (text := _text(file))]


def _text(file: Path) -> str:
    """What stands in a file; nothing where it can't be read, or is none."""
    try:
        if not file.is_file() or file.stat().st_size > LARGEST:
            return ""
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
