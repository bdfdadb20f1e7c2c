"""What is timed in a daemon is what its store is asked: a call of another name would never be seen."""

from __future__ import annotations

from benchmarks.shares import NAMES
from qd.store.store import SqlStore


def test_every_call_whose_share_is_measured_is_one_of_the_stores() -> None:
    calls = {"look" if call == "full_look" else call for call in NAMES}
    assert [call for call in sorted(calls) if not hasattr(SqlStore, call)] == []
