"""`qd jobs`, `qd queues`, `qd status`, `qd recover`, `qd explain` on a real, embedded store."""

from __future__ import annotations

import re

import pytest

from tests.unit.cli.shop import NOW, Shop

STATES = {"ready", "delayed", "reserved", "stale", "failed"}


def test_a_list_as_json_has_stable_keys_and_the_raw_payload(shop: Shop) -> None:
    shop.job(payload='{"b": 1.0, "a": "\\u00e9"}', queue="mails", unique_key="k")
    [row] = shop.json("jobs", "list")["jobs"]
    assert set(row) == {
        "id", "queue", "type", "payload", "priority", "state", "attempts", "crashes", "max_attempts", "available_at",
        "reserved_at", "reserved_by", "unique_key", "last_error", "history", "created_at", "payload_bytes",
        "payload_cut",
    }  # fmt: skip
    assert row["payload"] == '{"b": 1.0, "a": "\\u00e9"}'
    assert row["available_at"].endswith("Z")


def test_a_list_says_since_when_who_holds_a_job(shop: Shop) -> None:
    shop.job("reserved", reserved_by="web1:4902:2a22:mails-3:9", reserved_at="2026-02-03 04:05:06.789000")
    shop.job("stale", reserved_by="a hand-written one")
    shop.job("delayed")
    heads, *rows = shop.ok("jobs", "list").splitlines()
    held, odd, delayed = (dict(zip(re.split("  +", heads), re.split("  +", row), strict=True)) for row in rows)
    assert (held["DUE"], held["HELD SINCE"], held["BY"]) == ("-", "2026-02-03 04:05:06Z", "web1:4902 mails-3")
    assert odd["BY"] == "a hand-written one"
    assert delayed["DUE"] != "-"
    assert (delayed["HELD SINCE"], delayed["BY"]) == ("-", "-")
    assert "HELD" not in shop.ok("jobs", "list", "--state", "delayed")


def test_pages_follow_one_another_without_gap_or_overlap(shop: Shop) -> None:
    ids = [shop.job() for _ in range(5)]
    seen, after = [], 0
    while after is not None:
        page = shop.json("jobs", "list", "--limit", "2", "--after", str(after))
        seen += [row["id"] for row in page["jobs"]]
        after = page["next"]
    assert seen == ids


def test_a_page_that_is_not_the_last_names_the_next_on_stderr(shop: Shop) -> None:
    ids = [shop.job() for _ in range(3)]
    result = shop.qd("jobs", "list", "--limit", "2")
    assert f"--after {ids[1]}" in result.stderr
    assert "--after" not in result.stdout


def test_what_a_job_carries_cannot_write_to_the_terminal(shop: Shop) -> None:
    evil, in_json = "\x1b]0;title\x07\r\x9b2J\u202e", "\x7f\x9b2J\u202e"
    shop.job(payload=f'"{in_json}"', last_error=evil, history=f'[{{"error": "{in_json}"}}]')
    shop.dead(error=evil, traceback=f"line 1\n{evil}", payload=evil)
    for command in ("jobs list", "jobs show 1", "failed list", "failed show 500", "explain 500"):
        for shown in (shop.ok(*command.split()), shop.ok(*command.split(), "--json")):
            assert not [letter for letter in shown if letter != "\n" and not letter.isprintable()], (command, shown)


def test_a_huge_payload_is_cut_in_a_list_and_marked_in_json(shop: Shop) -> None:
    shop.job(payload='"' + "x" * 200_000 + '"')
    assert len(shop.ok("jobs", "list")) < 1000
    [row] = shop.json("jobs", "list")["jobs"]
    assert row["payload_cut"]
    assert row["payload_bytes"] == 200_002
    assert not shop.json("jobs", "show", "1")["payload_cut"]
    assert "200,002 bytes, --json shows all" in shop.ok("jobs", "show", "1")


def test_several_ids_are_all_tried_and_each_failure_is_said(shop: Shop) -> None:
    running, delayed = shop.job("reserved"), shop.job("delayed")
    result = shop.qd("jobs", "release", str(running), "999", str(delayed))
    assert result.exit_code == 1
    assert f"job {running} is running" in result.stderr
    assert "no job 999" in result.stderr
    assert result.stdout == f"released job {delayed}\n"
    assert shop.json("jobs", "show", str(delayed))["state"] == "ready"


def test_release_holds_to_the_policy_of_the_jobs_queue(shop: Shop) -> None:
    spent = shop.job("stale", queue="default", attempts=3)
    free = shop.job("stale", queue="mails", attempts=3)
    assert shop.qd("jobs", "release", str(spent), str(free)).exit_code == 1
    assert shop.json("jobs", "show", str(spent))["state"] == "stale"
    assert shop.json("jobs", "show", str(free))["state"] == "ready"


def test_each_job_that_is_deleted_by_its_id_is_said(shop: Shop) -> None:
    first, second = shop.job(), shop.job()
    shop.dead()
    assert shop.ok("jobs", "delete", str(first), str(second)) == f"deleted job {first}\ndeleted job {second}\n"
    assert shop.ok("failed", "delete", "500") == "deleted the dead letter of job 500\n"


def test_deleting_by_filter_names_the_count_and_does_nothing_unasked(shop: Shop) -> None:
    ids = [shop.job(queue="mails") for _ in range(3)]
    result = shop.qd("jobs", "delete", "--queue", "mails")
    assert result.exit_code == 2
    assert "delete 3 jobs" in result.stderr
    assert shop.ids() == ids


