"""A real Prometheus takes the exemplars: from a slow bucket to the job that was in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.daemon import Qd
from tests.support.prometheus import Prometheus
from tests.support.waiting import wait_for

REFUSED = ("exemplar", "out of order", "too long")
"""Words of Prometheus' log where it doesn't take one."""


def jobs(prometheus: Prometheus, metric: str, **series: str) -> dict[str, dict[str, Any]]:
    """The exemplars of a histogram's buckets, by the job that each names."""
    found = prometheus.exemplars(f"{metric}_bucket")
    kept = [one for one in found if series.items() <= one["seriesLabels"].items()]
    return {one["labels"]["job_id"]: one for one in kept}


def test_prometheus_leads_from_a_bucket_to_its_job(qd: Qd, prometheus: Callable[..., Prometheus]) -> None:
    qd.start()
    server = prometheus([f"127.0.0.1:{qd.port}"])
    server.wait_scraped()
    bucket = {"job_type": "nap", "le": "1.0"}
    (slow,) = qd.enqueue("nap", seconds=0.6)
    wait_for(lambda: str(slow) in jobs(server, "qd_job_duration_seconds", **bucket), 30, "the job by its run time")
    wait_for(lambda: str(slow) in jobs(server, "qd_job_wait_seconds", queue="default"), 30, "the job by its wait")
    exemplar = jobs(server, "qd_job_duration_seconds", **bucket)[str(slow)]
    assert exemplar["labels"] == {"job_id": str(slow)} and 0.6 <= float(exemplar["value"]) <= 1.0
    (later,) = qd.enqueue("nap", seconds=0.7)
    wait_for(lambda: str(later) in jobs(server, "qd_job_duration_seconds", **bucket), 30, "the next one")
    assert set(jobs(server, "qd_job_duration_seconds", **bucket)) == {str(slow), str(later)}
    assert not [line for line in server.said().splitlines() if any(word in line.lower() for word in REFUSED)]
