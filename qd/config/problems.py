"""Problems of a configuration, with file, line and dotted key; and where a loaded value came from.

May import: the pure modules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from qd.errors import ConfigError

Path = tuple[str | int, ...]
"""Where a value stands: ("workers", 0, "queues", 1)."""

_CLIP = 60


def visible(text: str) -> str:
    """Text for a message: clipped, control characters and lone surrogates escaped."""
    cut = text if len(text) <= _CLIP else text[: _CLIP - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)


def dotted(path: Path) -> str:
    """A path for people: `workers[0].queues[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            word = visible(part)
            text += ("." if text else "") + (word if re.fullmatch(r"[^\s.\"]\S*", word) else f'"{word}"')
    return text


@dataclass(frozen=True)
class Origin:
    """Where a configuration was read. Two configurations with the same values are equal, wherever they stood.

    Attributes:
        file: as it was named; None for one that was built in code.
        lines: the line of each key that the file sets.
        password_written: whether the file itself holds the password (and not a variable).
        inode: device and inode of the file that was read, whatever stands under its name now.
    """

    file: str | None = field(default=None, compare=False)
    lines: dict[Path, int] = field(default_factory=dict, compare=False, repr=False)
    password_written: bool = field(default=False, compare=False)
    inode: tuple[int, int] | None = field(default=None, compare=False)

    def line(self, path: Path) -> int | None:
        """The line of the key, or of the nearest one around it that the file sets."""
        return next((self.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.lines), None)

    def problem(self, path: Path, message: str) -> str:
        """`FILE:LINE: dotted.key: message`, as far as file and line are known."""
        line = self.line(path)
        where = [self.file if line is None else f"{self.file}:{line}"] if self.file else []
        return ": ".join([*where, dotted(path), message])


class Problems:
    """All that is wrong with one file.

    Attributes:
        file: as the user named it.
        bad: the paths of values that are wrong in themselves; rules between keys leave those out.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.bad: set[Path] = set()
        self._around: set[Path] = set()
        self._found: list[tuple[int, str]] = []

    def add(self, line: int, path: Path, message: str) -> None:
        """Notes that the value at `path` is wrong in itself: no rule can judge it."""
        self.bad.add(path)
        self._around.update(path[:n] for n in range(len(path)))
        self.tell(line, path, message)

    def tell(self, line: int, path: Path, message: str) -> None:
        """Notes a problem of a value that can be judged: it breaks a rule, and may break others too."""
        key = f"{dotted(path)}: " if path else ""
        self._found.append((line, f"{self.file}:{line}: {key}{message}"))

    def sound(self, path: Path) -> bool:
        """Whether neither the value, nor what it stands in, nor what stands in it is wrong in itself."""
        return path not in self._around and not any(path[:n] in self.bad for n in range(len(path) + 1))

    def __bool__(self) -> bool:
        return bool(self._found)

    def error(self) -> ConfigError:
        """All of them, in the order of their lines."""
        return ConfigError(list(dict.fromkeys(text for _, text in sorted(self._found, key=lambda found: found[0]))))