def test_deleting_by_filter_with_yes_leaves_what_is_running_and_says_so(shop: Shop) -> None:
    shop.sql("INSERT INTO qd_jobs (queue, type) VALUES " + ", ".join(["('mails', 'send')"] * 450))
    running, other = shop.job("reserved", queue="mails"), shop.job(queue="default")
    result = shop.qd("jobs", "delete", "--queue", "mails", "--yes")
    assert result.exit_code == 0
    assert "deleted 450 jobs" in result.stdout
    assert "1 job had a living lease" in result.stderr
    assert shop.ids() == [running, other]


def test_deleting_nothing_is_no_failure(shop: Shop) -> None:
    assert shop.qd("jobs", "delete", "--queue", "mails").exit_code == 0


def test_status_as_json_counts_every_state_and_marks_unknown_queues(shop: Shop) -> None:
    for state in ("ready", "delayed", "reserved", "stale"):
        shop.job(state, queue="mails")
    shop.dead(queue="mails")
    shop.job(queue="mial")
    shown = shop.json("status")
    assert set(shown) == {"queues", "daemons", "database"}
    queues = {queue["queue"]: queue for queue in shown["queues"]}
    assert set(queues) == {"default", "mails", "mial"}
    assert set(queues["mails"]) == STATES | {"queue", "blocked", "oldest_ready_age", "paused", "known"}
    assert {state: queues["mails"][state] for state in STATES} == dict.fromkeys(STATES, 1)
    assert queues["mails"]["oldest_ready_age"] >= 10
    assert [queues[name]["known"] for name in ("default", "mails", "mial")] == [True, True, False]


def test_status_for_people_says_what_is_special_about_a_queue(shop: Shop) -> None:
    shop.job(queue="mial")
    shop.ok("queues", "pause", "mails")
    shown = shop.ok("status")
    assert "not in the configuration" in shown
    assert "paused" in shown
    assert "none has been seen" in shown


def test_a_daemon_that_is_overdue_is_no_living_one_in_the_status(shop: Shop) -> None:
    for name, ago, queues in (("alive", -4, '["mails"]'), ("dead", -35, '["mails", "default"]'), ("gone", -61, "[]")):
        shop.sql(
            "INSERT INTO qd_daemons (id, host, pid, version, queues, types, started_at, seen_at) "
            f"VALUES (?, ?, 7, '1', ?, '[]', {NOW.format(-90)}, {NOW.format(ago)})", name, name, queues,
        )  # fmt: skip
    shown = {line.split()[0]: line for line in shop.ok("status").splitlines() if line.strip()}
    assert re.search(r"  [45]s ago$", shown["alive"]) and re.search(r"  silent for 3[5-9]s$", shown["dead"])
    assert "gone" not in shown
    assert shown["default"].endswith("who serves it is silent") and "silent" not in shown["mails"]
    daemons = {daemon["id"]: daemon for daemon in shop.json("status")["daemons"]}
    assert {name: daemon["silent"] for name, daemon in daemons.items()} == {"alive": False, "dead": True}
    assert 4 <= daemons["alive"]["seen_ago"] < 30 and daemons["dead"]["seen_ago"] >= 35


def test_a_pause_is_seen_until_the_resume(shop: Shop) -> None:
    shop.ok("queues", "pause", "mails", "default")
    shop.ok("queues", "resume", "default")
    paused = {queue["queue"]: queue["paused"] for queue in shop.json("queues", "list")["queues"]}
    assert paused == {"default": False, "mails": True}


def test_a_mistyped_queue_is_not_paused_in_silence(shop: Shop) -> None:
    result = shop.qd("queues", "pause", "mials")
    assert result.exit_code == 1
    assert "there are default, mails" in result.stderr


def test_queues_are_paged_by_name(shop: Shop) -> None:
    page = shop.json("queues", "list", "--limit", "1")
    assert [queue["queue"] for queue in page["queues"]] == ["default"]
    page = shop.json("queues", "list", "--limit", "1", "--after", page["next"])
    assert ([queue["queue"] for queue in page["queues"]], page["next"]) == (["mails"], None)


def test_recover_takes_stale_jobs_back_and_says_how_many(shop: Shop) -> None:
    back, spent = shop.job("stale", queue="mails", attempts=3), shop.job("stale", queue="default", attempts=3)
    assert shop.json("recover") == {"recovered": 1, "dead_lettered": 1}
    assert shop.json("jobs", "show", str(back))["state"] == "ready"
    assert shop.json("failed", "show", str(spent))["reason"] == "lost"


@pytest.mark.parametrize(
    ("state", "code"), [("ready", "next"), ("delayed", "delayed"), ("reserved", "reserved"), ("stale", "stale")]
)
def test_explain_tells_of_each_state(shop: Shop, state: str, code: str) -> None:
    shown = shop.json("explain", str(shop.job(state)))
    assert shown["state"] == state
    assert code in [reason["code"] for reason in shown["reasons"]]


def test_explain_tells_of_a_dead_letter_with_its_reason_and_cure(shop: Shop) -> None:
    shop.dead(reason="timeout", error="took too long")
    shown = shop.json("explain", "500")
    assert shown["state"] == "failed"
    assert "took too long" in shown["reasons"][0]["text"]
    assert "qd failed retry 500" in shown["reasons"][0]["text"]


def test_explain_of_an_id_that_is_nowhere_is_not_found(shop: Shop) -> None:
    assert shop.qd("explain", "999").exit_code == 1
