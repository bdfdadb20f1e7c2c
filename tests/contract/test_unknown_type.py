"""POSTPONE: a type that nobody here knows is put back uncounted, and in the end buried."""

from __future__ import annotations

from qd.events import Events
from qd.outcome import Action, Outcome, OutcomeKind, Reason, Settlement, Verdict
from qd.store.protocol import DaemonRow
from tests.contract.bench import Bench

UNKNOWN = Outcome(OutcomeKind.REJECTED, Reason.UNKNOWN_TYPE, error="no handler for type 'noop'")


def _postponed(bench: Bench, patience: float) -> Verdict:
    store = bench.new_store("impatient", bench.again(Events(), unknown_type_patience=patience))
    (job,) = bench.claim(1, store)
    (verdict,) = store.settle([Settlement(job, Action.POSTPONE, UNKNOWN, 0.0)])
    return verdict


def test_it_is_put_back_uncounted_and_remembers_the_first_look_once(bench: Bench) -> None:
    (job_id,) = bench.add(1, max_attempts=1)
    assert [_postponed(bench, 900.0) for _ in range(5)] == [Verdict.SETTLED] * 5
    assert bench.row(job_id, "attempts", "lane", "crashes") == (0, 0, 0)
    (entry,) = bench.store.job(job_id).history
    assert entry["outcome"] == "unknown_type"


def test_it_is_due_again_after_the_delay(bench: Bench) -> None:
    bench.add(1)
    (job,) = bench.claim(1)
    bench.store.settle([Settlement(job, Action.POSTPONE, UNKNOWN, 5.0)])
    assert bench.claim() == []
    assert bench.store.depths()[0].delayed == 1


def test_once_nobody_has_known_it_for_long_it_is_buried(bench: Bench) -> None:
    (job_id,) = bench.add(1)
    assert [_postponed(bench, 0.0), _postponed(bench, 0.0)] == [Verdict.SETTLED, Verdict.BURIED]
    letter = bench.store.failed(job_id)
    assert (letter.reason, letter.error) == ("unknown_type", "no handler for type 'noop'")


def test_it_is_kept_while_a_live_daemon_knows_it(bench: Bench) -> None:
    (job_id,) = bench.add(1)
    bench.store.announce(DaemonRow("other", "host", 7, "1", ("default",), ("noop", "more")))
    assert [_postponed(bench, 0.0) for _ in range(3)] == [Verdict.SETTLED] * 3
    bench.store.announce(DaemonRow("other", "host", 7, "1", ("default",), ("more",)))
    assert _postponed(bench, 0.0) is Verdict.BURIED
    assert bench.store.failed(job_id).reason == "unknown_type"


def test_a_daemon_that_was_not_seen_for_a_minute_knows_nothing_any_more(bench: Bench) -> None:
    bench.add(1)
    bench.store.announce(DaemonRow("other", "host", 7, "1", ("default",), ("noop",)))
    past = "NOW(6) - INTERVAL 61 SECOND" if bench.server else "strftime('%Y-%m-%d %H:%M:%f', 'now', '-61 seconds')"
    bench.sql(f"UPDATE qd_daemons SET seen_at = {past}")
    assert [_postponed(bench, 0.0), _postponed(bench, 0.0)] == [Verdict.SETTLED, Verdict.BURIED]


def test_what_a_daemon_of_another_version_wrote_into_its_row_breaks_nothing(bench: Bench) -> None:
    bench.add(1)
    bench.store.announce(DaemonRow("other", "host", 7, "1", ("default",), ()))
    bench.sql("UPDATE qd_daemons SET types = 'not json'")
    assert [_postponed(bench, 0.0), _postponed(bench, 0.0)] == [Verdict.SETTLED, Verdict.BURIED]


def test_a_dead_letter_that_is_retried_has_its_patience_anew(bench: Bench) -> None:
    (job_id,) = bench.add(1)
    assert [_postponed(bench, 0.0), _postponed(bench, 0.0)] == [Verdict.SETTLED, Verdict.BURIED]
    bench.store.retry_failed(job_id)
    assert _postponed(bench, 0.0) is Verdict.SETTLED
    outcomes = [entry["outcome"] for entry in bench.store.job(job_id).history]
    assert outcomes == ["unknown_type", "rejected", "unknown_type"]


def test_a_type_that_was_known_in_between_is_waited_for_anew(bench: Bench) -> None:
    bench.add(1)
    assert _postponed(bench, 0.0) is Verdict.SETTLED
    (job,) = bench.claim(1)
    failed = Outcome(OutcomeKind.FAILED, error="boom")
    assert bench.store.settle([Settlement(job, Action.RETRY, failed, 0.0)]) == [Verdict.SETTLED]
    assert [_postponed(bench, 0.0), _postponed(bench, 0.0)] == [Verdict.SETTLED, Verdict.BURIED]
