"""The sections by name, in the order in which they are run; each is a module with `measure(plan)`.

Imported only when it is run, so that one which can't be takes no other down. May import: measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from benchmarks.measured import Measured, Plan


@dataclass(frozen=True, slots=True)
class Section:
    """One.

    Attributes:
        name: of its module in this package.
        title: for people.
        keys: how its figures' keys begin, where targets name them.
        servers: whether it is run on each server of the plan.
    """

    name: str
    title: str
    keys: tuple[str, ...]
    servers: bool = False

    def measure(self) -> Callable[[Plan], Sequence[Measured]]:
        """What runs it.

        Raises:
            ImportError: it can't be loaded.
        """
        found: Callable[[Plan], Sequence[Measured]] = import_module(f"benchmarks.{self.name}").measure
        return found


SECTIONS = (
    Section("drain", "The drain, beside the raw loop and the peers", ("drain",)),
    Section("regimes", "Claims and polls in every regime", ("regime", "share"), servers=True),
    Section("trickle", "Pickup in a trickle of late commits", ("trickle",), servers=True),
    Section("pickup", "Pickup by an idle daemon", ("pickup",)),
    Section("idle", "What an idle daemon costs", ("idle",)),
    Section("enqueue", "Enqueuing", ("enqueue",)),
    Section("memory", "Memory", ("memory",)),
)
"""All of them."""

BY_NAME = {section.name: section for section in SECTIONS}


@dataclass(frozen=True, slots=True)
class Part:
    """A section, on one server where it is run on several: what succeeds or fails as a whole."""

    section: Section
    server: str = ""

    @property
    def name(self) -> str:
        """As in a record: `drain`, `regimes.mysql97`."""
        return f"{self.section.name}.{self.server}".rstrip(".")

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.section.title}{f', {self.server}' if self.server else ''}"

    @property
    def keys(self) -> tuple[str, ...]:
        """How its figures' keys begin."""
        return tuple(f"{key}.{self.server}".rstrip(".") for key in self.section.keys)


def parts(sections: Sequence[Section], servers: Sequence[str]) -> list[Part]:
    """What these sections fall into on these servers, in order."""
    return [Part(one, server) for one in sections for server in (servers if one.servers else ("",))]


def part_named(name: str) -> Part:
    """The part of that name in a record.

    Raises:
        KeyError: there is no such section.
    """
    section, _, server = name.partition(".")
    return Part(BY_NAME[section], server)
