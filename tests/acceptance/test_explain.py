"""`qd explain` beside real daemons: what holds a job up is told, and is what it is."""

from __future__ import annotations

import json
import re
from contextlib import closing
from typing import Any

from tests.acceptance.verbs import verb
from tests.support.daemon import Qd
from tests.support.waiting import wait_for


def explained(qd: Qd, job: int) -> dict[str, str]:
    """The reasons that are told, texts by codes; held against what people are shown."""
    shown = verb(qd, "explain", str(job))
    assert shown.returncode == 0, shown.stderr
    told: dict[str, Any] = json.loads(verb(qd, "explain", str(job), "--json").stdout)
    assert f"job    {job} ({told['type']} in queue {told['queue']})" in shown.stdout
    assert shown.stdout.count("\n- ") == len(told["reasons"])
    return {reason["code"]: reason["text"] for reason in told["reasons"]}


def test_a_job_behind_busy_threads_names_their_process_and_a_running_one_its_owner(qd: Qd) -> None:
    daemon = qd.start()
    running = qd.enqueue("nap", 2, seconds=20)
    wait_for(lambda: len(qd.ran("start")) == 2, 15, "both threads to be at work")
    first, second = qd.enqueue("nap", 2, seconds=0)
    reasons = explained(qd, first)
    assert list(reasons) == ["next", "busy"]
    assert "hold 2 jobs now" in reasons["busy"] and f":{daemon.process.pid} 2" in reasons["busy"]
    assert "behind 1 ready job of" in explained(qd, second)["queued"]
    held = explained(qd, running[0])
    assert list(held) == ["reserved"]
    assert f":{daemon.process.pid}:" in held["reserved"] and "that process was seen" in held["reserved"]
    daemon.process.kill()
    daemon.process.wait()
    wait_for(lambda: "stale" in explained(qd, running[0]), 20, "the lease to run out")
    assert "`qd recover` does it now" in explained(qd, running[0])["stale"]


def test_a_job_that_has_no_row_for_others_says_what_may_have_become_of_it(qd: Qd) -> None:
    with closing(qd.server.connect(qd.database, autocommit=False)) as stranger, closing(stranger.cursor()) as cursor:
        cursor.execute("INSERT INTO qd_jobs (type, payload) VALUES ('nap', '{\"seconds\": 0}')")
        job = int(cursor.lastrowid)
        missing = verb(qd, "explain", str(job))
        assert missing.returncode == 1 and "isn't committed yet" in missing.stderr
        stranger.commit()
    daemon = qd.start()
    wait_for(lambda: qd.ran("end", job), 15, "the job to run")
    assert daemon.stop() == 0
    finished = verb(qd, "explain", str(job))
    assert finished.returncode == 1 and "it has finished" in finished.stderr


def test_who_only_looks_takes_no_lock_that_a_claim_would_pass_over(frail: Qd) -> None:
    frail.write(
        queues={"default": {"lease": "15s"}, "urgent": {"lease": "15s"}},
        workers=[{"queues": ["urgent", "default"], "threads": 1}],
    )
    ready, delayed, reserved, stale = frail.enqueue("nap", 4)
    frail.sql("UPDATE qd_jobs SET available_at = NOW(6) + INTERVAL 1 HOUR WHERE id = %s", (delayed,))
    for job, ahead in ((reserved, 1), (stale, -1)):
        frail.sql(
            "UPDATE qd_jobs SET lane = 1, reserved_by = 'a:1:b:c:2', reserved_at = NOW(6), "
            "available_at = NOW(6) + INTERVAL %s HOUR WHERE id = %s", (ahead, job)
        )  # fmt: skip
    frail.sql("SET GLOBAL log_output = 'TABLE'")
    frail.sql("SET GLOBAL general_log = 1")
    for state, job in (("next", ready), ("delayed", delayed), ("reserved", reserved), ("stale", stale)):
        assert state in explained(frail, job)
    for looks in (("status",), ("jobs", "list"), ("jobs", "show", str(ready)), ("failed", "list"), ("queues", "list")):
        assert verb(frail, *looks).returncode == 0
    frail.sql("SET GLOBAL general_log = 0")
    asked = [
        str(sql)
        for (sql,) in frail.sql("SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE argument LIKE %s",
                                ("%qd\\_%",))
    ]  # fmt: skip
    assert sum("FROM qd_jobs" in sql for sql in asked) > 8, "they were seen to ask"
    assert [sql for sql in asked if re.search(r"FOR UPDATE|SHARE MODE|FOR SHARE|^(INSERT|UPDATE|DELETE)", sql)] == []


def test_what_cannot_be_asked_is_told_and_the_rest_is_explained(qd: Qd) -> None:
    (job,) = qd.enqueue("nap")
    with closing(qd.server.connect(qd.database)) as stranger, closing(stranger.cursor()) as cursor:
        cursor.execute("LOCK TABLES qd_queues WRITE, qd_daemons READ")
        reasons = explained(qd, job)
        cursor.execute("UNLOCK TABLES")
    assert "next" in reasons and "not_served" in reasons
    assert "whether its queue is paused" in reasons["untold"]


