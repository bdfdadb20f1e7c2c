"""Texts, histories, times, limits, pacing: the pure parts of the store."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qd.config.model import DatabaseConfig
from qd.errors import ConnectionLost
from qd.store.listed import chunks, flat, joined, joined_ids, listed
from qd.store.moments import earlier, read, seconds_between, stamp, written
from qd.store.mysql.limits import Limits
from qd.store.pacing import Pacing
from qd.store.settle.history import LENGTH, appended, entries, entry, of_token
from qd.store.settle.texts import fitted


@given(st.text(alphabet=st.characters(), max_size=200), st.integers(min_value=20, max_value=120))
def test_a_fitted_text_is_valid_and_no_longer_than_allowed(text: str, most: int) -> None:
    cut = fitted(text, most)
    assert cut is not None
    raw = cut.encode("utf-8")
    assert len(raw) <= most
    whole = text.encode("utf-8", "backslashreplace")
    assert raw == whole if len(whole) <= most else cut.endswith("[cut]")


def test_no_text_stays_none_and_surrogates_are_told_in_ascii() -> None:
    assert fitted(None) is None
    assert fitted("a\udcffb") == "a\\udcffb"


@pytest.mark.parametrize("broken", [None, "", "{", "null", "5", '{"a": 1}', "[" * 100_000, b"\xff".decode("latin-1")])
def test_a_broken_history_counts_as_none(broken: str | None) -> None:
    assert entries(broken) == []
    one = entry(1, None, None, "t", "failed", None)
    assert json.loads(appended(broken, one)) == [one]


def test_what_is_no_entry_is_left_out() -> None:
    assert entries('[1, {"worker": "t"}, null, "x"]') == [{"worker": "t"}]


def test_a_history_keeps_its_last_entries_and_short_errors() -> None:
    text = None
    for attempt in range(30):
        text = appended(text, entry(attempt, None, None, f"t{attempt}", "failed", "ü" * 10_000))
    kept = entries(text)
    assert [one["attempt"] for one in kept] == list(range(30 - LENGTH, 30))
    assert all(len(one["error"]) == 500 for one in kept)
    assert of_token(text, "t29") == "failed"
    assert of_token(text, "t1") is None


def test_times_are_read_and_written_in_the_databases_own_width() -> None:
    value = datetime(2026, 1, 2, 3, 4, 5, 600)
    assert written(value) == "2026-01-02 03:04:05.000600"
    assert written("2026-01-02 03:04:05.678") == "2026-01-02 03:04:05.678"
    assert read(written(value)) == value.replace(tzinfo=timezone.utc)
    assert earlier("2026-01-02 03:04:05.000600", timedelta(seconds=6)) == "2026-01-02 03:03:59.000600"
    assert earlier("2026-01-02 03:04:05.678", timedelta(seconds=2)) == "2026-01-02 03:04:03.678"
    assert seconds_between(value, "2026-01-02 03:04:07.000600") == 2.0
    assert seconds_between("2026-01-02 03:04:07.678", "2026-01-02 03:04:05.678") == 0.0
    assert stamp(value) == "2026-01-02T03:04:05.000Z"
    assert stamp(None) is None


@pytest.mark.parametrize("timeout", [0.5, 1.0, 1.9, 2.0, 3.0, 6.0, 20.0, 120.0])
def test_the_server_gives_up_before_the_client_and_the_client_within_the_limit(timeout: float) -> None:
    limits = Limits.of(DatabaseConfig(statement_timeout=timeout, connect_timeout=5.0))
    assert limits.statement <= max(1.0, timeout)
    assert limits.connect <= limits.statement
    assert 0 < limits.server < limits.statement
    assert 1 <= limits.lock_wait <= min(3, limits.statement)


def test_attempts_are_spread_out_and_free_again_after_a_success() -> None:
    pacing = Pacing()
    assert pacing.waiting() is None
    error = ConnectionLost("gone", 2003)
    pacing.failed(error, later=False)
    assert pacing.waiting() is error
    pacing.succeeded()
    assert pacing.waiting() is None


def test_listed_rows_have_a_placeholder_for_each_value() -> None:
    assert listed(1, "id") == "SELECT %s AS id"
    assert listed(3, "id", "token") == "SELECT %s AS id, %s AS token UNION ALL SELECT %s, %s UNION ALL SELECT %s, %s"
    assert joined(2, "id").count("%s") == 2
    assert "FORCE INDEX (PRIMARY)" in joined(2, "id")
    assert joined_ids([7]).startswith("(SELECT 7 AS id) d STRAIGHT_JOIN qd_jobs j FORCE INDEX (PRIMARY)")
    assert joined_ids([7, 8, 9], "t").startswith("(SELECT 7 AS id UNION ALL SELECT 8 UNION ALL SELECT 9) d STRAIGHT_")
    with pytest.raises(TypeError):
        joined_ids(["1) d; --"])  # type: ignore[list-item]
    assert flat([(1, "a"), (2, "b")]) == [1, "a", 2, "b"]
    assert [list(part) for part in chunks([1, 2, 3, 4, 5], 2)] == [[1, 2], [3, 4], [5]]
