"""Jobs in a queue that nobody serves are seen: in the metrics, the log, the status, and by who mistypes its name."""

from __future__ import annotations

import json

from tests.acceptance.cli_shell import policy
from tests.acceptance.verbs import verb
from tests.support.daemon import Qd
from tests.support.waiting import wait_for

STRANDED = (
    "INSERT INTO qd_jobs (queue, type, payload, lane, attempts, reserved_by, available_at) VALUES "
    "('mail', 'nap', '{\"seconds\": 0}', 1, 1, 'gone:1:x:w:1', NOW(6) - INTERVAL 1 HOUR)"
)


def test_a_queue_that_was_taken_from_the_configuration_stays_in_sight(qd: Qd) -> None:
    qd.enqueue("nap", 10, queue="mail", seconds=0)
    qd.sql(STRANDED)
    daemon = qd.start()
    wait_for(lambda: daemon.metric('qd_queue_jobs{queue="_other",state="ready"}') == 10.0, 15, "the gauge")
    assert daemon.metric('qd_queue_jobs{queue="_other",state="stale"}') == 1.0
    assert 'queue="mail"' not in daemon.get("/metrics")[1], "names come from anybody's INSERT: no labels"
    (warning,) = wait_for(lambda: [line for line in daemon.said().splitlines() if "mail" in line], 10, "the warning")
    assert "level=warning" in warning and "11 jobs wait in queues that neither" in warning
    rows = {row["queue"]: row for row in json.loads(verb(qd, "status", "--json").stdout)["queues"]}
    assert (rows["mail"]["ready"], rows["mail"]["stale"]) == (10, 1)
    assert "not in the configuration" in verb(qd, "status").stdout
    refreshed = daemon.metric("qd_queue_stats_last_refresh_timestamp_seconds")
    wait_for(
        lambda: (daemon.metric("qd_queue_stats_last_refresh_timestamp_seconds") or 0) > (refreshed or 0) + 2,
        30, "further counts",
    )  # fmt: skip
    assert len([line for line in daemon.said().splitlines() if "mail" in line]) == 1, "said at each count"
    qd.write(queues={"default": policy(), "mail": {"lease": "6s"}}, workers=[{"queues": ["default", "mail"]}])
    assert daemon.stop() == 0
    second = qd.start()
    wait_for(lambda: qd.jobs() == 0, 40, "all of them to be done, the stranded one too, once they are served")
    assert len(qd.ran("end")) == 11 and second.stop() == 0


def test_a_mistyped_queue_is_refused_by_the_command_line_unless_forced(qd: Qd) -> None:
    refused = verb(qd, "enqueue", "nap", "{}", "--queue", "mial")
    assert refused.returncode in (1, 2) and "mial" in refused.stderr and "default" in refused.stderr
    assert refused.stdout == "" and qd.jobs() == 0
    assert verb(qd, "enqueue", "nap", "{}", "--queue", "mial", "--force").returncode == 0
    assert qd.jobs("queue = 'mial'") == 1
