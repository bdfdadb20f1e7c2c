"""`make chaos`: minutes of everything at once, with a line every ten seconds and the ledger at the end."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from qd.clock import monotonic
from tests.faults.campaign import Campaign, Plan
from tests.faults.fleet import Fleet
from tests.faults.harm import AT_DAEMONS, AT_THE_DATABASE
from tests.faults.judgement import Judgement
from tests.support.mariadb import new_server
from tests.support.server import ROOT, ServerMissing

KINDS = (*AT_THE_DATABASE, "answer_to_commit_lost", *AT_DAEMONS, "daemon_killed", "daemon_frozen")

EVERY = 10.0
"""Seconds from one line to the next."""

KEPT = ROOT / "var" / "chaos"

SHOWN = 20
"""Broken promises that are printed in full."""

JOBS_A_MINUTE = 2_000
"""What three daemons get done in the midst of it on two cores; with more it lasts longer than it was asked to."""


class Teller:
    """Says now and then how it goes."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign, self._next = campaign, 0.0

    def __call__(self) -> None:
        now = monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        campaign = self._campaign
        ran = len(campaign.fleet.ledger.lines())
        kinds = campaign.harm.done
        say(f"{now - campaign.began:5.0f} s  {campaign.put} jobs put in, {ran} notes of handlers, "
            f"{sum(kinds.values())} harms of {len(kinds)} kinds, {len(campaign.harm.outages)} outages")  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Runs it; the exit status is 1 if a promise was broken."""
    asked = _arguments(argv)
    seed = asked.seed if asked.seed is not None else random.randrange(1_000_000)
    jobs = asked.jobs or round(asked.minutes * JOBS_A_MINUTE)
    say(f"chaos: {asked.minutes:g} min, and until {jobs} jobs are put in, {asked.daemons} daemons; "
        f"again with SEED={seed}")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="qd-c-", ignore_cleanup_errors=True) as folder:
        return _in_folder(Path(folder), asked, seed, jobs)


def _in_folder(folder: Path, asked: argparse.Namespace, seed: int, jobs: int) -> int:
    try:
        server = new_server()
    except ServerMissing as missing:
        say(f"chaos: {missing}")
        return 1
    fleet = None
    try:
        batches = [["auto", 50, 5][number % 3] for number in range(asked.daemons)]
        fleet = Fleet(folder, server, batches)
        fleet.until_ready()
        plan = Plan(seed, asked.minutes * 60, jobs, backlog=1000, pause=(0.2, 2.0), long=0.01)
        broken = _run(Campaign(fleet, plan, asked.harms or KINDS))
    except AssertionError as error:  # a condition that was waited for in vain
        broken = [str(error)]
    finally:
        if fleet is not None:
            fleet.end()
        server.discard()
    return _end(broken, folder, seed)


def _run(campaign: Campaign) -> list[str]:
    campaign.run(Teller(campaign))
    judgement = Judgement(campaign.fleet, campaign.harm)
    say(judgement.printed())
    return judgement.broken


def _end(broken: list[str], folder: Path, seed: int) -> int:
    for text in broken[:SHOWN]:
        say(f"BROKEN  {text}")
    if broken:
        shutil.rmtree(KEPT, ignore_errors=True)
        ignored = shutil.ignore_patterns("n[0-9]*")  # sockets
        shutil.copytree(folder, KEPT, ignore=ignored)
        say(f"{len(broken)} promises broken; logs and the handlers' notes are in {KEPT.relative_to(ROOT)}; SEED={seed}")
    else:
        say(f"every promise was kept; SEED={seed}")
    return 1 if broken else 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--daemons", type=int, default=3)
    parser.add_argument("--jobs", type=int, help=f"put in, in all; else {JOBS_A_MINUTE} a minute")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--harms", nargs="+", choices=sorted(set(KINDS)), help="only these kinds")
    return parser.parse_args(argv)


def say(text: str) -> None:
    """Prints at once, also into a pipe."""
    print(text, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # daemons and server end with it
    sys.exit(main())
