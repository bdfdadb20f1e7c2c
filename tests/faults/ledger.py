"""What handlers wrote down and what triggers saw of the rows, held against the two promises."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.server import Server

AUDIT = (
    "CREATE TABLE audit (n BIGINT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(8), job BIGINT UNSIGNED, "
    "attempts INT, crashes INT, owner VARCHAR(255), at TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6))",
    "CREATE TRIGGER audit_delete AFTER DELETE ON qd_jobs FOR EACH ROW INSERT INTO audit "
    "(what, job, attempts, crashes, owner) VALUES ('gone', OLD.id, OLD.attempts, OLD.crashes, OLD.reserved_by)",
    "CREATE TRIGGER audit_update AFTER UPDATE ON qd_jobs FOR EACH ROW INSERT INTO audit "
    "(what, job, attempts, crashes, owner) VALUES ('update', NEW.id, NEW.attempts, NEW.crashes, NEW.reserved_by)",
    "CREATE TRIGGER audit_bury AFTER INSERT ON qd_failed_jobs FOR EACH ROW INSERT INTO audit "
    "(what, job, attempts, crashes, owner) VALUES ('buried', NEW.job_id, NEW.attempts, 0, NEW.reserved_by)",
)


AT_ITS_START = 1.0
"""Seconds from a claim's COMMIT to the handler's first line, at most, on a busy machine. A process that is
cut off within them has spent the attempt, and nobody can say whether the handler had begun."""


@dataclass(frozen=True)
class Wanted:
    """What was asked of a job."""

    max_attempts: int
    failures: int


class Line(NamedTuple):
    """What a handler wrote down."""

    what: str
    attempt: int
    token: str


@dataclass
class Story:
    """All that is known of one job.

    Attributes:
        row: what happened to its row: (what, attempts, crashes, owner).
        reason: of its dead letter, or None.
        owner_cut_off: one of its owners was killed or frozen, maybe before it could write an end.
        cut_at_its_start: the owner in whose name it was buried was cut off in the moment of the claim.
    """

    wanted: Wanted
    lines: list[Line] = field(default_factory=list)
    row: list[tuple[str, int, int, str | None]] = field(default_factory=list)
    reason: str | None = None
    cut_at_its_start: bool = False
    owner_cut_off: bool = False

    def tokens(self, what: str) -> list[str]:
        return [line.token for line in self.lines if line.what == what]

    def wrongs(self, *, calm: bool) -> list[str]:
        """Which promises were broken, in words.

        Args:
            calm: no daemon was harmed: then there is no excuse for a second run either.
        """
        starts, ends = self.tokens("start"), self.tokens("end")
        gone = [owner for what, _, _, owner in self.row if what == "gone"]
        found = {
            f"its row was deleted {len(gone)} times": len(gone) != 1,
            "one claim was started twice": len(set(starts)) != len(starts),
            "it was started more often than it may be": len(starts) > self.wanted.max_attempts,
            "more attempts were counted than it has": max(row[1] for row in self.row) > self.wanted.max_attempts,
        }
        if self.reason is None:
            found["it was finished by one who had not run it to its end"] = bool(gone) and gone[0] not in ends
        else:
            found |= self._wrongs_of_dead_letter()
        if calm:
            found |= {
                "it was run again after its end": len(ends) > 1,
                "a crash was counted": any(crashes for _, _, crashes, _ in self.row),
                "it became a dead letter without having failed": self.reason not in (None, "error"),
            }
        return [wrong for wrong, broken in found.items() if broken]

    def _wrongs_of_dead_letter(self) -> dict[str, bool]:
        owner = next((row[3] for row in self.row if row[0] == "buried"), None)
        failed = owner in self.tokens("fail")
        return {
            f"dead letter of reason {self.reason}, but it failed": failed
            and self.reason != "error"
            and not (self.reason == "lost" and self.owner_cut_off),
            "dead letter of reason error, but it didn't fail": not failed and self.reason == "error",
            "a dead letter though it was never started": not self.tokens("start") and not self.cut_at_its_start,
        }


class Ledger:
    """The jobs of one test.

    Args:
        file: what the handlers write.
    """

    def __init__(self, server: Server, database: str, file: Path) -> None:
        self._server, self._database, self._file = server, database, file
        self.wanted: dict[int, Wanted] = {}
        self.cut_off: list[tuple[int, float]] = []
        """Pids of daemons that were killed or frozen, and when (Unix time)."""
        for statement in AUDIT:
            server.run(statement, (), database)

    def wrongs(self, *, calm: bool) -> dict[int, tuple[list[str], Story]]:
        """The jobs with which something is wrong."""
        stories = self.stories()
        told = {job: (story.wrongs(calm=calm), story) for job, story in stories.items()}
        return {job: (wrongs, story) for job, (wrongs, story) in told.items() if wrongs}

    def stories(self) -> dict[int, Story]:
        """Every job's; call it once all are settled."""
        stories: dict[int, Story] = {job: Story(wanted) for job, wanted in self.wanted.items()}
        for text in self._file.read_text().splitlines():
            job, what, attempt, token = text.split()
            stories[int(job)].lines.append(Line(what, int(attempt), token))
        rows = self._sql("SELECT job, UNIX_TIMESTAMP(at), what, attempts, crashes, owner FROM audit ORDER BY n")
        for job, at, *row in (row for row in rows if row[0] in stories):
            stories[job].row.append(tuple(row))
            moments = [when for pid, when in self.cut_off if f":{pid}:" in (row[3] or "")]
            stories[job].owner_cut_off |= bool(moments)
            in_the_moment = any(float(at) <= when + 0.1 <= float(at) + AT_ITS_START for when in moments)
            stories[job].cut_at_its_start |= row[0] == "update" and in_the_moment
        dead = self._sql("SELECT job_id, reason FROM qd_failed_jobs")
        for job, reason in dead:
            stories[job].reason = str(reason)
        assert max(Counter(job for job, _ in dead).values(), default=1) == 1, "one job, two dead letters"
        return stories

    def _sql(self, sql: str) -> list[tuple[Any, ...]]:
        return self._server.run(sql, (), self._database)
