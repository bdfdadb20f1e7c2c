"""A scalar's text as the value that a key wants. YAML's guesses are refused, never followed.

YAML 1.1 reads `no` as false, `0123` as 83, `22:00` as 1320; its versions and parsers differ. So an
unquoted text that any of them takes for something else must be quoted, and a number is plain
decimal digits. Owns the expansion of `${NAME}`: after parsing, once, and never as YAML.
May import: the pure modules, limits and problems.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qd.config.limits import Wrong
from qd.config.problems import visible
from qd.duration import duration, size

_REFERENCE = re.compile(r"\$\$|\$\{([^}]*)(\}?)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_HUGE = 1 << 63

_READINGS = [
    (re.compile(pattern, re.IGNORECASE), reading)
    for pattern, reading in (
        (r"|~|null", "nothing (null)"),
        (r"true|yes|on|y", "true"),
        (r"false|no|off|n", "false"),
        (r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-f_]+)", "a number that is not decimal"),
        (r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?", "a number in base 60"),
        (r"[-+]?(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)(e[-+]?[0-9]+)?", "a number"),
        (r"[-+]?\.(inf|nan)", "a number"),
        (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([t \t].*)?", "a date"),
        (r"=|<<", "a sign of its own"),
    )
]


def yaml_reading(text: str) -> str | None:
    """What some YAML parser reads an unquoted text as, or None when all read it as this text."""
    return next((reading for pattern, reading in _READINGS if pattern.fullmatch(text)), None)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar, its variables expanded.

    Attributes:
        text: the value.
        source: as it stands in the file; what messages show, for a variable's value may be secret.
        plain: it stands there without quotes and without a variable.
        expanded: a variable is in it.
    """

    text: str
    source: str
    plain: bool = False
    expanded: bool = False

    @property
    def shown(self) -> str:
        """The source in quotes, for a message."""
        return f'"{visible(self.source)}"'


def expand(source: str, plain: bool, environ: Mapping[str, str]) -> Scalar:
    """Puts the variables in: once, so that what a variable holds is never looked at again.

    Raises:
        Wrong: a variable isn't set, isn't text, or its name is none.
    """
    names: list[str] = []

    def put(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        name = match[1]
        if not match[2] or not _VARIABLE.fullmatch(name):
            raise Wrong("has a ${ without a variable's name and a } behind it", "write ${NAME}, or $$ for a dollar")
        names.append(name)
        return environ.get(name, "")

    text = _REFERENCE.sub(put, source)
    unset = list(dict.fromkeys(name for name in names if name not in environ))
    if unset:
        what = "is a variable that is not set" if len(unset) == 1 else "are variables that are not set"
        raise Wrong(f"{', '.join('${' + name + '}' for name in unset)} {what}", "set it, or write $$ for a dollar")
    if any("\ud800" <= c <= "\udfff" for name in names for c in environ[name]):
        raise Wrong("has a variable whose value is not UTF-8", "set it to text")
    return Scalar(text, source, plain and not names, bool(names))


def is_null(scalar: Scalar) -> bool:
    """Whether it says null: `null`, `~`, or nothing at all."""
    return scalar.plain and scalar.text.lower() in ("", "~", "null")


def text(scalar: Scalar) -> str:
    """Text: anything quoted, and what every YAML parser reads as this text."""
    if scalar.plain:
        reading = yaml_reading(scalar.text)
        if reading is not None:
            raise Wrong(f"stands without quotes, and YAML reads it as {reading}", 'write it in quotes ("...")')
    if "\0" in scalar.text or any("\ud800" <= c <= "\udfff" for c in scalar.text):
        raise Wrong("holds a NUL or half a surrogate pair, which is no text")
    return scalar.text


def _bare(scalar: Scalar, pattern: re.Pattern[str], noun: str) -> str:
    """The digits of a number; in quotes it would be text, unless a variable is in it."""
    fits = pattern.fullmatch(scalar.text)
    if fits and not scalar.plain and not scalar.expanded:
        raise Wrong("is text because of its quotes", "write the number without them")
    if not fits:
        raise Wrong(f"is not a {noun} in plain decimal digits")
    return scalar.text


def whole(scalar: Scalar) -> int:
    """A whole number in decimal digits; what is beyond all limits comes back as a huge one."""
    digits = _bare(scalar, _WHOLE, "whole number")
    return int(digits) if len(digits) < 19 else _HUGE


def number(scalar: Scalar) -> float:
    """A number in decimal digits, with a point or without."""
    digits = _bare(scalar, _NUMBER, "number")
    return float(digits) if len(digits) < 40 else float(_HUGE)


def truth(scalar: Scalar) -> bool:
    """`true` or `false`, and nothing else."""
    if scalar.text not in ("true", "false"):
        raise Wrong("is not true or false")
    if not scalar.plain and not scalar.expanded:
        raise Wrong("is text because of its quotes", "write true or false without them")
    return scalar.text == "true"


def seconds(scalar: Scalar) -> float:
    """A duration, in seconds."""
    return _with_unit(scalar, duration, "is not a duration")


def octets(scalar: Scalar) -> int:
    """A size, in bytes."""
    return int(_with_unit(scalar, size, "is not a size"))


def _with_unit(scalar: Scalar, read: Callable[[object], float], wrong: str) -> float:
    value = scalar.text
    if _NUMBER.fullmatch(value) and not value.startswith("-"):
        raise Wrong("is a number without a unit")
    try:
        return read(value if value.isascii() and len(value) < 40 else "")
    except ValueError:
        raise Wrong(wrong) from None
