"""Claims rows where the server has no SKIP LOCKED: a plain look, then one conditional UPDATE a row.

Nothing waits for others' rows longer than the shortest lock wait there is; each row won is
committed at once. May import: candidate, take, dialect, marks, protocol, the pure modules.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from qd.errors import StoreError, TransactionFailed, leaves_doubt
from qd.store.claim.candidate import Candidate, bury_spent, candidates, reserved, spot_of
from qd.store.claim.marks import Watermarks
from qd.store.claim.take import Taken, claim_limit, must_be_alone
from qd.store.dialect import Cursor, Session
from qd.store.protocol import Claim

SPARE = 8
"""Candidates looked at beyond those wanted: rivals win some."""

WAITS = 2
"""Rows that one claim waits for, where the server can't be told not to wait at all."""


class ConditionalClaim:
    """One claim's way through the candidates.

    Args:
        impatient: see Shared.
        doubt: told of a row that may be ours without anybody knowing of it.
    """

    def __init__(
        self, session: Session, claim: Claim, marks: Watermarks, impatient: str, doubt: Callable[[Candidate], None]
    ) -> None:
        self._session, self._claim, self._marks = session, claim, marks
        self._impatient, self._doubt = impatient, doubt
        self._waited = 0

    def take(self) -> Taken:
        """Takes rows of the first priority that has any; each is committed when it returns.

        Raises:
            StoreError: nothing was taken. A failure after a row was won ends the claim with what is won.
        """
        taken = Taken()
        for priority in self._claim.priorities:
            taken.lane = (self._claim.queue, priority)
            taken.begun = self._marks.begin(
                taken.lane, self._claim.start if priority == self._claim.priorities[0] else None
            )
            found = self._look(priority, taken)
            if found:
                self._take_from(found, taken)
            if taken.rows:
                return taken
            taken.empty.append(taken.lane)
        return taken

    def _look(self, priority: int, taken: Taken) -> list[Candidate]:
        dialect, limit = self._session.dialect, self._claim.limit + SPARE
        return self._session.read(
            lambda cursor: candidates(cursor, dialect, self._claim, priority, taken.begun.spot, limit, "")
        )

    def _take_from(self, found: Sequence[Candidate], taken: Taken) -> None:
        beaten: set[int] = set()
        try:
            for row in self._in_turn(found, beaten):
                self._try(row, taken, beaten)
                if len(taken.rows) >= self._claim.limit or taken.alone or self._waited >= WAITS:
                    break
        except StoreError:
            if not taken.rows:
                raise
        except BaseException:  # not the database's: nobody will hear of what was won
            for row in taken.rows:
                self._doubt(row)
            raise
        taken.rows.sort(key=lambda row: (spot_of(row).due, row.id))
        gone = beaten | {row.id for row in [*taken.rows, *taken.buried]}
        passed = [row for row in found if row.id not in gone]
        full = len(taken.rows) >= self._claim.limit or taken.alone
        taken.next = spot_of(passed[0] if passed else found[-1]) if full else None

    def _in_turn(self, found: Sequence[Candidate], beaten: set[int]) -> Iterator[Candidate]:
        """In order, until a rival wins one: from there on shuffled, so that rivals spread."""
        for at, row in enumerate(found):
            yield row
            if beaten:
                rest = list(found[at + 1 :])
                random.shuffle(rest)
                yield from rest
                return

    def _try(self, row: Candidate, taken: Taken, beaten: set[int]) -> None:
        if row.attempts >= claim_limit(row, self._claim):
            if self._won(row, self._bury):
                taken.buried.append(row)
            return
        alone = must_be_alone(row, self._claim)
        if alone and taken.rows:
            return
        if self._won(row, self._reserve):
            taken.rows.append(row)
            taken.alone = alone
        else:
            beaten.add(row.id)

    def _won(self, row: Candidate, act: Callable[[Cursor, Candidate], bool]) -> bool:
        try:
            return self._session.transaction(lambda cursor: act(cursor, row))
        except TransactionFailed:  # somebody has it: his
            self._waited += not self._impatient
            return False
        except BaseException as error:
            if leaves_doubt(error):
                self._doubt(row)
            raise

    def _reserve(self, cursor: Cursor, row: Candidate) -> bool:
        setting, values = reserved(self._session.dialect, self._claim)
        cursor.execute(
            f"{self._impatient}UPDATE qd_jobs SET {setting} "
            "WHERE id = %s AND lane = 0 AND attempts = %s AND available_at = %s",
            (*values, row.id, row.attempts, spot_of(row).due),
        )
        return cursor.rowcount == 1

    def _bury(self, cursor: Cursor, row: Candidate) -> bool:
        lock = self._session.dialect.lock
        cursor.execute(f"{self._impatient}SELECT id FROM qd_jobs WHERE id = %s AND lane = 0{lock}", (row.id,))
        return cursor.fetchone() is not None and bury_spent(cursor, self._session.dialect, row)
