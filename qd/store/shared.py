"""What the stores of one Database share. May import: marks, dialect, events, protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from qd.events import Events
from qd.store.claim.marks import Watermarks
from qd.store.protocol import ClaimPath

UNKNOWN_TYPE_PATIENCE = 900.0
"""Seconds from the first look at a job of unknown type until it becomes a dead letter."""


@dataclass(slots=True)
class Shared:
    """Shared by all stores, used from any thread.

    Attributes:
        path: how rows are claimed; finds it out if it isn't known yet, or raises StoreError.
        give_up_skip_locked: told why, when the server refuses what it seemed to know.
        impatient: put before a statement it makes that one wait for no lock, where the server
            can do that; else empty.
        unknown_type_patience: seconds, see UNKNOWN_TYPE_PATIENCE.
    """

    events: Events
    path: Callable[[], ClaimPath]
    give_up_skip_locked: Callable[[str], None]
    impatient: Callable[[], str]
    unknown_type_patience: float = UNKNOWN_TYPE_PATIENCE
    marks: Watermarks = field(default_factory=Watermarks)
