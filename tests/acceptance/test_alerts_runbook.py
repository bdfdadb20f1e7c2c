"""The runbook's commands, SQL and queries, word for word: each does what its section says, on rows in that trouble.

Only the port and the daemon's folder are changed. Where no systemd runs, systemctl and journalctl are asked whether
they know the options.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.cli_shell import policy
from tests.support.daemon import Qd
from tests.support.missing import without
from tests.support.programs import find
from tests.support.prometheus import SHIPPED, Prometheus
from tests.support.server import ROOT, ServerMissing
from tests.support.waiting import wait_for
from tests.unit.shipped.tools import assert_fits

RUNBOOK = (ROOT / "docs" / "runbook.md").read_text("utf-8")
SECTION = re.compile(r"^## (Qd\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^ *```(sh|sql|promql)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SECTIONS = dict(SECTION.findall(RUNBOOK))

STALE = (
    "INSERT INTO qd_jobs (id, queue, type, lane, attempts, reserved_by, reserved_at, available_at) VALUES "
    "(4711, 'mails', 'nap', 1, 1, 'gone:1:x:w:1', NOW(6) - INTERVAL 2 HOUR, NOW(6) - INTERVAL 1 HOUR)"
)
READY = "INSERT INTO qd_jobs (id, queue, type) VALUES (4711, 'mails', 'nap')"
DEAD = (
    "INSERT INTO qd_failed_jobs (job_id, queue, type, payload, priority, attempts, created_at, reason) VALUES "
    "(4711, 'mails', 'nap', '{}', 2, 3, NOW(6), 'error'), (4712, 'mails', 'nap', '{}', 2, 3, NOW(6), 'timeout'), "
    "(4713, 'mails', 'nap', '{}', 2, 3, NOW(6), 'rejected')"
)
MISTYPED = "INSERT INTO qd_jobs (id, queue, type) VALUES (4711, 'mial', 'nap')"
TROUBLE = {"QdStaleJobs": STALE, "QdDeadLetters": DEAD, "QdQueueWithoutWorkers": MISTYPED}
AFTERWARDS = {
    "QdStaleJobs": [(4711, "mails", 0, 1)],
    "QdDeadLetters": [(4711, "mails", 0, 0), (4712, "mails", 0, 0)],
    "QdQueueWithoutWorkers": [(4711, "mails", 0, 0)],
}
"""What stands in qd_jobs once all was done that the section says: id, queue, lane, crashes."""

pytestmark = pytest.mark.server


def blocks(language: str, text: str = RUNBOOK) -> list[str]:
    """The lines of all blocks of a language, in order."""
    found = [block for kind, block in BLOCK.findall(text) if kind == language]
    return [line.strip() for block in found for line in block.splitlines()]


@pytest.fixture
def host(qd: Qd) -> Qd:
    """A host whose daemon serves the queue `reports` alone."""
    qd.write(
        queues={"reports": policy(), "mails": policy()},
        workers=[{"queues": ["reports"], "threads": 1}],
    )
    qd.start()
    (qd.folder / "qd").write_text(f'#!/bin/sh\nexec {sys.executable} -m qd "$@"\n')
    (qd.folder / "qd").chmod(0o755)
    return qd


def run(host: Qd, command: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of the runbook in a shell on the host."""
    path = f"{host.folder}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "QD_CONFIG": str(host.file), "PYTHONPATH": str(ROOT)}
    command = command.replace("9833", str(host.port)).replace("/var/lib/qd", str(host.folder))
    return subprocess.run(
        ["bash", "-c", command], cwd=host.folder, env=env, capture_output=True, text=True, timeout=60,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("section", SECTIONS)
def test_what_a_section_says_can_be_done(section: str, host: Qd) -> None:
    host.sql(TROUBLE.get(section, READY))
    for language, block in BLOCK.findall(SECTIONS[section]):
        for line in filter(None, map(str.strip, block.splitlines())):
            if language == "sql":
                host.sql(line.rstrip(";"))
            elif language == "sh" and line.split()[0] in ("systemctl", "journalctl"):
                assert_known(line)
            elif language == "sh":
                done = run(host, line)
                assert done.returncode == 0, f"{section}: {line}: {done.returncode} {done.stdout}{done.stderr}"
    if section in AFTERWARDS:
        rows = host.sql("SELECT id, queue, lane, crashes FROM qd_jobs WHERE type = 'nap' ORDER BY id")
        assert rows == AFTERWARDS[section]
        assert host.one("SELECT COUNT(*) FROM qd_failed_jobs") == 0


def assert_known(line: str) -> None:
    """systemd's own program has no word against the options of a line."""
    try:
        program = find(line.split()[0])
    except ServerMissing as missing:
        without(missing)
    done = subprocess.run(
        ["bash", "-c", f"{program} {line.partition(' ')[2]}"], capture_output=True, text=True, timeout=60
    )
    assert not re.search("unrecognized|invalid option|Unknown command|Failed to parse", done.stderr), (
        f"{line}: {done.stderr}"
    )


def test_the_queries_give_series_on_a_prometheus_with_the_shipped_rules(
    host: Qd, prometheus: Callable[..., Prometheus]
) -> None:
    server = prometheus([f"127.0.0.1:{host.port}"], rules=[SHIPPED / "qd.rules.yml"])
    host.enqueue("nap", 20, queue="mails", seconds=0)  # nobody serves them
    queries = [query for query in blocks("promql") if query]
    assert len(queries) > 20

    def silent() -> list[str]:
        host.enqueue("nap", queue="reports", seconds=0)
        return [query for query in queries if not re.search(r"> \d+$", query) and not server.query(query)]

    wait_for(lambda: not silent(), 60, f"series for each query: {silent()}")
    for query in queries:
        assert_fits(query)
        server.query(query)
    assert server.faults() == []


def test_its_first_command_has_every_alert_lead_to_your_own_page(tmp_path: Path) -> None:
    rules = tmp_path / "qd.rules.yml"
    shutil.copy(SHIPPED / rules.name, rules)
    subprocess.run(["sh", "-c", blocks("sh")[0]], cwd=tmp_path, check=True)
    urls = re.findall(r"runbook_url: (.*)", rules.read_text("utf-8"))
    assert urls == [f"https://YOUR.WIKI/qd/runbook#{section.lower()}" for section in SECTIONS]


def test_the_examples_are_those_that_the_first_section_names() -> None:
    ids = {word for line in blocks("sh") for word in re.findall(r"\b\d{4}\b", line) if "http" not in line}
    assert ids == {"4711"}
    assert SECTIONS.keys() == set(re.findall(r"^## (.+)$", RUNBOOK, re.MULTILINE))
