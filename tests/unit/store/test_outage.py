"""An outage is one line when it begins and one when it ends, over all connections."""

from __future__ import annotations

import pytest

from qd.clock import monotonic
from qd.errors import (
    ConnectionLost,
    DataRefused,
    LockWait,
    ReadOnlyServer,
    ServerBusy,
    SetupWrong,
    StoreError,
    UnknownError,
)
from qd.events import DatabaseErrorSeen, DatabaseLost, DatabaseRestored, Event, Events, Problem
from qd.store import outage
from qd.store.outage import SETTLES, OutageRecord

GONE = ConnectionLost("gone", 2013)


class Told:
    """A record and what it said."""

    def __init__(self) -> None:
        self.seen: list[Event] = []
        self.record = OutageRecord(Events(self.seen.append))

    def lines(self) -> list[str]:
        """Events that become log lines, by class."""
        return [type(event).__name__ for event in self.seen if event.NAME is not None]


def test_at_first_the_database_is_up_and_was_never_in_trouble() -> None:
    record = Told().record
    assert record.up()
    assert record.troubled_at() == 0.0


def test_many_losses_and_failed_attempts_are_one_outage() -> None:
    told = Told()
    opened = monotonic()
    for name in ("one", "two", "three"):
        told.record.lost(name, opened, GONE)
        told.record.lost(name, None, GONE)
    assert not told.record.up()
    told.record.succeeded("two", 0.0, wrote=True)
    told.record.succeeded("one", 0.0, wrote=False)
    assert told.record.up()
    assert told.lines() == ["DatabaseLost", "DatabaseRestored"]
    assert sum(isinstance(event, DatabaseErrorSeen) for event in told.seen) == 6


def test_a_loss_noticed_late_belongs_to_the_outage_that_is_over() -> None:
    told = Told()
    opened = monotonic()
    told.record.lost("one", opened, GONE)
    told.record.succeeded("one", 0.0, wrote=True)
    told.record.lost("two", opened, GONE)
    assert told.record.up()
    assert told.lines() == ["DatabaseLost", "DatabaseRestored"]


def test_the_loss_of_an_old_connection_that_worked_long_after_the_last_outage_is_a_new_one() -> None:
    told = Told()
    opened = monotonic()
    told.record.lost("one", opened, GONE)
    told.record.succeeded("one", 0.0, wrote=True)
    told.record.lost("two", opened, GONE, used_at=monotonic() + SETTLES)
    assert not told.record.up()
    assert told.lines() == ["DatabaseLost", "DatabaseRestored", "DatabaseLost"]


def test_a_server_that_takes_no_writes_is_a_new_outage_on_an_old_connection_too() -> None:
    told = Told()
    opened = monotonic()
    told.record.lost("one", opened, GONE)
    told.record.succeeded("one", 0.0, wrote=True)
    told.record.lost("two", opened, ReadOnlyServer("read-only", 1290))
    assert not told.record.up()


def test_a_late_loss_whose_connection_cannot_be_opened_again_is_a_new_outage() -> None:
    told = Told()
    opened = monotonic()
    told.record.lost("one", opened, GONE)
    told.record.succeeded("one", 0.0, wrote=True)
    told.record.lost("two", opened, GONE)
    told.record.lost("two", None, GONE)
    assert not told.record.up()
    assert told.lines() == ["DatabaseLost", "DatabaseRestored", "DatabaseLost"]


def test_the_loss_of_a_connection_that_was_opened_since_is_a_new_outage() -> None:
    told = Told()
    told.record.lost("one", monotonic(), GONE)
    again = monotonic()
    told.record.succeeded("one", 0.0, wrote=True)
    told.record.lost("one", again, GONE)
    assert told.lines() == ["DatabaseLost", "DatabaseRestored", "DatabaseLost"]


def test_a_read_only_outage_ends_with_a_write_not_with_a_read() -> None:
    told = Told()
    told.record.lost("one", monotonic(), ReadOnlyServer("read-only", 1290))
    told.record.succeeded("two", 0.0, wrote=False)
    assert not told.record.up()
    told.record.succeeded("two", 0.0, wrote=True)
    assert told.record.up()


def test_after_a_read_only_outage_no_connection_from_before_its_end_is_trusted() -> None:
    told = Told()
    opened = monotonic()
    told.record.lost("one", monotonic(), ReadOnlyServer("read-only", 1290))
    assert not told.record.distrusted(opened)
    told.record.succeeded("two", 0.0, wrote=True)
    assert told.record.distrusted(opened)
    assert not told.record.distrusted(monotonic())


