"""What happens between the daemon and its database. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qd.events.root import Event, Level


@dataclass(frozen=True, slots=True)
class DatabaseLost(Event):
    NAME: ClassVar[str | None] = "database.lost"
    LEVEL: ClassVar[Level] = "warning"
    connection: str
    error: str


@dataclass(frozen=True, slots=True)
class DatabaseRestored(Event):
    NAME: ClassVar[str | None] = "database.restored"
    connection: str
    seconds: float


@dataclass(frozen=True, slots=True)
class DatabaseErrorSeen(Event):
    """Metrics only. kind: the label of qd_database_errors_total."""

    kind: str


@dataclass(frozen=True, slots=True)
class Reconnected(Event):
    """Metrics only. One connection was opened again."""

    connection: str


@dataclass(frozen=True, slots=True)
class TransactionEnded(Event):
    """Metrics only. How many statements it had, its COMMIT counted; `committed`: it had one that was answered."""

    statements: int
    committed: bool


@dataclass(frozen=True, slots=True)
class ClaimPathChosen(Event):
    NAME: ClassVar[str | None] = "database.claim_path_chosen"
    claim_path: str
    why: str
