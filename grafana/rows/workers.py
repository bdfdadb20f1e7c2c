"""Workers: what the threads do, and whether they are enough."""

from grafana.panels import Query, coloured, dashed, lines
from grafana.promql import averaged, own, rate, share
from grafana.rows.queues import BY_QUEUE

TITLE = "Workers"

PANELS = (
    lines(
        "Threads by what they do",
        "Threads of all daemons, one upon the other, averaged over the last scrapes: busy with a job, idle, or waiting "
        "out a back-off because the database didn't answer.",
        Query(averaged("qd_workers", by="state"), "{{state}}"),
        stacked=True,
        overrides=[coloured("busy", "green"), coloured("idle", "blue"), dashed("backoff", "red")],
    ),
    lines(
        "Busy share by worker",
        "Share of a worker's threads that run a job, averaged over the last scrapes. Near 100 % while jobs wait: more "
        "threads would help, as long as the database and what the handlers call can take it.",
        Query(
            share(averaged("qd_workers", 'state="busy"', by="worker"), averaged("qd_workers", by="worker")),
            "{{worker}}",
        ),
        unit="percentunit",
        top=1,
    ),
    lines(
        "Threads in use by job type",
        "Seconds of run time per second, that is threads held: which type the capacity goes to. Counted when a handler "
        "ends, so a long one shows late. Of all queues.",
        Query(rate("qd_job_duration_seconds_sum", by="job_type"), "{{job_type}}"),
        unit="none",
        stacked=True,
    ),
    lines(
        "Threads that serve a queue",
        "A thread that serves three queues counts for each. 0 while jobs wait: nobody serves it, and the alert "
        "QdQueueWithoutWorkers fires.",
        Query(own("qd_queue_workers", by="database, queue"), BY_QUEUE),
        width=12,
        steps_between=True,
    ),
    lines(
        "Lease renewals",
        "Leases that were renewed, per second. error: the database said no, it is tried again. lost: another daemon "
        "has the job; this one settles nothing.",
        Query(rate("qd_lease_extensions_total", by="result"), "{{result}}"),
        unit="ops",
        width=12,
        overrides=[
            coloured("ok", "green"),
            dashed("error", "orange"),
            dashed("lost", "red"),
        ],
    ),
)
