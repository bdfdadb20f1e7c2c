"""A proxy before a MySQL server that loses a COMMIT's answer, or the COMMIT itself, when told to."""

from __future__ import annotations

from tests.support.proxy import FaultProxy, Link


class CuttingProxy(FaultProxy):
    """Cuts one COMMIT.

    Attributes:
        cut: None; `before` loses the next COMMIT before the server has it, `after` lets the server
            have it and loses its answer. Set back to None once it has cut.
        spared: COMMITs that pass before the one that is cut.
    """

    def __init__(self, port: int) -> None:
        self.cut: str | None = None
        self.spared = 0
        super().__init__(port, self._at_commit)

    def _at_commit(self, link: Link, statement: bytes) -> str | None:
        if self.cut is None or not statement.lower().endswith(b"commit"):
            return None
        if self.spared:
            self.spared -= 1
            return None
        how, self.cut = self.cut, None
        return how
