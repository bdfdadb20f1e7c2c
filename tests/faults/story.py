"""All that is known of one job, and which promises were broken with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.faults.audit import Asked, Entry
from tests.faults.excuses import Excuses
from tests.faults.jobs import QUEUES


class Line(NamedTuple):
    """What a handler wrote down: see handlers.py."""

    what: str
    attempt: int
    token: str
    at: float
    pid: int


UNCOUNTED = ("snooze", "cut")
"""Ends of a run that give its attempt back."""


@dataclass
class Story:
    """One job's.

    Attributes:
        effects: the tokens of those who completed it in their own transaction.
    """

    asked: Asked
    excuses: Excuses
    lines: list[Line] = field(default_factory=list)
    row: list[Entry] = field(default_factory=list)
    effects: list[str] = field(default_factory=list)

    @property
    def most(self) -> int:
        """Attempts that it may have."""
        return self.asked.max_attempts or QUEUES[self.asked.queue]

    @property
    def buried(self) -> Entry | None:
        """Its move to the dead letters."""
        return next((entry for entry in self.row if entry.what == "buried"), None)

    @property
    def starts(self) -> list[Line]:
        return [line for line in self.lines if line.what == "start"]

    def notes(self, token: str) -> set[str]:
        """What was written down in the name of one claim."""
        return {line.what for line in self.lines if line.token == token}

    def claims(self) -> dict[str, Entry]:
        return {entry.owner: entry for entry in self.row if entry.what == "claim"}

    def lost(self) -> dict[str, Entry]:
        """The claims whose lease was lost, and how it went."""
        return {
            entry.owner: entry
            for entry in self.row
            if entry.what == "reclaim" or (entry.what == "buried" and entry.reason == "lost")
        }

    def never_started(self) -> bool:
        """It is a dead letter, and no handler ever saw it."""
        return self.buried is not None and not self.starts

    def second_starts(self) -> list[str]:
        """Why each start after the first came about; `unexplained` is a broken promise."""
        starts = self.starts
        return [self._cause(before.token) for before in starts[: len(starts) - 1]]

    def _cause(self, token: str) -> str:
        notes = self.notes(token)
        for note, cause in (("fail", "it failed"), ("snooze", "it snoozed")):
            if note in notes:
                return cause
        if "cut" in notes or self._given_back(token):
            return "a stop interrupted it"
        claim, lost = self.claims().get(token), self.lost().get(token)
        if claim and lost:
            cut = self.excuses.lost_between(token, claim.at, lost.at)
            if cut is not None:
                return f"its daemon was {cut.why}"
        if self._ended_itself(token):
            return "its child ended, as its daemon was frozen"
        return "its process died of it" if "die" in notes else "unexplained"

    def _ended_itself(self, token: str) -> bool:
        """Whether a child that hadn't heard of its frozen daemon for most of a lease has ended itself: a crash."""
        claim = self.claims().get(token)
        for entry in self.row:
            crashed = entry.reason == "crash" if entry.what == "buried" else entry.what == "retry" and entry.crashes
            if claim and entry.owner == token and crashed:
                cut = self.excuses.lost_between(token, claim.at, entry.at)
                return cut is not None and cut.why == "frozen"
        return False

    # ------------------------------------------------------------------ broken promises

    def wrongs(self) -> list[str]:
        """Which promises were broken, in words."""
        return [*self._wrongs_of_row(), *self._wrongs_of_runs(), *self._wrongs_of_end()]

    def _wrongs_of_row(self) -> Iterator[str]:
        """The row, from hand to hand."""
        holder: Entry | None = None
        tokens: set[str] = set()
        over = False
        for entry in self.row:
            if entry.what == "gone" and over:
                continue  # the other half of its burial
            if over:
                yield f"its row was seen again after its end ({entry.what})"
            elif entry.what in ("claim", "steal"):
                if entry.what == "steal" or holder is not None:
                    yield "it was claimed while another held it"
                if entry.owner in tokens:
                    yield "a token was used twice"
                tokens.add(entry.owner)
                holder = entry
            elif holder is None or entry.owner != holder.owner:
                yield f"it was settled ({entry.what}) by one who didn't hold it"
            else:
                yield from self._wrongs_of_settlement(holder, entry)
                holder = None
            over = over or entry.what in ("gone", "buried")
            if entry.attempts > self.most:
                yield "more attempts were counted than it has"

    def _wrongs_of_settlement(self, claim: Entry, entry: Entry) -> Iterator[str]:
        notes = self.notes(claim.owner)
        if entry.what == "reclaim" or entry.reason == "lost":
            if self.excuses.lost_between(claim.owner, claim.at, entry.at) is None and "die" not in notes:
                yield "its lease was taken from a daemon that lived"
            return
        if entry.writer != claim.writer:
            yield f"it was settled ({entry.what}) by another than its holder"
        if entry.what == "gone" and "end" not in notes and claim.owner not in self.effects:
            yield "it was finished by one who had not run it to its end"
        if entry.what == "retry" and not notes & {"fail", "die", "cut"} and not self._ended_itself(claim.owner):
            yield "an attempt was counted as failed that had not failed"
        if entry.what == "release" and "start" in notes and not self._uncounted(claim.owner):
            yield "its run was given back uncounted though it was not cut off"

    def _wrongs_of_runs(self) -> Iterator[str]:
        starts, claims, lost = self.starts, self.claims(), self.lost()
        tokens = [line.token for line in starts]
        if len(set(tokens)) != len(tokens):
            yield "one claim was started twice"
        free = sum("snooze" in self.notes(token) if self.most == 1 else self._uncounted(token) for token in tokens)
        if len(starts) - free > self.most:
            yield "it was started more often than it may be"
        if "unexplained" in self.second_starts():
            yield "it was started again though its run was neither cut off nor failed"
        for line in starts:
            if line.token not in claims:
                yield "it was started without a claim that stands"
            elif line.token in lost and line.at > lost[line.token].at + 0.1 and not self._excused(line.token):
                yield "it was started on a lease that was lost"

    def _excused(self, token: str) -> bool:
        return self.excuses.lost_between(token, self.claims()[token].at, self.lost()[token].at) is not None

    def _uncounted(self, token: str) -> bool:
        """Whether a run's attempt may be given back: it asked for it, or a stop cut it off, maybe without a word."""
        return bool(self.notes(token) & set(UNCOUNTED)) or self.excuses.stopped(token)

    def _given_back(self, token: str) -> bool:
        given = any(entry.what == "release" and entry.owner == token for entry in self.row)
        return given and self.excuses.stopped(token)

    def _wrongs_of_end(self) -> Iterator[str]:
        gone = sum(entry.what == "gone" for entry in self.row)
        if gone != 1:
            yield "it was lost: its row is nowhere" if gone == 0 else f"its row was deleted {gone} times"
        if len(self.effects) > 1:
            yield f"its effect was committed {len(self.effects)} times"
        if (buried := self.buried) is not None:
            yield from self._wrongs_of_dead_letter(buried)
        elif self.asked.type == "work_complete" and len(self.effects) != 1:
            yield "it was finished without its effect"

    def _wrongs_of_dead_letter(self, buried: Entry) -> Iterator[str]:
        notes = self.notes(buried.owner)
        wanted = {"error": {"fail"}, "crash": {"die"}, "interrupted": {"cut"}, "timeout": {"cut", "fail", "die"}}
        as_it_ended = bool(notes & wanted.get(buried.reason or "", set()))
        as_it_ended = as_it_ended or (buried.reason == "crash" and self._ended_itself(buried.owner))
        if buried.reason == "interrupted":
            as_it_ended = as_it_ended or self.excuses.stopped(buried.owner)
        if buried.reason != "lost" and not as_it_ended:
            yield f"a dead letter of reason {buried.reason}, which is not how it ended"
        if self.effects:
            yield "a dead letter though its effect was committed"
        if self.never_started():
            claim = self.claims()[buried.owner]
            if not self.excuses.in_the_moment(buried.owner, claim.at, quarantined=claim.crashes > 0):
                yield "a dead letter though it was never started"
