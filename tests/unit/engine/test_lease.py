"""The lease keeper: what it renews, when it says that a lease is lost, and how often."""

from __future__ import annotations

from typing import Any, cast

import pytest

from qd.clock import monotonic
from qd.errors import ConnectionLost
from qd.events import LeaseLostSeen, LeasesExtended
from qd.lease import RENEWALS_AT_ONCE, Lease, LeaseKeeper
from qd.store.protocol import HeldLease, Renewal
from tests.unit.engine.fakes import FakeStore, Heard, claimed, listening


def keeper(store: FakeStore) -> tuple[LeaseKeeper, Heard]:
    events, heard = listening()
    return LeaseKeeper(cast(Any, store), events, shortest=30.0), heard


def aged(lease: Lease, seconds: float) -> Lease:
    lease.renewed_at = monotonic() - seconds
    return lease


def test_a_lease_is_renewed_after_a_third_of_it() -> None:
    store = FakeStore()
    keep, heard = keeper(store)
    (young,), (old,) = keep.hold([claimed(1)]), keep.hold([claimed(2)])
    aged(old, 11.0)
    before = monotonic()
    keep.run_once()
    assert old.renewed_at >= before > young.renewed_at
    assert heard == [LeasesExtended("ok", 1)]


def test_a_lease_with_another_token_is_lost_and_said_once() -> None:
    store = FakeStore()
    store.renewals = lambda lease: Renewal.LOST
    keep, heard = keeper(store)
    (lease,) = keep.hold([claimed()])
    aged(lease, 11.0)
    keep.run_once()
    keep.run_once()
    assert lease.lost.is_set()
    assert len(heard.of(LeaseLostSeen)) == 1
    assert keep.held() == []


def test_a_row_that_is_gone_is_a_lost_lease_unless_the_handler_completed_it() -> None:
    store = FakeStore()
    store.renewals = lambda lease: Renewal.GONE
    keep, heard = keeper(store)
    (lease,) = keep.hold([claimed()])
    lease.view = cast(Any, type("View", (), {"completed": True})())
    aged(lease, 11.0)
    keep.run_once()
    assert not lease.lost.is_set() and heard.of(LeaseLostSeen) == []
    cast(Any, lease.view).completed = False
    keep.run_once()
    assert lease.lost.is_set()


def test_what_a_renewal_finds_while_the_end_is_being_written_means_nothing() -> None:
    store = FakeStore()
    store.renewals = lambda lease: Renewal.GONE
    keep, heard = keeper(store)
    (lease,) = keep.hold([claimed()])
    aged(lease, 11.0).settling = True
    keep.run_once()
    assert not lease.lost.is_set() and heard.of(LeaseLostSeen) == []


def test_a_locked_row_is_tried_again_soon_and_costs_its_neighbours_nothing() -> None:
    store = FakeStore()
    store.renewals = lambda lease: Renewal.LOCKED if lease.job_id == 1 else Renewal.RENEWED
    keep, _ = keeper(store)
    locked, neighbour = (aged(lease, 11.0) for lease in keep.hold([claimed(1), claimed(2)]))
    keep.run_once()
    assert neighbour.fresh()
    assert monotonic() < locked.due() <= monotonic() + 30.0 / 12
    assert not locked.lost.is_set()


@pytest.mark.parametrize("error", [ConnectionLost("gone"), KeyError("a bug")])
def test_a_failed_renewal_is_counted_and_raised_after_the_other_chunks_were_tried(error: Exception) -> None:
    store = FakeStore()

    def renewals(lease: HeldLease) -> Renewal:
        if lease.job_id == 0:
            raise error
        return Renewal.RENEWED

    store.renewals = renewals
    keep, heard = keeper(store)
    leases = [aged(lease, 11.0) for lease in keep.hold([claimed(i) for i in range(RENEWALS_AT_ONCE + 5)])]
    with pytest.raises(type(error)):
        keep.run_once()
    assert all(lease.fresh() for lease in leases[RENEWALS_AT_ONCE:])
    assert heard == [LeasesExtended("error", RENEWALS_AT_ONCE), LeasesExtended("ok", 5)]


def test_an_expired_lease_that_nobody_took_is_still_held() -> None:
    keep, heard = keeper(FakeStore())
    (lease,) = keep.hold([claimed()])
    aged(lease, 500.0)
    keep.run_once()
    assert lease.fresh() and not lease.lost.is_set() and heard.of(LeaseLostSeen) == []
