"""The queries' one grammar: which series are chosen, and how those of several daemons become one number.

What is read from the rows is the same from every daemon: `shared` takes the highest, per database, so that two
daemons don't count a job twice. What a daemon counted is its own: `own` and `rate` add up. The catalogue
knows which is which, and a wrong pairing is refused when the dashboard is built. Every selector has the variables
$job, $instance and $database, and $queue where the metric has queues. May import: qd.metrics.catalogue.
"""

from __future__ import annotations

import re

from qd.metrics.catalogue import CATALOGUE, Spec

DAEMON = 'job=~"$job", instance=~"$instance", database=~"$database"'
"""The label `database` is optional: where no target has it, `.*` matches its absence."""

SPECS = {spec.name: spec for spec in CATALOGUE}


def spec_of(name: str) -> Spec | None:
    """The metric of a series; None for those of Prometheus and of the process."""
    return SPECS.get(name) or SPECS.get(re.sub(r"_(bucket|sum|count)$", "", name))


def select(name: str, *matchers: str) -> str:
    """The series of a metric within the chosen variables."""
    spec = spec_of(name)
    if spec is None and name.startswith("qd_"):
        raise ValueError(f"{name} isn't in the catalogue")
    queue = ('queue=~"$queue"',) if spec is not None and "queue" in spec.labels else ()
    return f"{name}{{{', '.join((DAEMON, *queue, *matchers))}}}"


def shared(name: str, *matchers: str, by: str = "queue") -> str:
    """Numbers that are the same from every daemon: one for each database and label."""
    if not is_shared(name):
        raise ValueError(f"{name} is each daemon's own")
    return f"max by (database, {by}) ({select(name, *matchers)})"


def jobs(state: str) -> str:
    """The jobs in a state, for each queue."""
    return shared("qd_queue_jobs", f'state="{state}"')


def own(name: str, *matchers: str, by: str = "") -> str:
    """A gauge that each daemon has for itself, added up."""
    return added(select(name, *matchers), by, name)


def averaged(name: str, *matchers: str, by: str = "") -> str:
    """The same over the last minute or so: what jumps from scrape to scrape can be read."""
    return added(f"avg_over_time({select(name, *matchers)}[$__rate_interval])", by, name)


def rate(name: str, *matchers: str, by: str = "") -> str:
    """A counter's increase per second, of all daemons."""
    return added(f"rate({select(name, *matchers)}[$__rate_interval])", by, name)


def per_minute(name: str, *matchers: str, by: str = "") -> str:
    """The same per minute, for what is rare."""
    return f"60 * {rate(name, *matchers, by=by)}"


def added(expr: str, by: str, name: str) -> str:
    """A sum over daemons."""
    if is_shared(name):
        raise ValueError(f"{name} is the same from every daemon: a sum would count each job once for each")
    return f"sum by ({by}) ({expr})" if by else f"sum({expr})"


def is_shared(name: str) -> bool:
    """Whether every daemon shows the same numbers."""
    spec = spec_of(name)
    return spec is not None and spec.shared


def share(part: str, whole: str) -> str:
    """A part of a whole; 0 where there is nothing, instead of a gap."""
    return f"{part} / clamp_min({whole}, 1e-9)"


def quantile(which: float, histogram: str, by: str = "") -> str:
    """A quantile of all daemons' observations; no number where nothing was observed."""
    return f"histogram_quantile({which:g}, {rate(histogram + '_bucket', by=f'{by}, le' if by else 'le')})"


def mean(histogram: str, by: str) -> str:
    """The mean of the observations; no number where nothing was observed."""
    return f"{rate(histogram + '_sum', by=by)} / {rate(histogram + '_count', by=by)}"
