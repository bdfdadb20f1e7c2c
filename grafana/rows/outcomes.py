"""Throughput and outcomes: how much is done, and how attempts end."""

from grafana.panels import Query, coloured, dashed, lines, totals
from grafana.promql import mean, per_minute, rate, select, share
from grafana.rows.limits import OUTCOMES_THAT_COUNT, OUTCOMES_THAT_FAILED
from grafana.rows.queues import BY_QUEUE

TITLE = "Throughput and outcomes"

ATTEMPTS = "qd_job_attempts_total"

GOING_ON = {"succeeded": "green", "released": "blue", "snoozed": "purple"}
TROUBLE = {"failed": "orange", "timeout": "yellow", "rejected": "dark-orange", "crashed": "red", "lost": "dark-red"}

PANELS = (
    lines(
        "Attempts by outcome",
        "Attempts that ended, per second, one upon the other. Dashed: without success. Snoozed and released went back "
        "into the queue and don't count as attempts.",
        Query(rate(ATTEMPTS, by="outcome"), "{{outcome}}"),
        unit="ops",
        stacked=True,
        overrides=[*(coloured(*one) for one in GOING_ON.items()), *(dashed(*one) for one in TROUBLE.items())],
    ),
    lines(
        "Jobs done by queue",
        "Jobs that succeeded, per second.",
        Query(rate(ATTEMPTS, 'outcome="succeeded"', by="database, queue"), BY_QUEUE),
        unit="ops",
    ),
    lines(
        "Claimed by queue",
        "Jobs that were claimed, per second. Above what is done: attempts fail, or running jobs grow more.",
        Query(rate("qd_jobs_claimed_total", by="database, queue"), BY_QUEUE),
        unit="ops",
    ),
    lines(
        "Share of attempts that failed, by job type",
        "Of the attempts that ended: those without success. 0 while nothing runs. _other: types that no handler here "
        "is registered for.",
        Query(
            share(
                rate(ATTEMPTS, OUTCOMES_THAT_FAILED, by="job_type"), rate(ATTEMPTS, OUTCOMES_THAT_COUNT, by="job_type")
            ),
            "{{job_type}}",
        ),
        unit="percentunit",
        top=0.1,
    ),
    lines(
        "Attempts that a job takes",
        "Mean over the jobs that were done: 1 is best. A gap: none was done.",
        Query(mean("qd_attempts_per_job", by="database, queue"), BY_QUEUE),
        top=2,
    ),
    totals(
        "Attempts in the chosen time",
        "How the attempts of the whole time range ended; estimated at its ends.",
        Query(f"sum by (outcome) (increase({select(ATTEMPTS)}[$__range]))", "{{outcome}}"),
        overrides=[coloured(*one) for one in (GOING_ON | TROUBLE).items()],
    ),
    lines(
        "New dead letters by reason",
        "Jobs given up, per minute. error, timeout, crash: the attempts are spent. rejected, unknown_type, payload: no "
        "attempt could help. lost, interrupted: cut off when they may run only once.",
        Query(per_minute("qd_jobs_dead_lettered_total", by="reason"), "{{reason}}"),
        unit="cpm",
        width=12,
    ),
    lines(
        "Taken back from lost owners",
        "Stale jobs that a daemon took back, per minute, by queue. Each means that a daemon died or was stopped hard, "
        "and that a job runs again. The alert QdStaleJobs fires on it.",
        Query(per_minute("qd_jobs_reclaimed_total", by="database, queue"), BY_QUEUE),
        unit="cpm",
        width=12,
    ),
)
