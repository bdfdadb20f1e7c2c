"""How long to wait before the next try. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential back-off with a cap and jitter.

    Attributes:
        base: seconds before the second try.
        factor: each further wait is this many times longer.
        cap: seconds that no wait exceeds, jitter included.
        jitter: 0.2 spreads a wait evenly over 80 to 120 % of itself, at the cap over 80 to 100 %, so
            that what failed together doesn't return together.
    """

    base: float = 10.0
    factor: float = 2.0
    cap: float = 600.0
    jitter: float = 0.2

    def delay(self, failures: int, rng: random.Random | None = None) -> float:
        """Seconds to wait after the given number of failures (from 1); never overflows.

        Args:
            failures: how many tries have failed by now.
            rng: where the jitter comes from; None takes the process's.
        """
        if self.factor > 1:
            plain = self.cap
            if self.base > 0:
                try:
                    plain = min(self.cap, self.base * self.factor ** (max(failures, 1) - 1))
                except OverflowError:
                    plain = self.cap
            else:
                plain = 0.0
        else:
            plain = min(self.cap, self.base * self.factor ** min(max(failures, 1) - 1, 1000))
        return (rng or random).uniform(plain * (1 - self.jitter), min(self.cap, plain * (1 + self.jitter)))
