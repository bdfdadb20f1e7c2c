"""Database: does it answer, and what does qd cost it?"""

from grafana.panels import BAD, GOOD, Query, lines, timeline
from grafana.promql import per_minute, quantile, rate, select
from grafana.rows.latency import QUANTILES
from grafana.rows.queues import BY_QUEUE

TITLE = "Database"

STATEMENTS, COMMITS = rate("qd_database_statements_total"), rate("qd_database_commits_total")
CLAIMED = rate("qd_jobs_claimed_total")
LAST = select("qd_queue_stats_last_refresh_timestamp_seconds")


def _per_job(sent: str) -> str:
    return f"{sent} / ({CLAIMED} > 0.1) or NaN * {CLAIMED}"


PANELS = (
    timeline(
        "Does it answer",
        "By daemon. While it doesn't, nothing is claimed; running jobs go on, and are settled when it is back.",
        Query(select("qd_database_up"), "{{instance}}"),
        {1: ("answers", GOOD), 0: ("DOWN", BAD)},
    ),
    lines(
        "Errors by kind",
        "Per minute. A deadlock now and then is normal: it is tried again. lost, timeout: the server or the network. "
        "read_only: a fail-over. refused: too many connections.",
        Query(per_minute("qd_database_errors_total", by="kind"), "{{kind}}"),
        Query(per_minute("qd_database_reconnects_total"), "connections opened again"),
        unit="cpm",
        width=12,
        height=7,
    ),
    lines(
        "Claim time",
        "One claim of any size, COMMIT included, an empty one too. It should be flat whatever the backlog; if it "
        "climbs, the database is busy or a transaction somewhere is held open for long. On a logarithmic axis.",
        *[Query(quantile(which, "qd_claim_duration_seconds"), name) for which, name in QUANTILES],
        unit="s",
        logarithmic=True,
    ),
    lines(
        "Claim time by queue, 95 %",
        "95 % of the claims took less. On a logarithmic axis.",
        Query(quantile(0.95, "qd_claim_duration_seconds", by="database, queue"), BY_QUEUE),
        unit="s",
        logarithmic=True,
    ),
    lines(
        "Statements and commits",
        "Per second, of all daemons. An idle daemon sends under 8 statements a second. Each commit is a write to the "
        "disk where the server is durable.",
        Query(STATEMENTS, "statements"),
        Query(COMMITS, "commits"),
        unit="ops",
    ),
    lines(
        "What a job costs the database",
        "Statements and commits per claimed job: about 4 statements one at a time, far under 1 in batches. Where "
        "few jobs come, it is mostly looks for work; a gap: under 6 jobs a minute.",
        Query(_per_job(STATEMENTS), "statements"),
        Query(_per_job(COMMITS), "commits"),
        width=12,
    ),
    lines(
        "Age of the counts",
        "How long ago a daemon had counted the rows when it was scraped, and how often it does. Over 5 intervals, "
        "what was counted is left out rather than shown as it was; QdQueueStatsOld fires. Without age: never yet.",
        Query(f"(timestamp({LAST}) - {LAST}) < 1e9", "{{instance}}"),
        Query(f"max({select('qd_queue_stats_refresh_interval_seconds')})", "interval, the longest"),
        unit="s",
        width=12,
    ),
)
