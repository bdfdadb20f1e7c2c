"""A rolling upgrade: the next version migrates under the running one, both work side by side, and the
older ends only once the schema no longer suits it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import free_port
from tests.support.server import PASSWORD, ROOT
from tests.support.waiting import wait_for

EXPAND = """-- What the next version adds, and the older needn't know.
-- compatible_from: 1
ALTER TABLE qd_jobs ADD COLUMN cost INT NOT NULL DEFAULT 1;
"""


def next_version(folder: Path) -> Path:
    """A copy of the package that is one schema further; where it lies."""
    package = folder / "next" / "qd"
    shutil.copytree(ROOT / "qd", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "store/migrations/mysql/0002_cost.sql").write_text(EXPAND)
    schema = package / "store/schema.py"
    text = schema.read_text()
    assert "\nSCHEMA_VERSION = 1\n" in text
    schema.write_text(text.replace("\nSCHEMA_VERSION = 1\n", "\nSCHEMA_VERSION = 2\n"))
    return package.parent


def migrate(qd: Qd, path: str) -> str:
    """Runs that version's `qd migrate` with the migrator's account; what it printed."""
    daemons = {**qd.config["database"]}
    qd.write(database={"user": qd.server.prefix + "qd_migrator", "password": PASSWORD})
    argv = [sys.executable, "-m", "qd", "--config", str(qd.file), "migrate"]
    done = subprocess.run(
        argv, capture_output=True, text=True, cwd=qd.folder, env={**os.environ, "PYTHONPATH": path}, check=True
    )
    qd.write(database=daemons)
    return done.stdout


def claimed(daemon: Daemon, port: int) -> float:
    """How many jobs it has claimed."""
    lines = daemon.get("/metrics", port)[1].splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("qd_jobs_claimed_total{"))


def test_the_next_version_migrates_under_the_running_one_and_both_work_side_by_side(qd: Qd) -> None:
    path = os.pathsep.join([str(next_version(qd.folder)), str(ROOT)])
    first = qd.enqueue("nap", 100, seconds=0.02)
    old, old_port = qd.start(), qd.port
    wait_for(lambda: qd.ran("end"), 20, "the older version to work")
    assert "0002_cost" in migrate(qd, path)
    new_port = free_port()
    qd.write(http={"listen": f"127.0.0.1:{new_port}"})
    new = qd.start(PYTHONPATH=path)
    jobs = [*first, *qd.enqueue("nap", 100, seconds=0.05)]
    wait_for(lambda: qd.jobs() == 0, 60, "all jobs to be done")
    assert sorted(qd.ran("end")) == sorted(jobs)
    assert claimed(old, old_port) + claimed(new, new_port) == len(jobs)
    assert claimed(new, new_port) > 0
    assert old.get("/readyz", old_port)[0] == new.get("/readyz", new_port)[0] == 200
    qd.sql("UPDATE qd_schema SET compatible_from = 2")  # as the contracting migration after it would
    assert old.wait_exit(30) == 78
    assert new.alive() and new.stop() == 0
