"""What the command line asks of a store beside what the daemon does: looking at rows, and acts on them.

May import: values, the pure modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from qd.store.values import DaemonRow, Demand, FailedRow, Filter, Finding, Holder, JobRow


class AdminStore(Protocol):
    """What verbs and console ask for, beside Store. A person's act: refusals are errors."""

    def list_jobs(self, where: Filter) -> list[JobRow]:
        """Jobs by id, ascending from `where.after`."""
        ...

    def job(self, job_id: int) -> JobRow:
        """Raises NotFound."""
        ...

    def release_job(self, job_id: int, max_attempts: int | None = None) -> None:
        """Due now, unreserved; a stale one as `reclaim` would do it.

        Args:
            max_attempts: the queue's, for a row without its own.

        Raises:
            NotFound: there is no such job.
            Refused: its lease is alive, or it is stale and was cut off in its last attempt.
        """
        ...

    def delete_job(self, job_id: int) -> None:
        """Raises NotFound; Refused while its lease is alive."""
        ...

    def count_jobs(self, where: Filter) -> tuple[int, int]:
        """How many jobs the filter means, its limit and after aside; the highest id among them."""
        ...

    def job_ids(self, where: Filter) -> list[int]:
        """One page of ids, ascending from `where.after`."""
        ...

    def delete_jobs(self, ids: Sequence[int], where: Filter) -> int:
        """Deletes, in one transaction, those that still are what the filter means; how many.

        Rows whose lease is alive stay.
        """
        ...

    def list_failed(self, where: Filter) -> list[FailedRow]:
        """Dead letters by id, descending (newest first) from below `where.after`."""
        ...

    def count_failed(self, where: Filter) -> int:
        """How many dead letters the filter means, its limit and after aside."""
        ...

    def failed(self, job_id: int) -> FailedRow:
        """The newest dead letter of this job id. Raises NotFound."""
        ...

    def retry_failed(self, job_id: int, up_to: int | None = None) -> int:
        """Brings the newest dead letter of this job back; the id it runs under.

        Fresh attempts and crashes, history kept, due now, one transaction. A new id only if the
        old one is taken.

        Args:
            up_to: only dead letters with at most this id (the dead letter's own), so that an act
                on many doesn't touch what failed after it began.

        Raises:
            NotFound: there is none, or another took it just now.
            Refused: its unique key is taken by now, or the schema refuses its payload.
        """
        ...

    def delete_failed(self, job_id: int, up_to: int | None = None) -> None:
        """Deletes the newest dead letter of this job; `up_to` as in retry_failed. Raises NotFound."""
        ...

    def failed_ids(self, where: Filter) -> list[tuple[int, int]]:
        """(job id, dead letter's id) of all that the filter means now, oldest first, its limit and
        after aside: what an act on all works through."""
        ...

    def pause(self, queue: str) -> None:
        """Nothing of this queue is claimed from the next look on."""
        ...

    def resume(self, queue: str) -> None:
        """The opposite; no error where it wasn't paused."""
        ...

    def recover(self, queue: str | None, max_attempts: Mapping[str, int], default: int) -> tuple[int, int]:
        """Takes back stale rows now; how many came back, how many became dead letters."""
        ...

    def daemons(self) -> list[DaemonRow]:
        """Who runs: seen within SEEN_WITHIN."""
        ...

    def position(self, job_id: int) -> int:
        """How many ready rows of its queue come before this job, counted up to POSITION_COUNTED."""
        ...

    def holders(self, queues: Sequence[str]) -> list[Holder]:
        """Who holds jobs of these queues under a living lease, by name and thread."""
        ...

    def key_holder(self, queue: str, unique_key: str) -> int | None:
        """The job of this queue that has the unique key; None: it is free."""
        ...

    def now(self) -> datetime:
        """The database's now, UTC."""
        ...

    def own_queues(self, prefix: str) -> list[str]:
        """Names of qd's own queues that begin so and have rows, posts and dead letters too, or a daemon's row."""
        ...

    def clear_own(self, queue: str) -> int:
        """Removes all that one of qd's own queues has, whatever its state, and the rows of daemons that serve it
        alone; how many rows of jobs, posts and dead letters that were. Raises Refused for any other queue."""
        ...

    def rows_read(self) -> int | None:
        """Rows and index entries that the server has read for this store's connection so far, this question's
        among them; None: it doesn't tell."""
        ...

    def settings(self) -> dict[str, str]:
        """What decides how dear a commit is, and the isolation of qd's sessions, by the database's own names."""
        ...

    def inspect(self, demand: Demand | None = None) -> Iterator[Finding]:
        """What `qd check` asks the server: session settings, tables, claim plan, grants; its limits, if judged."""
        ...
