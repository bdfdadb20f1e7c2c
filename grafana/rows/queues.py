"""Queues: what waits where, and for how long. All numbers are the database's, the same from every daemon."""

from typing import Any

from grafana.panels import (
    BAD,
    CALM,
    FAIR,
    GOOD,
    Json,
    Query,
    coloured,
    dashed,
    lines,
    override,
    steps,
    table,
    timeline,
    words,
)
from grafana.promql import jobs, own, rate, shared
from grafana.rows.limits import READY_AGE

TITLE = "Queues"

BY_QUEUE = "{{queue}} {{database}}"
"""In a legend; the second is empty where no target has the label."""

OLDEST = shared("qd_queue_oldest_ready_age_seconds")
PAUSED = {0: ("runs", GOOD), 1: ("PAUSED", FAIR)}


def _column(name: str, **properties: Any) -> Json:
    return override("byName", name, **properties)


PANELS = (
    table(
        "Every queue",
        "The queues of this moment. Waits for a thread: Ready. Threads 0 while jobs wait: nobody serves the queue. "
        "_other stands for all queues that the configuration doesn't know, mostly a name mistyped where jobs are "
        "enqueued; `qd status` tells them apart.",
        Query(jobs("ready")),
        Query(OLDEST),
        Query(jobs("delayed")),
        Query(jobs("reserved")),
        Query(jobs("stale")),
        Query(jobs("failed")),
        Query(own("qd_queue_workers", by="database, queue")),
        Query(rate("qd_job_attempts_total", 'outcome="succeeded"', by="database, queue")),
        Query(shared("qd_queue_paused")),
        columns={
            "queue": "Queue",
            "database": "Database",
            "Value #A": "Ready",
            "Value #B": "Oldest ready",
            "Value #C": "Delayed",
            "Value #D": "Running",
            "Value #E": "Stale",
            "Value #F": "Dead letters",
            "Value #G": "Threads",
            "Value #H": "Done",
            "Value #I": "Paused",
        },
        sort_by="Queue",
        overrides=[
            _column("Oldest ready", unit="s", thresholds=steps((60, FAIR), (READY_AGE, BAD), base=CALM)),
            _column("Stale", thresholds=steps((1, BAD), base=CALM)),
            _column("Dead letters", thresholds=steps((1, FAIR), base=CALM)),
            _column("Done", unit="ops"),
            _column("Paused", mappings=words(PAUSED)),
        ],
    ),
    lines(
        "Ready by queue",
        "Jobs that are due and wait for a thread. A gap: the rows couldn't be counted, see Age of the counts.",
        Query(jobs("ready"), BY_QUEUE),
        steps_between=True,
    ),
    lines(
        "Oldest ready job by queue",
        "How long the oldest ready job has been due. The dashed line is the alert QdOldestReadyJobTooOld's 5 minutes. "
        "A paused queue's job grows old too, without the alert.",
        Query(OLDEST, BY_QUEUE),
        unit="s",
        limit=steps((READY_AGE, BAD)),
    ),
    lines(
        "Jobs by state",
        "All jobs of the chosen queues. Delayed: due later, by wish or after a failure. Reserved: running, or about "
        "to. Stale: their owner is gone. Failed: dead letters.",
        Query(f"sum by (state) ({shared('qd_queue_jobs', by='queue, state')})", "{{state}}"),
        steps_between=True,
        overrides=[
            coloured("ready", "blue"),
            coloured("reserved", "green"),
            coloured("delayed", "purple"),
            dashed("failed", "orange"),
            dashed("stale", "red"),
        ],
    ),
    timeline(
        "Paused",
        "When a queue was paused. Jobs that run then go on; no new one starts.",
        Query(shared("qd_queue_paused"), BY_QUEUE),
        PAUSED,
    ),
    lines(
        "Dead letters by queue",
        "Jobs that were given up and wait for a person, until they are retried, deleted or purged.",
        Query(jobs("failed"), BY_QUEUE),
        width=12,
        height=7,
        steps_between=True,
    ),
)
