"""The demo's handlers, as a user would write them: the daemon loads this module by its name.

May import: qd's public names, and the demo's tree and ledger.
"""

from __future__ import annotations

import qd
from qd.demo import ledger, tree

QUEUES = ("demo",)


@qd.handler("hash_file", queues=QUEUES)
def hash_file(job: qd.Job) -> str:
    """Hashes and measures one file; one that can't be read goes to the dead letter at once."""

    def still_ours() -> None:
        if job.lost.is_set():
            raise qd.LeaseLost("another daemon has the job")

    try:
        found = tree.digest(tree.from_text(job.payload["file"]), between=still_ours)
    except (PermissionError, FileNotFoundError, IsADirectoryError) as error:  # no retry would help
        raise qd.Reject(f"{job.payload['name']}: {error.strerror}") from error
    ledger.record(job, file=job.payload["file"], sha256=found.sha256, size=found.size)
    return f"{found.size} bytes"


@qd.handler("fails_first", queues=QUEUES)
def fails_first(job: qd.Job) -> None:
    """Fails as often as its payload says, then succeeds: what a retry with back-off is for."""
    if job.attempt <= job.payload["failures"]:
        raise ConnectionError(f"attempt {job.attempt}: a service is away, as this job wants it")
    ledger.record(job)


@qd.handler("always_fails", queues=QUEUES)
def always_fails(job: qd.Job) -> None:
    """Ends in the dead letter, with its reason and its traceback."""
    raise ValueError(f"attempt {job.attempt}: this job fails whenever it runs")


@qd.handler("delayed", queues=QUEUES)
def delayed(job: qd.Job) -> None:
    """Says when it ran."""
    ledger.record(job)


@qd.handler("urgent", queues=QUEUES)
def urgent(job: qd.Job) -> None:
    """Says when it ran."""
    ledger.record(job)
