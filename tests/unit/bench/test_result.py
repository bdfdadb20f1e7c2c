"""Figures made of what was measured."""

from __future__ import annotations

from qd.bench.plan import Plan
from qd.bench.result import Conditions, Latency, Looked, Rate, Result, Round

CONDITIONS = Conditions(
    qd="1", python="3", server="s", connector="c", claim_path="p", place="here", local=True, settings={"a": "b"},
    cores=2, load=(0.123, 0.2, 0.3), jobs_before=5, failed_before=6, poll=(0.01, 0.25),
)  # fmt: skip


def made(peak: int | None, claims: float) -> Round:
    return Round(singly=10.0, bulk=100.0, drain=1000.0 * claims, claims=claims, statements=2.0, commits=1.0, peak=peak)


def test_percentiles_are_by_nearest_rank() -> None:
    latency = Latency(tuple(n / 1000 for n in range(100, 0, -1)))
    assert latency.as_json() == {"jobs": 100, "p50_ms": 50.0, "p99_ms": 99.0, "max_ms": 100.0}
    assert Latency((0.002,)).as_json() == {"jobs": 1, "p50_ms": 2.0, "p99_ms": 2.0, "max_ms": 2.0}
    assert Latency((0.001, 0.004)).at(0.5) == 0.001


def test_a_rate_is_the_median_of_its_rounds() -> None:
    assert Rate(5, (3.0, 1.0, 2.0)).as_json() == {"rate": 2.0, "jobs": 5, "rounds": [3.0, 1.0, 2.0]}


def test_a_result_has_the_median_of_each_figure_and_the_worst_memory() -> None:
    rounds = [made(10, 0.1), made(None, 0.3), made(30, 0.2)]
    looked = {"look_empty": Looked(0, 0, 9.0)}
    found = Result(Plan(jobs=100, rounds=3), CONDITIONS, rounds, {"client": Latency((0.001,))}, looked, None).as_json()
    assert found["per_job"] == {"claims": 0.2, "statements": 2.0, "commits": 1.0}
    assert found["drain"]["rate"] == 200.0 and found["drain"]["start_included"] is False
    assert found["memory"] == {"daemon_peak_bytes": 30}
    assert found["enqueue"]["single"]["jobs"] == 10 and found["enqueue"]["bulk"]["jobs"] == 90
    assert found["rows_read"] == {"look_empty": {"asked": 0, "claimed": 0, "rows": 9.0}}
    assert found["conditions"]["load_before"] == [0.12, 0.2, 0.3] and found["conditions"]["rounds"] == 3


def test_what_is_not_told_is_null_with_a_reason() -> None:
    found = Result(Plan(), CONDITIONS, [made(None, 1.0)], {}, None, "why").as_json()
    assert (found["rows_read"], found["rows_read_missing"]) == (None, "why")
    assert found["memory"] == {"daemon_peak_bytes": None} and found["pickup"] == {}
