"""`qd failed` on a real, embedded store."""

from __future__ import annotations

import json

from tests.unit.cli.shop import Shop


def test_retry_prints_the_id_of_each_and_says_each_failure(shop: Shop) -> None:
    shop.dead(job_id=501)
    shop.dead(job_id=502)
    result = shop.qd("failed", "retry", "501", "999", "502")
    assert result.exit_code == 1
    assert result.stdout == "501\n502\n"
    assert "999" in result.stderr
    assert shop.ids() == [501, 502]


def test_a_retry_that_got_a_new_id_prints_that(shop: Shop) -> None:
    shop.job(id=501)
    shop.dead(job_id=501)
    new_id = int(shop.ok("failed", "retry", "501"))
    assert shop.ids() == [501, new_id]


def test_retrying_all_names_the_count_and_keeps_to_the_filter(shop: Shop) -> None:
    shop.dead(job_id=501, queue="mails")
    shop.dead(job_id=502, queue="mails", reason="timeout")
    shop.dead(job_id=503, queue="default")
    asked = shop.qd("failed", "retry", "--all", "--queue", "mails")
    assert asked.exit_code == 2
    assert "retry 2 dead letters" in asked.stderr
    assert shop.ids() == []
    assert "retried 1 dead letter\n" in shop.ok(
        "failed", "retry", "--all", "--queue", "mails", "--reason", "timeout", "--yes"
    )
    assert shop.ids() == [502]
    assert "retried 2 dead letters\n" in shop.ok("failed", "retry", "--all", "--yes")
    assert shop.ids() == [501, 502, 503]


def test_one_refusal_among_all_is_said_and_the_rest_is_done(shop: Shop) -> None:
    shop.job(unique_key="k")
    kept = shop.dead(job_id=501, unique_key="k")
    shop.dead(job_id=502)
    result = shop.qd("failed", "retry", "--all", "--yes")
    assert result.exit_code == 1
    assert "job 501" in result.stderr
    assert "retried 1 dead letter" in result.stdout
    assert shop.ids("qd_failed_jobs") == [kept]


def test_deleting_all_keeps_to_the_filter(shop: Shop) -> None:
    shop.dead(job_id=501, failed=-7200)
    kept = shop.dead(job_id=502)
    shop.ok("failed", "delete", "--all", "--older-than", "1h", "--yes")
    assert shop.ids("qd_failed_jobs") == [kept]


def test_several_dead_letters_of_one_job_are_told_and_the_newest_is_taken(shop: Shop) -> None:
    old = shop.dead(error="old")
    shop.dead(error="new")
    result = shop.qd("failed", "show", "500")
    assert "has 2 dead letters: this is the newest" in result.stderr
    assert "new" in result.stdout
    shop.ok("failed", "delete", "500")
    assert shop.ids("qd_failed_jobs") == [old]


def test_purge_applies_the_retention_unless_told_otherwise(shop: Shop) -> None:
    shop.dead(job_id=501, failed=-31 * 86400)
    young, fresh = shop.dead(job_id=502, failed=-7200), shop.dead(job_id=503)
    assert "deleted 1 dead letter" in shop.ok("failed", "purge")
    assert shop.ids("qd_failed_jobs") == [young, fresh]
    assert shop.qd("failed", "purge", "--older-than", "1h").exit_code == 2
    assert "deleted 1 dead letter" in shop.ok("failed", "purge", "--older-than", "1h", "--yes")
    assert shop.ids("qd_failed_jobs") == [fresh]


def test_the_traceback_and_every_round_are_shown(shop: Shop) -> None:
    history = '[{"outcome": "failed", "error": "first"}, {"outcome": "timeout", "error": "second"}]'
    shop.dead(history=history, traceback="Traceback:\n  File x")
    shown = shop.ok("failed", "show", "500")
    assert "  File x" in shown
    assert shown.index("first") < shown.index("second")


def test_a_past_attempt_fits_a_terminal_of_80_columns(shop: Shop) -> None:
    start, end = "2026-02-03T04:05:06.789Z", "2026-02-03T04:06:07.890Z"
    worker = "shop-host:54321:aff7a3b775:default+mails-16:123456"
    past = {"attempt": 1, "start": start, "end": end, "worker": worker, "outcome": "timeout", "error": "late"}
    shop.dead(history=json.dumps([past]))
    shown = shop.ok("failed", "show", "500")
    assert all(part in shown for part in ("attempt 1 timeout: late", f"{start} to {end}", worker))
    assert max(map(len, shown.splitlines())) <= 80


def test_a_list_is_newest_first_with_a_key_for_the_next_page(shop: Shop) -> None:
    letters = [shop.dead(job_id=500 + number) for number in range(3)]
    page = shop.json("failed", "list", "--limit", "2")
    assert [row["job_id"] for row in page["failed"]] == [502, 501]
    assert page["next"] == letters[1]
    page = shop.json("failed", "list", "--limit", "2", "--after", str(page["next"]))
    assert ([row["job_id"] for row in page["failed"]], page["next"]) == ([500], None)
