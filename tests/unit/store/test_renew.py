"""Renewing many leases at once where a cluster undoes a transaction: each row's fate is its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

from qd.errors import TransactionFailed
from qd.store.dialect import SQLITE
from qd.store.protocol import HeldLease, Renewal
from qd.store.renew import CONFLICT, renew, renew_skipping

T = TypeVar("T")
LEASES = [HeldLease(number, f"token-{number}", 30.0) for number in range(1, 9)]


class Rows:
    """A cursor on rows that nobody has locked: all are there, all are ours."""

    rowcount = 0
    lastrowid = None

    def __init__(self) -> None:
        self.touched: set[int] = set()
        self._found: list[tuple[int, str]] = []

    def execute(self, sql: str, params: Sequence[Any] = ()) -> None:
        if sql.startswith("SELECT"):
            self._found = [(number, f"token-{number}") for number in params]
            self.touched.update(params)

    def fetchall(self) -> list[tuple[int, str]]:
        return self._found

    def fetchone(self) -> Any:
        return self._found[0]


class Cluster:
    """A session whose COMMIT is undone wherever one of these rows was written."""

    dialect = SQLITE  # which asks no node whether it has caught up
    urgent = False

    def __init__(self, contested: set[int], errno: int = CONFLICT) -> None:
        self._contested, self._errno = contested, errno

    def transaction(self, work: Callable[[Any], T]) -> T:
        rows = Rows()
        done = work(rows)
        if rows.touched & self._contested:
            raise TransactionFailed("undone", self._errno)
        return done

    def read(self, work: Callable[[Any], T]) -> T:
        return work(Rows())

    def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize("contested", [{1}, {3, 4}, {2, 8}, set(range(1, 9))])
def test_rows_that_another_node_has_written_cost_their_neighbours_no_renewal(contested: set[int]) -> None:
    found = renew(Cluster(contested), LEASES, renew_skipping)
    wanted = [Renewal.LOCKED if lease.job_id in contested else Renewal.RENEWED for lease in LEASES]
    assert found == wanted


def test_what_may_have_taken_its_time_is_not_tried_again_in_halves() -> None:
    with pytest.raises(TransactionFailed):
        renew(Cluster({1}, errno=1205), LEASES, renew_skipping)
