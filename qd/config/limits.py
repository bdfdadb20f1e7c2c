"""What a value of the configuration may be: ranges, names, addresses, paths; each rule with its own words.

A limit stands in a field's annotation, so that the model holds it however it is built, and the
reader can say it with file and line. Owns the wording of what is allowed.
May import: the pure modules.
"""

from __future__ import annotations

import ipaddress
import keyword
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from qd.duration import spell
from qd.job import NAME_PATTERN, OWN_PREFIX

OTHER = "_other"
"""The label of the metrics for everything that isn't configured: no queue or type may be called so."""

_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")


class Wrong(ValueError):
    """A value that isn't allowed.

    Args:
        wrong: what is wrong, to stand behind the value: `is not a duration`.
        allowed: what to write instead; None where the field's own words do.
    """

    def __init__(self, wrong: str, allowed: str | None = None) -> None:
        super().__init__(f"{wrong}; {allowed}" if allowed else wrong)
        self.wrong = wrong
        self.allowed = allowed


class Limit(ABC):
    """A rule on one value.

    Attributes:
        shown: whether a message may quote the value. Free text is never quoted: people put
            credentials into the wrong line.
    """

    shown: ClassVar[bool] = True

    @property
    @abstractmethod
    def allowed(self) -> str:
        """What to write: `write a queue's name ...`."""

    @abstractmethod
    def check(self, value: Any) -> None:
        """Raises Wrong if the value isn't allowed."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def checked(value: Any) -> Any:
            self.check(value)
            return value

        return core_schema.no_info_after_validator_function(checked, handler(source))


def _seconds(value: float) -> str:
    return "0s" if value == 0 else spell(value)


def _plain(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def _bytes(value: float) -> str:
    mebibytes = int(value) >> 20
    return f"{mebibytes >> 10}GiB" if mebibytes % 1024 == 0 else f"{mebibytes}MiB"


_SPELLINGS: dict[str, Callable[[float], str]] = {"": _plain, "s": _seconds, "B": _bytes}


@dataclass(frozen=True)
class Between(Limit):
    """From low to high, both allowed; unit `s` is a duration, `B` a size; `more` is what a rule adds."""

    low: float
    high: float
    unit: str = ""
    more: str = ""

    @property
    def span(self) -> str:
        """`from 1 to 65535`."""
        words = _SPELLINGS[self.unit]
        return f"from {words(self.low)} to {words(self.high)}{self.more}"

    @property
    def allowed(self) -> str:
        noun = {"": "a number", "s": "a duration", "B": "a size"}[self.unit]
        return f"write {noun} {self.span}"

    def check(self, value: Any) -> None:
        if not self.low <= value <= self.high:
            raise Wrong("is out of range", self.allowed)


@dataclass(frozen=True)
class Name(Limit):
    """A name of a queue, a worker or a handler, as the tables' CHECKs take it."""

    length: int = 64

    @property
    def allowed(self) -> str:
        return f"write 1 to {self.length} of the characters A-Z a-z 0-9 _ . : -"

    def check(self, value: Any) -> None:
        if not re.fullmatch(NAME_PATTERN, value) or len(value) > self.length:
            raise Wrong("is not a name", self.allowed)
        if value.startswith(OWN_PREFIX):
            raise Wrong(f"begins with {OWN_PREFIX}, which is qd's own", "choose another name")
        if value == OTHER:
            raise Wrong("is what the metrics call everything else", "choose another name")


@dataclass(frozen=True)
class Line(Limit):
    """Text in one line, not empty."""

    shown: ClassVar[bool] = False
    length: int = 255
    what: str = "text"

    @property
    def allowed(self) -> str:
        return f"write {self.what}"

    def check(self, value: Any) -> None:
        if not value.strip():
            raise Wrong("is empty", self.allowed)
        if len(value) > self.length:
            raise Wrong(f"has {len(value)} characters", f"write {self.length} at most")
        if _UNPRINTABLE.search(value):
            raise Wrong("holds a line break or another control character", self.allowed)


@dataclass(frozen=True)
class FilePath(Line):
    """A path; a relative one is taken from the working directory."""

    length: int = 4095
    what: str = "a path"

    def check(self, value: Any) -> None:
        super().check(value)
        if value.startswith("~"):
            raise Wrong("begins with ~, which only a shell expands", "write the whole path")


@dataclass(frozen=True)
class Host(Line):
    """A host's name or address, without a port."""

    what: str = "a host name or an address"

    def check(self, value: Any) -> None:
        super().check(value)
        if ":" in value and not _is_ipv6(value):
            raise Wrong("holds a colon but is no IPv6 address", "write the host alone; the port has a key of its own")
        if re.search(r"[\s/\\@?#\[\]]", value):
            raise Wrong("is not a host", self.allowed)


class Listen(Limit):
    """An address to listen at."""

    @property
    def allowed(self) -> str:
        return "write host:port, like 127.0.0.1:9833 or [::1]:9833, or null for off"

    def check(self, value: Any) -> None:
        listen_address(value)


class Module(Limit):
    """A Python module's dotted name."""

    @property
    def allowed(self) -> str:
        return "write a dotted name as in `import shop.jobs`"

    def check(self, value: Any) -> None:
        if not all(part.isidentifier() and not keyword.iskeyword(part) for part in value.split(".")):
            raise Wrong("is not a module's name", self.allowed)


class HeaderName(Limit):
    """The name of an HTTP header."""

    @property
    def allowed(self) -> str:
        return "write a header's name, like X-Forwarded-For"

    def check(self, value: Any) -> None:
        if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", value):
            raise Wrong("is not a header's name", self.allowed)


class Program(Limit):
    """An argv: its first item is the program."""

    shown: ClassVar[bool] = False

    @property
    def allowed(self) -> str:
        return "write the program and its arguments as a list of texts"

    def check(self, value: Any) -> None:
        if not value or not value[0].strip():
            raise Wrong("names no program", self.allowed)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def listen_address(text: str) -> tuple[str, int]:
    """The host and the port of `host:port`; an IPv6 host stands in brackets and loses them.

    Raises:
        Wrong: it isn't one; the message says what is allowed.
    """
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if bracketed:
        host = host[1:-1]
    fits = _is_ipv6(host) if bracketed else re.fullmatch(r"[A-Za-z0-9_.-]+", host)
    if not colon or not fits or not re.fullmatch(r"[0-9]{1,5}", port):
        raise Wrong("is not an address to listen at", Listen().allowed)
    if int(port) > 65535:
        raise Wrong("has a port out of range", "write a port from 1 to 65535")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address; a name other than localhost counts as open."""
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
