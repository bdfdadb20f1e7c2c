"""Ends claims under their tokens, many in one transaction, and knows again what stood already.

After a COMMIT without an answer nobody can say whether the ends stand. The settler remembers which
they were, and which stand of a batch that failed half-way. When they come again and the token no
longer matches, the rows themselves tell: a sweep that took one of them back has left its trace in
history or dead letter, an end of ours has left none, or its own.
May import: endings, evidence, lag, listed, release, dialect, the pure modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from qd.errors import DataRefused, LockWait, StoreError, leaves_doubt
from qd.outcome import Action, Settlement, Verdict
from qd.store.dialect import Cursor, Session
from qd.store.lag import caught_up
from qd.store.listed import chunks, joined_ids
from qd.store.settle.endings import end
from qd.store.settle.evidence import stood
from qd.store.settle.release import OURS

Key = tuple[int, str]

PLACEHOLDER = "[the error's text was refused by the database]"
"""Stored where the server takes no form of an error's own text."""


class SomeWereLost(Exception):
    """Fewer rows matched than were to be finished: one by one, to know which."""


class Settler:
    """Belongs to one store, so to one thread.

    Args:
        patience: seconds for a type that nobody knows.
    """

    def __init__(self, session: Session, patience: float) -> None:
        self._session, self._patience = session, patience
        self._doubtful: set[Key] = set()
        self._waited: set[Key] = set()

    def settle(self, settlements: Sequence[Settlement]) -> list[Verdict]:
        """See Store.settle."""
        if not settlements:
            return []
        verdicts = self._written(settlements)
        lost = [at for at, verdict in enumerate(verdicts) if verdict is Verdict.LOST]
        if lost:
            self._ask_again(settlements, verdicts, lost)
        return verdicts

    def write(self, cursor: Cursor, settlements: Sequence[Settlement]) -> None:
        """The ends of jobs that all are ours still, inside a transaction of the caller's.

        Raises:
            SomeWereLost: not all are, or one of them may have been written before: `settle` tells which.
        """
        if not self._doubtful.isdisjoint(map(_key, settlements)):
            raise SomeWereLost
        if all(one.action is Action.FINISH for one in settlements):  # as nearly always
            self._finish_all(cursor, sorted(map(_key, settlements)))
        elif any(verdict is not Verdict.SETTLED for verdict in self._write(cursor, settlements, singly=False)):
            raise SomeWereLost

    def doubt(self, settlements: Sequence[Settlement]) -> None:
        """The COMMIT behind `write` had no answer: should these ends come again, the rows are asked."""
        self._doubtful.update(map(_key, settlements))

    def _ask_again(self, settlements: Sequence[Settlement], verdicts: list[Verdict], lost: Sequence[int]) -> None:
        """A node that lags may not know a claim yet, and would have its job run again."""
        try:
            if caught_up(self._session):
                again = self._written([settlements[at] for at in lost])
                for at, verdict in zip(lost, again, strict=True):
                    verdicts[at] = verdict
        except StoreError:
            self._remember(settlements, dict(enumerate(verdicts)))
            raise

    def _written(self, settlements: Sequence[Settlement]) -> list[Verdict]:
        try:
            return self._together(settlements)
        except DataRefused:
            return self._apart(settlements)
        except LockWait:
            if len(settlements) == 1 or self._session.dialect.name != "mysql":
                raise
            return self._apart(settlements)  # a row that a stranger has locked holds up no other

    def _together(self, settlements: Sequence[Settlement]) -> list[Verdict]:
        """All in one transaction; finished rows in one statement if all of them match."""
        if self._doubtful.isdisjoint(map(_key, settlements)):
            try:
                return self._committed(settlements, singly=False)
            except SomeWereLost:
                pass
        return self._committed(settlements, singly=True)

    def _apart(self, settlements: Sequence[Settlement]) -> list[Verdict]:
        """Each in a transaction of its own; what was written is known again when all come again.

        Gives up at the second row that is locked, so that a call stays short; rows that were
        locked the last time come last.
        """
        verdicts: dict[int, Verdict] = {}
        locked: LockWait | None = None
        try:
            for at in sorted(range(len(settlements)), key=lambda at: _key(settlements[at]) in self._waited):
                try:
                    verdicts[at] = self._one(settlements[at])
                except LockWait as error:
                    self._waited.add(_key(settlements[at]))
                    if locked is not None:
                        raise
                    locked = error
            if locked is not None:
                raise locked
        except StoreError:
            self._remember(settlements, verdicts)
            raise
        self._waited.clear()
        return [verdicts[at] for at in range(len(settlements))]

    def _remember(self, settlements: Sequence[Settlement], verdicts: Mapping[int, Verdict]) -> None:
        """What stands already, to be known again when all come again."""
        stand = [at for at, verdict in verdicts.items() if verdict is not Verdict.LOST]
        self._doubtful.update(_key(settlements[at]) for at in stand)

    def _one(self, settlement: Settlement) -> Verdict:
        """One end; a text that is refused is replaced by a plain one."""
        try:
            return self._committed([settlement], singly=True)[0]
        except DataRefused:
            plain = replace(settlement.outcome, error=PLACEHOLDER, traceback=None)
            return self._committed([replace(settlement, outcome=plain)], singly=True)[0]

    def _committed(self, settlements: Sequence[Settlement], *, singly: bool) -> list[Verdict]:
        try:
            verdicts = self._session.transaction(lambda cursor: self._write(cursor, settlements, singly))
        except SomeWereLost:  # so nothing stands
            raise
        except BaseException as error:
            if leaves_doubt(error):
                self.doubt(settlements)
            raise
        self._doubtful.difference_update(map(_key, settlements))
        self._waited.difference_update(map(_key, settlements))
        return verdicts

    def _write(self, cursor: Cursor, settlements: Sequence[Settlement], singly: bool) -> list[Verdict]:
        """In the order of the ids, so that two who settle together don't wait for each other crosswise."""
        verdicts: dict[int, Verdict] = {}
        order = sorted(range(len(settlements)), key=lambda at: settlements[at].job.id)
        if not singly:
            finished = [at for at in order if settlements[at].action is Action.FINISH]
            self._finish_all(cursor, [_key(settlements[at]) for at in finished])
            verdicts.update(dict.fromkeys(finished, Verdict.SETTLED))
        for at in order:
            if at not in verdicts:
                verdicts[at] = self._write_one(cursor, settlements[at])
        return [verdicts[at] for at in range(len(settlements))]

    def _write_one(self, cursor: Cursor, settlement: Settlement) -> Verdict:
        verdict = end(cursor, self._session.dialect, settlement, self._patience)
        if verdict is Verdict.LOST and _key(settlement) in self._doubtful:
            return stood(cursor, settlement)
        return verdict

    def _finish_all(self, cursor: Cursor, keys: Sequence[Key]) -> None:
        if self._session.dialect.name != "mysql" or len(keys) == 1:
            for key in keys:
                cursor.execute(f"DELETE FROM qd_jobs WHERE id = %s AND {OURS}", key)
                _check(cursor, 1)
            return
        of_claim: dict[str, list[int]] = {}
        for job_id, token in keys:
            of_claim.setdefault(token, []).append(job_id)
        for token, ids in of_claim.items():
            for some in chunks(ids):
                cursor.execute(f"DELETE j FROM {joined_ids(some)} WHERE j.{OURS}", (token,))
                _check(cursor, len(some))


def _key(settlement: Settlement) -> Key:
    return settlement.job.id, settlement.job.token


def _check(cursor: Cursor, wanted: int) -> None:
    if cursor.rowcount != wanted:
        raise SomeWereLost
