"""Now: is anything wrong at this moment? Twelve numbers, with the words or the bounds that judge them."""

from grafana.panels import BAD, FAIR, GOOD, Query, override, stat, steps
from grafana.promql import jobs, own, rate, select, share, shared
from grafana.rows.limits import OUTCOMES_THAT_COUNT, OUTCOMES_THAT_FAILED, READY_AGE

TITLE = "Now"

UP = select("up")
AGE, PAUSED = shared("qd_queue_oldest_ready_age_seconds"), shared("qd_queue_paused")
FAILED = rate("qd_job_attempts_total", OUTCOMES_THAT_FAILED)
TRIED = rate("qd_job_attempts_total", OUTCOMES_THAT_COUNT)

PANELS = (
    stat(
        "Ready",
        "Jobs that are due and wait for a thread. Whether that is much, Oldest ready job says. "
        "No data: the rows couldn't be counted for a while, see the row Database.",
        Query(f"sum({jobs('ready')})"),
    ),
    stat(
        "Oldest ready job",
        "How long the oldest ready job has been due, in queues that aren't paused. Orange from a minute, red from "
        "5 minutes, where the alert QdOldestReadyJobTooOld fires: too few threads, or threads that are stuck.",
        Query(f"max({AGE} * (1 - {PAUSED}))"),
        unit="s",
        thresholds=steps((60, FAIR), (READY_AGE, BAD)),
    ),
    stat("Running", "Jobs that are claimed: running, or about to.", Query(f"sum({jobs('reserved')})")),
    stat(
        "Stale",
        "Jobs whose owner let the lease run out: a daemon died or was cut off. They are taken back within seconds "
        "by a daemon that serves the queue; if the number stays, none does. Anything but 0 is red.",
        Query(f"sum({jobs('stale')})"),
        thresholds=steps((1, BAD)),
    ),
    stat(
        "Dead letters",
        "Jobs that were given up and wait for a person: `qd failed list`, then retry or delete. Orange from 1.",
        Query(f"sum({jobs('failed')})"),
        thresholds=steps((1, FAIR)),
    ),
    stat(
        "Paused queues",
        "Queues that somebody has paused: `qd queues list`, `qd queues resume`. Orange from 1. Those that the "
        "configuration doesn't know count as one, and not while jobs wait in others that it doesn't know.",
        Query(f"sum({PAUSED})"),
        thresholds=steps((1, FAIR)),
    ),
    stat(
        "Jobs done",
        "Jobs that succeeded, per second.",
        Query(rate("qd_job_attempts_total", 'outcome="succeeded"')),
        unit="ops",
    ),
    stat(
        "Attempts that failed",
        "Share of the attempts that ended without success; snoozes and hand-backs aren't attempts. 0 while nothing "
        "runs. Orange from 5 %, red from 25 %.",
        Query(share(FAILED, TRIED)),
        unit="percentunit",
        thresholds=steps((0.05, FAIR), (0.25, BAD)),
    ),
    stat(
        "Threads busy",
        "Share of all threads that run a job. Orange from 90 %: with a backlog, more threads would help.",
        Query(share(own("qd_workers", 'state="busy"'), own("qd_workers"))),
        unit="percentunit",
        thresholds=steps((0.9, FAIR)),
    ),
    stat(
        "Daemons",
        "Daemons whose page Prometheus could read, and those whose it couldn't: down, or out of its reach. "
        "Can't claim: they answer, but claim no job; /readyz says why. Both red from 1.",
        Query(f"sum({UP})", "up"),
        Query(f"count({UP}) - sum({UP})", "down"),
        Query(own("qd_daemon_state", 'state="unready"'), "can't claim"),
        overrides=[override("byName", name, thresholds=steps((1, BAD))) for name in ("down", "can't claim")],
    ),
    stat(
        "Database",
        "DOWN where one daemon or more gets no answer from it. The row Database says which.",
        Query(f"min({select('qd_database_up')})"),
        unit="none",
        meanings={1: ("answers", GOOD), 0: ("DOWN", BAD)},
    ),
    stat(
        "Configuration",
        "REFUSED where a daemon's last reload was refused: it goes on with the configuration before. Its log says why.",
        Query(f"min({select('qd_config_last_reload_successful')})"),
        unit="none",
        meanings={1: ("applied", GOOD), 0: ("REFUSED", BAD)},
    ),
)
