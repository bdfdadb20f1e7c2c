"""Latency: how long jobs wait, and how long they run."""

from grafana.panels import BAD, Query, heat, lines, steps
from grafana.promql import mean, quantile, rate, select
from grafana.rows.limits import RUNNING
from grafana.rows.queues import BY_QUEUE

TITLE = "Latency"

WAIT, RUN = "qd_job_wait_seconds", "qd_job_duration_seconds"
QUANTILES = ((0.5, "half are quicker"), (0.95, "95 % are quicker"), (0.99, "99 % are quicker"))


def _quantiles(histogram: str) -> list[Query]:
    return [
        Query(quantile(which, histogram), name, exemplar=place == 0) for place, (which, name) in enumerate(QUANTILES)
    ]


PANELS = (
    heat(
        "Wait",
        "Jobs that started, per second, by how long they had been due; a wished delay or a back-off doesn't count. A "
        "band that climbs is a backlog that grows.",
        Query(rate(WAIT + "_bucket", by="le"), "{{le}}", exemplar=True),
    ),
    heat(
        "Run time",
        "Handlers that ended, per second, by how long they ran, however they ended. Of all queues, whatever is "
        "chosen: run times are kept by job type.",
        Query(rate(RUN + "_bucket", by="le"), "{{le}}", exemplar=True),
    ),
    lines(
        "Wait, of all chosen queues",
        "How long jobs had been due when they started. On a logarithmic axis; a gap: none started.",
        *_quantiles(WAIT),
        unit="s",
        logarithmic=True,
    ),
    lines(
        "Wait by queue, 95 %",
        "95 % of the jobs that started had been due for less. On a logarithmic axis; a gap: none started.",
        Query(quantile(0.95, WAIT, by="database, queue"), BY_QUEUE),
        unit="s",
        logarithmic=True,
    ),
    lines(
        "Longest running job",
        "How long the job runs that has run longest, by queue. The dashed line is the alert QdJobStuck's 15 minutes: a "
        "handler that its time-out couldn't end.",
        Query(f"max by (database, queue) ({select('qd_oldest_running_job_seconds')})", BY_QUEUE),
        unit="s",
        limit=steps((RUNNING, BAD)),
    ),
    lines(
        "Run time, of all jobs",
        "How long handlers ran, however they ended. On a logarithmic axis; a gap: none ended. Of all queues.",
        *_quantiles(RUN),
        unit="s",
        logarithmic=True,
    ),
    lines(
        "Run time by job type, 95 %",
        "95 % of the handlers that ended ran for less. On a logarithmic axis; a gap: none ended. Of all queues.",
        Query(quantile(0.95, RUN, by="job_type"), "{{job_type}}"),
        unit="s",
        logarithmic=True,
    ),
    lines(
        "Mean run time by job type",
        "The mean, which long jobs pull up; times their number it is the work. A gap: none ended. Of all queues.",
        Query(mean(RUN, by="job_type"), "{{job_type}}"),
        unit="s",
        logarithmic=True,
    ),
)
