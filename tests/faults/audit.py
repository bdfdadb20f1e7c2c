"""What the rows themselves tell: triggers write down every change of hands, in the transaction that makes it.

Each daemon has an account of its own, so that the audit knows who wrote, not only in whose name.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.support.server import Server

_COLUMNS = "what, job, attempts, crashes, owner, reason, writer"
_WRITER = "SUBSTRING_INDEX(USER(), '@', 1)"

_CHANGE = (
    "CASE WHEN NEW.reserved_by IS NULL THEN "
    "IF(NEW.last_error LIKE 'its lease ran out%' AND NEW.crashes > OLD.crashes, 'reclaim', "
    "IF(NEW.attempts < OLD.attempts, 'release', 'retry')) "
    "WHEN OLD.reserved_by IS NULL THEN 'claim' ELSE 'steal' END"
)

_SCHEMA = (
    "CREATE TABLE audit (n BIGINT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(8), job BIGINT UNSIGNED, attempts INT, "
    "crashes INT, owner VARCHAR(255), reason VARCHAR(20), writer VARCHAR(80), "
    "at TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6), KEY (job))",
    "CREATE TABLE asked (job BIGINT UNSIGNED PRIMARY KEY, queue VARCHAR(64), type VARCHAR(128), "
    "max_attempts INT, payload LONGTEXT)",
    "CREATE TABLE effects (n BIGINT AUTO_INCREMENT PRIMARY KEY, job BIGINT UNSIGNED, token VARCHAR(255))",
    "CREATE TRIGGER audit_put AFTER INSERT ON qd_jobs FOR EACH ROW IF NEW.type NOT LIKE 'qd.%' THEN "
    "INSERT INTO asked VALUES (NEW.id, NEW.queue, NEW.type, NEW.max_attempts, NEW.payload); END IF",
    "CREATE TRIGGER audit_delete AFTER DELETE ON qd_jobs FOR EACH ROW IF OLD.type NOT LIKE 'qd.%' THEN "
    f"INSERT INTO audit ({_COLUMNS}) VALUES "
    f"('gone', OLD.id, OLD.attempts, OLD.crashes, OLD.reserved_by, NULL, {_WRITER}); END IF",
    "CREATE TRIGGER audit_update AFTER UPDATE ON qd_jobs FOR EACH ROW "
    "IF NOT (OLD.reserved_by <=> NEW.reserved_by) AND OLD.type NOT LIKE 'qd.%' THEN "
    f"INSERT INTO audit ({_COLUMNS}) VALUES ({_CHANGE}, NEW.id, NEW.attempts, NEW.crashes, "
    f"COALESCE(IF(NEW.reserved_by IS NULL, OLD.reserved_by, NEW.reserved_by), ''), NULL, {_WRITER}); END IF",
    "CREATE TRIGGER audit_bury AFTER INSERT ON qd_failed_jobs FOR EACH ROW "
    f"INSERT INTO audit ({_COLUMNS}) VALUES "
    f"('buried', NEW.job_id, NEW.attempts, 0, NEW.reserved_by, NEW.reason, {_WRITER})",
)


class Entry(NamedTuple):
    """One change of hands of a job's row.

    Attributes:
        what: `claim`, `retry` (a failed attempt), `release` (uncounted), `reclaim` (by a sweep), `gone`
            (deleted), `buried` (into the dead letters; a `gone` goes with it), `steal` (never allowed).
        owner: the token that the row bore before it was given up, or bears since the claim.
        writer: the account that wrote it.
        at: Unix time, by the server's clock.
    """

    what: str
    attempts: int
    crashes: int
    owner: str
    reason: str | None
    writer: str
    at: float


class Asked(NamedTuple):
    """What was asked of a job; `max_attempts` None: its queue's."""

    queue: str
    type: str
    max_attempts: int | None
    payload: str


class Audit:
    """The audit of one database."""

    def __init__(self, server: Server, database: str) -> None:
        self._server, self._database = server, database
        for statement in _SCHEMA:
            server.run(statement, (), database)

    def asked(self) -> dict[int, Asked]:
        """Every job that was committed."""
        rows = self._server.run("SELECT job, queue, type, max_attempts, payload FROM asked", (), self._database)
        return {int(job): Asked(*rest) for job, *rest in rows}

    def entries(self) -> list[tuple[int, Entry]]:
        """All changes of hands, in their order."""
        rows = self._server.run(
            "SELECT job, what, attempts, crashes, owner, reason, writer, UNIX_TIMESTAMP(at) FROM audit ORDER BY n",
            (),
            self._database,
        )
        return [(int(job), Entry(*rest[:-1], float(rest[-1]))) for job, *rest in rows]

    def effects(self) -> list[tuple[int, str]]:
        """What handlers that complete their job left: (job, token)."""
        rows = self._server.run("SELECT job, token FROM effects ORDER BY n", (), self._database)
        return [(int(job), str(token)) for job, token in rows]
