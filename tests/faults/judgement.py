"""What came of a campaign: which promises were broken, and the numbers for a reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.faults.audit import Entry
from tests.faults.campaign import Campaign
from tests.faults.counters import disagreements
from tests.faults.fleet import Fleet
from tests.faults.harm import Harm
from tests.faults.ledger import count, shared_tokens
from tests.faults.story import Story


class Judgement:
    """Reads the ledger once all is settled.

    Attributes:
        stories: of all jobs.
        broken: each broken promise, in words.
    """

    def __init__(self, fleet: Fleet, harm: Harm | None = None) -> None:
        fleet.excuse_deaths()
        self._harm = harm
        self.stories = fleet.ledger.stories()
        self.wrongs = {job: wrongs for job, story in self.stories.items() if (wrongs := story.wrongs())}
        self.counted = count(self.stories)
        self.broken = [*self._broken(fleet)]

    def _broken(self, fleet: Fleet) -> Iterator[str]:
        for job, wrongs in sorted(self.wrongs.items()):
            yield f"job {job}: {'; '.join(wrongs)}\n{told(self.stories[job])}"
        for token in shared_tokens(self.stories):
            yield f"token {token} was used twice"
        for pid, status in fleet.unexplained_deaths():
            yield f"daemon {pid} ended by itself with status {status}"
        yield from disagreements(fleet.members[0], self.stories)
        for trouble in self._harm.troubles if self._harm else []:
            yield f"the test itself failed: {trouble}"

    def longest_wait(self) -> float:
        """Seconds from a server's return to the next claim, the longest of all; 0.0: it was never away.

        Only of returns that were followed by a claim before the next outage.
        """
        claims = sorted(entry.at for story in self.stories.values() for entry in story.row if entry.what == "claim")
        outages = self._harm.outages if self._harm else []
        begins = sorted(outage.begin for outage in outages)
        waits = [0.0]
        for end in (outage.end for outage in outages):
            claim = next((at for at in claims if at >= end), end)
            if not any(end <= begin <= claim for begin in begins):
                waits.append(claim - end)
        return max(waits)

    def printed(self) -> str:
        """The ledger, to be read."""
        counted = self.counted
        lines = [
            f"jobs            {counted['jobs']}",
            f"starts          {counted['handler: start']}  (ends {counted['handler: end']}, failures "
            f"{counted['handler: fail']}, interrupted {counted['handler: cut']}, snoozed {counted['handler: snooze']}, "
            f"died {counted['handler: die']}, told that the lease was lost {counted['handler: fenced']})",
            f"claims          {counted['row: claim']}  (given back uncounted {counted['row: release']}, retried "
            f"{counted['row: retry']}, taken back by a sweep {counted['row: reclaim']})",
            f"finished        {counted['row: gone'] - counted['row: buried']}",
            f"dead letters    {_listed(counted, 'dead letter: ')}",
            f"second starts   {_listed(counted, 'second start: ')}",
            f"never started   {counted['never started']}  (their daemons were cut off before the first line)",
            f"lost            {self._that('it was lost')}",
            f"settled twice   {self._that('its row was deleted') + self._that('its row was seen again')}",
            f"broken promises {len(self.broken)}",
        ]
        if self._harm:
            lines += [
                f"harms           {sum(self._harm.done.values())}: {_listed(self._harm.done, '')}",
                f"outages         {len(self._harm.outages)}, longest wait for a claim {self.longest_wait():.1f} s",
            ]
        return "\n".join(lines)

    def _that(self, beginning: str) -> int:
        return sum(any(wrong.startswith(beginning) for wrong in wrongs) for wrongs in self.wrongs.values())


def judged(campaign: Campaign) -> Judgement:
    """Runs a campaign, reads its ledger, and prints it."""
    campaign.run()
    judgement = Judgement(campaign.fleet, campaign.harm)
    print(judgement.printed())
    return judgement


def told(story: Story) -> str:
    """One job's story in the order of the clock: seconds since its first claim, and what happened."""
    lines = [(line.at, f"handler {line.what}, attempt {line.attempt}, {line.token}") for line in story.lines]
    rows = [(entry.at, f"row     {_of_row(entry)}, by {entry.writer}, {entry.owner}") for entry in story.row]
    pids = {token.split(":")[1] for token in story.claims()}
    cut = [one for one in story.excuses.cut_off if str(one.pid) in pids]
    cuts = [(one.begin, f"daemon  {one.pid} {one.why}, for {one.end - one.begin:.1f} s") for one in cut]
    asked = f"    {story.asked.type} in {story.asked.queue}, {story.most} attempts, {story.asked.payload}"
    events = sorted(lines + rows + cuts, key=lambda event: event[0])
    began = min((at for at, _ in lines + rows), default=0.0)
    return "\n".join([asked, *(f"    {at - began:+9.3f} {text}" for at, text in events)])


def _of_row(entry: Entry) -> str:
    reason = f" ({entry.reason})" if entry.reason else ""
    return f"{entry.what}{reason}, attempts {entry.attempts}, crashes {entry.crashes}"


def _listed(counted: Counter[str], prefix: str) -> str:
    found = sorted((name.removeprefix(prefix), n) for name, n in counted.items() if name.startswith(prefix))
    return ", ".join(f"{name} {n}" for name, n in found) or "none"
