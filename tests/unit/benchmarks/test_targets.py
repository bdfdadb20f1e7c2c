"""The verdict on each target is that of the figures, and what wasn't measured is never called reached."""

from __future__ import annotations

import pytest

from benchmarks.measured import Measured
from benchmarks.targets import REDIS, SERVERS, TARGETS, Result, Target, Verdict, judge, number


def one(target: Target, figures: list[Measured], missing: dict[str, str] | None = None) -> Result:
    (result,) = judge(figures, missing or {}, [target])
    return result


def jobs(key: str, rate: float, *rounds: float, note: str = "") -> Measured:
    return Measured(f"drain.{key}", rate, "jobs/s", rounds, note)


BESIDE = Target("1", "against the fastest peer on Redis", "drain.qd.auto", ">=", 2, "x", REDIS)


@pytest.mark.parametrize(
    ("sign", "value", "verdict"),
    [
        ("<=", 300.0, Verdict.REACHED),
        ("<=", 300.1, Verdict.MISSED),
        ("<", 300.0, Verdict.MISSED),
        (">=", 300.0, Verdict.REACHED),
        (">=", 299.9, Verdict.MISSED),
        (">", 300.0, Verdict.MISSED),
        ("", 1e9, Verdict.SHOWN),
    ],
)
def test_a_figure_is_compared_with_its_limit(sign: str, value: float, verdict: Verdict) -> None:
    result = one(
        Target("4", "pickup", "pickup.insert.p99", sign, 300, "ms"), [Measured("pickup.insert.p99", value, "ms")]
    )
    assert result.verdict is verdict
    assert result.reached == f"{number(value)} ms"


def test_a_limit_is_told_as_it_is_set() -> None:
    said = {target.must for target in TARGETS}
    assert {"> 1 x", ">= 20 x", ">= 50 %", "<= 1.3 x", ">= 30,000 rows/s", "< 1 %", "shown"} <= said


def test_the_best_of_several_peers_is_what_counts() -> None:
    result = one(BESIDE, [jobs("qd.auto", 9000), jobs("huey", 5000), jobs("taskiq", 4000), jobs("celery", 100)])
    assert result.verdict is Verdict.MISSED
    assert "9,000 against 5,000 jobs/s of huey" in result.reached and result.reached.startswith("1.8 x")
    assert "without rq" in result.remark and "without dramatiq" in result.remark


def test_a_share_of_the_raw_loop_is_in_percent() -> None:
    target = Target("2", "of the raw loop", "drain.qd.1", ">=", 80, "%", ("drain.raw.1",))
    assert one(target, [jobs("qd.1", 790), jobs("raw.1", 1000)]).verdict is Verdict.MISSED
    result = one(target, [jobs("qd.1", 800), jobs("raw.1", 1000)])
    assert result.verdict is Verdict.REACHED and result.reached.startswith("80.0 %")


def test_a_peer_that_could_not_be_run_is_no_slow_peer() -> None:
    absent = [jobs(peer.partition(".")[2], 0.0, note="NOT RUN: pip says no") for peer in REDIS]
    result = one(BESIDE, [jobs("qd.auto", 9000), *absent])
    assert (result.verdict, result.remark) == (Verdict.UNKNOWN, "pip says no")
    ran = one(BESIDE, [jobs("qd.auto", 9000), jobs("huey", 4000), *absent[:3]])
    assert ran.verdict is Verdict.REACHED and "without rq: pip says no" in ran.remark


def test_qd_that_could_not_be_run_reaches_nothing() -> None:
    result = one(BESIDE, [jobs("qd.auto", 0.0, note="NOT RUN: it broke"), jobs("huey", 5000)])
    assert (result.verdict, result.remark, result.reached) == (Verdict.UNKNOWN, "it broke", "")


def test_the_worst_regime_is_what_counts_and_names_itself() -> None:
    target = Target("3", "claims", "regime.mysql97.claim*.ratio", "<=", 1.3, "x")
    seen = [("claim1.delayed", 1.1), ("claim100.snapshot", 1.7), ("claim10.snapshot", 1.4), ("poll.snapshot", 9.0)]
    figures = [Measured(f"regime.mysql97.{what}.ratio", ratio, "x", (1.0, 2.0, 3.0)) for what, ratio in seen]
    figures += [
        Measured("regime.mysql97.claim100.delayed.p99", 900.0, "us"),
        Measured("regime.mariadb.claim1.x.ratio", 5, "x"),
    ]
    result = one(target, figures)
    assert result.verdict is Verdict.MISSED
    assert (result.reached, result.rounds) == ("1.7 x (claim100.snapshot; 3 seen, 2 over)", 3)


def test_why_a_figure_is_missing_is_said_by_its_section_or_its_server() -> None:
    target = Target("3", "pickup", "trickle.mysql97.p99", "<=", 300, "ms")
    assert one(target, [], {"trickle": "not asked for"}).remark == "not asked for"
    assert one(target, [], {"trickle": "no", "trickle.mysql97": "not fetched"}).remark == "not fetched"
    assert one(target, [], {}).verdict is Verdict.UNKNOWN


def test_a_known_cause_is_said_with_a_miss_only() -> None:
    target = Target("6", "memory", "memory.peak", "<=", 80, "MiB", cause="the driver's buffers")
    assert one(target, [Measured("memory.peak", 81, "MiB")]).remark == "found on 2 quiet cores: the driver's buffers"
    assert one(target, [Measured("memory.peak", 79, "MiB")]).remark == ""


def test_the_rounds_are_those_of_whom_had_fewest() -> None:
    assert one(BESIDE, [jobs("qd.auto", 9000, 1, 2, 3), jobs("huey", 100, 1, 2)]).rounds == 2
    assert one(BESIDE, [jobs("qd.auto", 9000), jobs("huey", 100, 1, 2)]).rounds == 1


def test_every_target_of_every_server_is_there_once() -> None:
    keys = [(target.key, target.beside) for target in TARGETS]
    assert len(set(keys)) == len(keys)
    assert sorted({target.part for target in TARGETS}) == ["1", "2", "3", "4", "5", "6"]
    for server in SERVERS:
        assert len([key for key, _ in keys if f".{server}." in key]) == 6


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.04567, "0.0457"), (1.3, "1.3"), (9.999, "10"), (12.345, "12.3"), (100, "100"), (25_123.4, "25,123"), (0, "0")],
)
def test_figures_are_told_in_digits_that_mean_something(value: float, text: str) -> None:
    assert number(value) == text
