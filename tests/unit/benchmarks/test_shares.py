"""The share of the time that a daemon's dear calls take, from what the daemon has noted of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.seen import percentile
from benchmarks.shares import read_calls, share


def test_a_share_is_that_of_whole_periods() -> None:
    assert share([(10.0, 0.5), (20.0, 0.5), (30.0, 4.0)]) == pytest.approx(1.0 / 20.0)


def test_a_call_that_was_seen_once_has_no_share_yet() -> None:
    assert share([(10.0, 0.5)]) == 0.0


def test_calls_are_read_by_name_from_a_moment_on(tmp_path: Path) -> None:
    file = tmp_path / "calls"
    file.write_text("full_look 1000000000 1500000000\nstale 2000000000 2250000000\nfull_look 3000000000 3125000000\n")
    calls = read_calls(file, since=2.0)
    assert dict(calls) == {"stale": [(2.0, 0.25)], "full_look": [(3.0, 0.125)]}


def test_a_percentile_of_few_values_is_the_highest_of_them() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.99) == 3.0
    assert percentile([float(number) for number in range(1000)], 0.99) == 990.0
