"""Reads a systemd service as systemd does: its file, then its drop-ins, from all places, in order.

Only files are read, so that no systemd has to run and no bus has to answer: what is told is what holds
after `systemctl daemon-reload`. Pure, but for the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
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

FOREVER = float("inf")

_SPANS = {
    "us": 1e-6, "usec": 1e-6, "µs": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1, "sec": 1, "second": 1, "seconds": 1,
    "m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hr": 3600, "hour": 3600, "hours": 3600,
    "d": 86400, "day": 86400, "days": 86400, "w": 604800, "week": 604800, "weeks": 604800,
    "M": 2629800, "month": 2629800, "months": 2629800, "y": 31557600, "year": 31557600, "years": 31557600,
}  # fmt: skip
_SPAN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ]*)\s*")


@dataclass(frozen=True)
class Unit:
    """A service as its files have it.

    Attributes:
        name: e.g. `qd@mails.service`.
        service: the settings of [Service], each with all values that stand, in order.
        defaults: the same of the manager's [Manager].
    """

    name: str
    service: Mapping[str, list[str]] = field(default_factory=dict)
    defaults: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def instance(self) -> str:
        """What stands between @ and .service; empty where there is none."""
        return self.name.partition("@")[2].removesuffix(".service")

    def value(self, key: str, default: str = "") -> str:
        """The last value of a setting."""
        return (self.service.get(key) or [default])[-1]

    def values(self, key: str) -> list[str]:
        """All values of a setting."""
        return self.service.get(key, [])

    def stop_timeout(self) -> float:
        """Seconds from SIGTERM to SIGKILL."""
        return self._limit(("TimeoutStopSec", "TimeoutSec"), "DefaultTimeoutStopSec")

    def start_timeout(self) -> float:
        """Seconds that READY may take."""
        return self._limit(("TimeoutStartSec", "TimeoutSec"), "DefaultTimeoutStartSec")

    def watchdog(self) -> float:
        """The watchdog's period in seconds; 0.0: there is none."""
        found = seconds(self.value("WatchdogSec", "0"))
        return 0.0 if found in (None, FOREVER) else found or 0.0

    def _limit(self, keys: tuple[str, ...], default: str) -> float:
        """The first that is set; 0 means for ever, as infinity does."""
        written = [self.value(key) for key in keys] + (self.defaults.get(default) or ["90"])[-1:]
        return next((span or FOREVER for text in written if (span := seconds(text)) is not None), FOREVER)


def read_unit(name: str, root: Path = Path("/")) -> Unit | None:
    """A service by its name; None where there is none, or where it is masked."""
    template = re.sub(r"@.*\.service$", "@.service", name)
    fragment = _first(name, PLACES, root) or _first(template, PLACES, root)
    text = _text(fragment) if fragment is not None else ""
    if not text:  # a masked one is a link to /dev/null, or empty
        return None
    drop_ins = _by_name(root / place / f"{each}.d" for each in (name, template, "service") for place in PLACES)
    return Unit(name, settings([text, *_texts(drop_ins)], "Service"), _defaults(root))


def _defaults(root: Path) -> dict[str, list[str]]:
    main = _first("system.conf", MANAGER, root)
    more = _by_name(root / place / "system.conf.d" for place in MANAGER)
    return settings(_texts([*([main] if main else []), *more]), "Manager")


def settings(texts: list[str], section: str) -> dict[str, list[str]]:
    """The settings of one section, over files that add to each other; an empty value takes back what was before."""
    found: dict[str, list[str]] = {}
    for text in texts:
        for key, value in _assignments(text, section):
            found[key] = [*found.get(key, []), value] if value else []
    return found


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
