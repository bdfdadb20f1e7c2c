"""How often one session may try to open its connection. May import: the pure modules."""

from __future__ import annotations

from qd.backoff import Backoff
from qd.clock import monotonic
from qd.errors import StoreError

SOON = Backoff(base=0.1, factor=2.0, cap=0.5, jitter=0.5)
"""After a server that doesn't answer. Below the callers' own pauses, so that theirs decide: also below those of
the lease keeper, who must be back before another daemon's sweep has looked twice."""

LATER = Backoff(base=1.0, factor=2.0, cap=40.0, jitter=0.25)
"""After a refusal that asking again makes no better: in the end half a minute and more."""


class Pacing:
    """Jittered back-off between the attempts of one session; the first after a success is free."""

    def __init__(self) -> None:
        self._failures = 0
        self._later = False
        self._next = 0.0
        self._last: StoreError | None = None

    def waiting(self) -> StoreError | None:
        """Why no attempt may be made yet: the last failure; None: go on."""
        return self._last if monotonic() < self._next else None

    def failed(self, error: StoreError, *, later: bool) -> None:
        """An attempt failed; `later`: and will for a while."""
        if later is not self._later:  # a refusal after a long outage is news, and may be over in a moment
            self._failures, self._later = 0, later
        self._failures += 1
        self._last = error
        self._next = monotonic() + (LATER if later else SOON).delay(self._failures)

    def succeeded(self) -> None:
        """A connection works."""
        self._failures, self._next, self._last = 0, 0.0, None
