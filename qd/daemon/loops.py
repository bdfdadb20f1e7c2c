"""An engine's service threads: each is watched from its start until it is told to stop.

May import: maintenance.service, pulse.
"""

from __future__ import annotations

from qd.maintenance.service import ServiceThread
from qd.pulse import Pulse


class Loop(ServiceThread):
    """A service's thread whose end is a fault, unless it was asked for."""

    _begun = _told = False

    def start(self) -> None:
        """Starts it, if that hasn't been done: a start that failed may be tried again."""
        if not self._begun:
            super().start()
            self._begun = True

    def stop(self) -> None:
        """Tells it to end after the round that is under way."""
        self._told = True
        super().stop()

    def watched(self) -> list[Pulse]:
        """Its pulse, for as long as it should turn; broken from now where its thread has ended by itself."""
        if not self._begun:
            return []
        if not self.alive():
            if self._told:  # read after the thread was seen dead: it was told before it ended
                return []
            self.pulse.lapse()
        return [self.pulse]