def test_a_locked_table_of_daemons_costs_what_is_known_of_them_alone(qd: Qd) -> None:
    (job,) = qd.enqueue("nap")
    with closing(qd.server.connect(qd.database)) as stranger, closing(stranger.cursor()) as cursor:
        cursor.execute("LOCK TABLES qd_daemons WRITE, qd_jobs READ")
        reasons = explained(qd, job)
        cursor.execute("UNLOCK TABLES")
    assert list(reasons) == ["next", "untold"]
    assert "which daemons live" in reasons["untold"]


def test_a_thread_of_other_queues_hides_nothing(qd: Qd) -> None:
    qd.write(
        queues={"default": {"lease": "6s"}, "mails": {"lease": "6s"}},
        workers=[{"queues": ["default"], "threads": 1}, {"queues": ["mails"], "threads": 1}],
    )
    daemon = qd.start()
    qd.enqueue("nap", 1, seconds=20)
    wait_for(lambda: qd.ran("start"), 15, "the other worker to be busy")
    qd.sql("INSERT INTO qd_jobs (queue, type, available_at) VALUES ('mails', 'nap', NOW(6) + INTERVAL 4 SECOND)")
    job = int(qd.one("SELECT MAX(id) FROM qd_jobs"))
    with closing(qd.server.connect(qd.database, autocommit=False)) as stranger, closing(stranger.cursor()) as cursor:
        cursor.execute("SELECT id FROM qd_jobs WHERE id = %s FOR UPDATE", (job,))
        cursor.fetchall()
        due = "SELECT available_at < NOW(6) - INTERVAL 11 SECOND FROM qd_jobs WHERE id = %s"
        wait_for(lambda: qd.one(due, (job,)) == 1, 40, "it to be due for longer than a claim takes")
        assert list(explained(qd, job)) == ["next", "not_taken"]
    daemon.process.kill()
    daemon.process.wait()


def test_a_dead_letter_whose_key_is_taken_says_by_whom_and_the_retry_agrees(qd: Qd) -> None:
    qd.sql(
        "INSERT INTO qd_failed_jobs (job_id, queue, type, payload, priority, attempts, unique_key, reason, error) "
        "VALUES (9001, 'default', 'nap', '{}', 2, 3, 'daily', 'error', 'boom')"
    )
    assert "`qd failed retry 9001` brings it back" in explained(qd, 9001)["failed"]
    holder = int(verb(qd, "enqueue", "nap", "--unique", "daily", "--delay", "1h").stdout)
    reasons = explained(qd, 9001)
    assert f"held by job {holder}" in reasons["key_taken"]
    refused = verb(qd, "failed", "retry", "9001")
    assert refused.returncode == 1 and f"job {holder}" in refused.stderr
    assert "due in" in explained(qd, holder)["delayed"]


def test_what_keeps_a_whole_queue_waiting_is_told(qd: Qd) -> None:
    qd.write(
        queues={"default": {"lease": "6s"}, "urgent": {"lease": "6s"}},
        workers=[{"queues": ["urgent", "default"], "threads": 1}],
    )
    (job,) = qd.enqueue("nap")
    assert "none has been seen" in explained(qd, job)["not_served"]
    qd.enqueue("nap", 1, queue="urgent")
    assert "worker urgent+default takes urgent first" in explained(qd, job)["other_queues"]
    assert verb(qd, "queues", "pause", "default").returncode == 0
    assert "`qd queues resume default`" in explained(qd, job)["paused"]
    stray = int(verb(qd, "enqueue", "nap", "--queue", "defualt", "--force").stdout)
    assert "was default meant?" in explained(qd, stray)["not_served"]
    daemon = qd.start()
    unknown = int(verb(qd, "enqueue", "napp", "--queue", "urgent").stdout)
    wait_for(lambda: "unknown_type" in explained(qd, unknown), 20, "the daemon to be known")
    assert daemon.stop() == 0


def test_names_that_no_check_let_through_reach_the_terminal_as_escapes(qd: Qd) -> None:
    for name in ("queue", "type"):
        qd.sql(f"ALTER TABLE qd_jobs DROP CONSTRAINT qd_jobs_{name}_check")
    hostile = "a\x1b]0;owned\x07\x9b31m\nb"
    qd.sql("ALTER TABLE qd_jobs MODIFY type VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL")
    qd.sql("INSERT INTO qd_jobs (queue, type, last_error, attempts) VALUES (%s, %s, %s, 1)",
           ("q\x1b[2J\x07", hostile, hostile))  # fmt: skip
    job = int(qd.one("SELECT MAX(id) FROM qd_jobs"))
    for verbs in (("explain", str(job)), ("explain", str(job), "--json"), ("status",), ("status", "--json")):
        said = verb(qd, *verbs)
        assert said.returncode == 0, said.stderr
        assert not [letter for letter in said.stdout if (letter < " " and letter != "\n") or "\x7f" <= letter <= "\x9f"]
    assert "q\\x1b[2J\\x07" in verb(qd, "explain", str(job)).stdout


def test_a_server_that_takes_no_writes_explains_all_the_same(frail: Qd) -> None:
    (job,) = frail.enqueue("nap")
    frail.sql("SET GLOBAL read_only = 1")
    assert "next" in explained(frail, job)
