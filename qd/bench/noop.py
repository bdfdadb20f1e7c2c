"""The handler of a bench's jobs, which does nothing. Imported only where such jobs are to run.

May import: registry, job, the plan's names.
"""

from __future__ import annotations

from qd.bench.plan import TYPE
from qd.job import Job
from qd.registry import REGISTRY, Handler


def noop(job: Job) -> None:
    """Nothing: what is measured is all that is around it."""


REGISTRY.add(Handler(TYPE, function=noop))
