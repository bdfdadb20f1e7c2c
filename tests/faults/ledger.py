"""What handlers wrote down and what triggers saw of the rows, held against the promises."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.faults.audit import Audit
from tests.faults.excuses import Excuses
from tests.faults.story import Line, Story
from tests.support.server import Server


class Ledger:
    """The jobs of one database.

    Args:
        file: what the handlers write.

    Attributes:
        excuses: what was done to daemons.
    """

    def __init__(self, server: Server, database: str, file: Path) -> None:
        self.audit, self.file = Audit(server, database), file
        self.excuses = Excuses()

    def stories(self) -> dict[int, Story]:
        """Every job's; call it once all are settled."""
        stories = {job: Story(asked, self.excuses) for job, asked in self.audit.asked().items()}
        for job, line in self.lines():
            stories[job].lines.append(line)
        for story in stories.values():
            story.lines.sort(key=lambda line: line.at)
        for job, entry in self.audit.entries():
            stories[job].row.append(entry)
        for job, token in self.audit.effects():
            stories[job].effects.append(token)
        return stories

    def lines(self) -> list[tuple[int, Line]]:
        """What the handlers wrote down, so far."""
        texts = self.file.read_text().splitlines() if self.file.exists() else []
        return [_line(*text.split()) for text in texts]

    def wrongs(self) -> dict[int, tuple[list[str], Story]]:
        """The jobs with which a promise was broken."""
        told = {job: (story.wrongs(), story) for job, story in self.stories().items()}
        return {job: (wrongs, story) for job, (wrongs, story) in told.items() if wrongs}

    def deaths(self) -> dict[int, float]:
        """The processes that a job ended, and when."""
        return {line.pid: line.at for _, line in self.lines() if line.what == "die"}


def shared_tokens(stories: dict[int, Story]) -> list[str]:
    """Tokens that more than one claim bore: those of one claim are of one queue and one moment."""
    seen: dict[str, list[tuple[str, float]]] = {}
    for story in stories.values():
        for token, claim in story.claims().items():
            seen.setdefault(token, []).append((story.asked.queue, claim.at))
    return [token for token, claims in seen.items() if len({queue for queue, _ in claims}) > 1]


def count(stories: dict[int, Story]) -> Counter[str]:
    """How many of everything."""
    counted: Counter[str] = Counter()
    for story in stories.values():
        counted["jobs"] += 1
        counted.update(f"handler: {line.what}" for line in story.lines)
        counted.update(f"row: {entry.what}" for entry in story.row)
        counted.update(f"second start: {cause}" for cause in story.second_starts())
        if (buried := story.buried) is not None:
            counted[f"dead letter: {buried.reason}"] += 1
            counted["never started"] += story.never_started()
    return counted


def _line(job: str, what: str, attempt: str, token: str, at: str, pid: str) -> tuple[int, Line]:
    return int(job), Line(what, int(attempt), token, float(at), int(pid))
