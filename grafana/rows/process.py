"""Process: what runs where, and what it uses of its host."""

from grafana.panels import BAD, FAIR, GOOD, Query, lines, steps, table, timeline
from grafana.promql import select

TITLE = "Process"

BY_DAEMON = "{{instance}}"
CPU = select("process_cpu_seconds_total")
FILES, MOST_FILES = select("process_open_fds"), select("process_max_fds")

PANELS = (
    timeline(
        "Up or down",
        "Whether Prometheus could read the daemon's page.",
        Query(select("up"), BY_DAEMON),
        {1: ("up", GOOD), 0: ("DOWN", BAD)},
    ),
    timeline(
        "Configuration by daemon",
        "REFUSED from a refused reload until the next applied one: the daemon runs with the configuration before.",
        Query(select("qd_config_last_reload_successful"), BY_DAEMON),
        {1: ("applied", GOOD), 0: ("REFUSED", FAIR)},
    ),
    lines(
        "CPU",
        "Seconds of processor time per second, handlers in threads included; child processes and commands aren't. 1 "
        "is all that the threads of one interpreter can use.",
        Query(f"rate({CPU}[$__rate_interval])", BY_DAEMON),
        unit="none",
    ),
    lines(
        "Memory",
        "Resident memory of the daemon, without its child processes.",
        Query(select("process_resident_memory_bytes"), BY_DAEMON),
        unit="bytes",
    ),
    lines(
        "Open files",
        "Share of the file descriptors that the daemon may open. The dashed line is 80 %.",
        Query(f"{FILES} / {MOST_FILES}", BY_DAEMON),
        unit="percentunit",
        top=1,
        limit=steps((0.8, BAD)),
    ),
    table(
        "What runs here",
        "Version, Python, driver, way of claiming and server of each daemon, and how long it runs. connector pure: the "
        "driver's slow half, see docs/dependencies.md. Different versions side by side: an upgrade under way.",
        Query(
            f"{select('qd_build_info')} * on (job, instance) group_left () "
            f"(time() - {select('process_start_time_seconds')})"
        ),
        columns={
            "instance": "Daemon",
            "database": "Database",
            "version": "qd",
            "python": "Python",
            "connector": "Connector",
            "claim_path": "Claims by",
            "server": "Server",
            "Value": "Runs for",
        },
        hidden=("job",),
        sort_by="Daemon",
        unit="s",
    ),
)
