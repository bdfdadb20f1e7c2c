"""A module of handlers that changes on the disk under a daemon with child processes."""

from __future__ import annotations

import os
import signal

from tests.acceptance.processes import HANDLERS, children, in_processes
from tests.support.daemon import Daemon, Qd
from tests.support.waiting import wait_for

SHOP = f"import qd\nfrom {HANDLERS} import nap, note\n"
PACK = """
@qd.handler("pack")
def pack(job):
    note(job, "end")
"""


def deployed(qd: Qd, text: str) -> None:
    """Puts the module in place as a whole; what was compiled of the last one doesn't count."""
    new = qd.folder / "new_shop"
    new.write_text(text)
    new.replace(qd.folder / "shop.py")


def a_shop(qd: Qd) -> Daemon:
    in_processes(qd, threads=1)
    qd.write(handlers={"modules": ["shop"]})
    deployed(qd, SHOP + PACK)
    daemon = qd.start(PYTHONDONTWRITEBYTECODE="1")
    wait_for(lambda: len(children(daemon)) == 1, 30, "its child")
    return daemon


def renewed(qd: Qd, daemon: Daemon) -> None:
    """Its child is replaced by one that has the code of now."""
    (old,) = children(daemon)
    os.kill(old, signal.SIGKILL)
    wait_for(lambda: old not in children(daemon), 20, "the child's end")


def warnings(daemon: Daemon) -> list[str]:
    return [line for line in daemon.lines("daemon.problem_seen") if 'where="handler pack"' in line]


def test_a_handler_that_a_deploy_takes_away_and_brings_back_runs_again_without_a_restart(qd: Qd) -> None:
    daemon = a_shop(qd)
    (first,) = qd.enqueue("pack")
    wait_for(lambda: qd.ran("end") == [first], 30, "the job before the deploy")
    deployed(qd, SHOP)
    renewed(qd, daemon)
    (job,) = qd.enqueue("pack")
    (said,) = wait_for(lambda: warnings(daemon), 30, "the warning")
    assert "restart qd" in said
    (other,) = qd.enqueue("nap", seconds=0)
    wait_for(lambda: qd.ran("end") == [first, other], 30, "the other job, which its child knows")
    assert qd.jobs("attempts = 0 AND reserved_by IS NULL") == 1
    deployed(qd, SHOP + PACK)
    wait_for(lambda: qd.ran("end") == [first, other, job], 60, "the job, once its handler is back")
    assert len(warnings(daemon)) == 1


def test_a_daemon_whose_children_can_not_start_is_not_ready_and_says_why(qd: Qd) -> None:
    daemon = a_shop(qd)
    assert daemon.get("/readyz")[0] == 200
    deployed(qd, SHOP + "import half_of_the_deploy\n")
    qd.enqueue("poison", how="exit")
    wait_for(lambda: daemon.get("/readyz")[0] == 503, 30, "not to be ready")
    said = daemon.get("/readyz")[1]
    assert "no child process: shop can't be imported" in said and "shop.py:3" in said and "half_of_the_deploy" in said
    deployed(qd, SHOP)
    wait_for(lambda: daemon.get("/readyz")[0] == 200, 30, "to be ready again")