def test_after_any_other_outage_a_connection_that_lives_is_trusted() -> None:
    told = Told()
    opened = monotonic()
    told.record.lost("one", monotonic(), GONE)
    told.record.succeeded("two", 0.0, wrote=True)
    assert not told.record.distrusted(opened)


FULL = ConnectionLost("too many connections", 1040)


def test_one_connection_too_many_while_others_work_is_a_complaint_and_no_outage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(outage, "monotonic", lambda: now)
    told = Told()
    for _ in range(20):
        told.record.succeeded("poller", 0.0, wrote=False)
        told.record.lost("worker", None, FULL)
        now += 1.5
    told.record.succeeded("poller", 0.0, wrote=False)
    assert told.record.up()
    assert told.record.crowded()
    assert told.lines() == ["Problem"]


def test_on_a_server_that_is_always_full_only_the_keepers_refusal_keeps_the_sweep_from_its_work() -> None:
    told = Told()
    told.record.succeeded("poller", 0.0, wrote=False)
    told.record.lost("worker", None, FULL)
    assert told.record.troubled_at() == 0.0
    told.record.lost("lease keeper", None, FULL)
    assert told.record.troubled_at() > 0.0


def test_where_no_connection_is_left_a_refusal_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(outage, "monotonic", lambda: now)
    told = Told()
    told.record.succeeded("poller", 0.0, wrote=False)
    told.record.lost("poller", None, FULL)
    now += 3.0
    told.record.lost("poller", None, FULL)
    assert not told.record.up()
    told.record.succeeded("poller", 0.0, wrote=False)
    assert told.lines() == ["DatabaseLost", "DatabaseRestored"]


def test_an_outage_that_turns_out_to_be_a_refusal_is_explained_once() -> None:
    told = Told()
    told.record.lost("one", monotonic(), GONE)
    for _ in range(5):
        told.record.lost("one", None, ServerBusy("host blocked: FLUSH HOSTS", 1129))
    assert told.lines() == ["DatabaseLost", "Problem"]


def test_deadlocks_lock_waits_and_refused_rows_are_counted_but_neither_outage_nor_trouble_nor_line() -> None:
    told = Told()
    for error in (LockWait("waited", 1205), DataRefused("bad", 4025)):
        told.record.refused("one", error)
    assert told.record.up()
    assert told.record.troubled_at() == 0.0
    assert [event.kind for event in told.seen if isinstance(event, DatabaseErrorSeen)] == ["lock_wait", "other"]
    assert told.lines() == []


def test_a_complaint_on_a_live_connection_is_said_once_a_minute_for_each_number() -> None:
    told = Told()
    errors: list[StoreError] = [SetupWrong("no table", 1146), SetupWrong("no column", 1054), UnknownError("odd")]
    for error in errors * 5:
        told.record.refused("one", error)
    assert told.lines() == ["Problem"] * 3
    assert told.record.up()
    assert told.record.troubled_at() > 0
    assert sum(isinstance(event, DatabaseErrorSeen) for event in told.seen) == 15


def test_a_slow_success_is_trouble_where_nobodys_rows_are_waited_for() -> None:
    told = Told()
    told.record.succeeded("poller", 0.0, wrote=True)
    assert told.record.troubled_at() == 0.0
    told.record.succeeded("poller", 1.5, wrote=True)
    assert told.record.troubled_at() > 0.0
    assert told.seen == []


def test_a_long_count_or_an_end_that_waits_for_a_lock_does_not_keep_the_sweep_from_its_work() -> None:
    told = Told()
    told.record.succeeded("sampler", 9.0, wrote=False)
    told.record.refused("worker default-1", LockWait("locked", 1205), 3.0)
    assert told.record.troubled_at() == 0.0


def test_the_end_of_an_outage_tells_how_long_it_was() -> None:
    told = Told()
    told.record.lost("one", monotonic(), GONE)
    told.record.succeeded("one", 0.0, wrote=True)
    lost = next(event for event in told.seen if isinstance(event, DatabaseLost))
    restored = next(event for event in told.seen if isinstance(event, DatabaseRestored))
    assert (lost.connection, lost.error) == ("one", "gone")
    assert 0 <= restored.seconds < 5
    assert not any(isinstance(event, Problem) for event in told.seen)


def test_an_answer_that_was_on_its_way_when_the_outage_began_does_not_end_it() -> None:
    told = Told()
    told.record.lost("poller", monotonic(), ConnectionLost("gone", 2013))
    told.record.succeeded("maintenance", 5.0, wrote=True)
    assert not told.record.up()
    told.record.succeeded("maintenance", 0.0, wrote=True)
    assert told.record.up()
    assert told.lines() == ["DatabaseLost", "DatabaseRestored"]
