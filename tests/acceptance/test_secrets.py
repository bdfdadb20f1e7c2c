"""The database's password is seen by the daemon alone: not by programs, in no log, page or process list."""

from __future__ import annotations

from pathlib import Path

from tests.support.daemon import Qd
from tests.support.server import PASSWORD
from tests.support.waiting import wait_for


def test_a_password_from_the_environment_reaches_no_program_log_page_or_process_list(qd: Qd) -> None:
    seen = qd.folder / "seen"
    qd.write(
        database={"password": "${SHOP_DB_PW}"},
        handlers={"commands": {"look": {"argv": ["sh", "-c", f"env >{seen}.new && mv {seen}.new {seen}"]}}},
        log={"level": "debug"},
    )
    daemon = qd.start(SHOP_DB_PW=PASSWORD)
    qd.enqueue("look")
    wait_for(seen.exists, 15, "the program's end")
    variables = dict(line.partition("=")[::2] for line in seen.read_text().splitlines())
    assert "SHOP_DB_PW" not in variables and PASSWORD not in variables.values()
    assert variables["QD_JOB_TYPE"] == "look"
    told = Path(f"/proc/{daemon.process.pid}/cmdline").read_text() + daemon.said() + daemon.get("/metrics")[1]
    assert PASSWORD not in told
