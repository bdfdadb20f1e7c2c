"""docs/operations.md, "Install under systemd", word for word on a machine with a real systemd, then what follows.

Only the addresses are changed (ports that are free here), and `mariadb` reaches the private server.
"""

from __future__ import annotations

import shutil
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from tests.support.mariadb import MariaDB, free_port
from tests.support.missing import without
from tests.support.server import ADMIN, PASSWORD, ROOT
from tests.support.shell import Shell, blocks
from tests.support.systemd import CHECKOUT, Machine, booted
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
STEPS = blocks(ROOT / "docs" / "operations.md")


@pytest.fixture
def bare() -> Iterator[Machine]:
    """A machine that has never heard of qd."""
    if shutil.which("mariadb") is None:
        without("the client `mariadb` isn't there (apt-get install mariadb-client-core)")
    yield from booted()


class Reader:
    """Somebody who follows the page.

    Attributes:
        ports: what stands for 9833 and 9834.
    """

    def __init__(self, machine: Machine, server: MariaDB) -> None:
        self.machine, self.server, self.ports = machine, server, (free_port(), free_port())
        client = f"exec {shutil.which('mariadb')} --no-defaults --host={server.host} --port={server.port}"
        machine.write(
            "/usr/local/bin/mariadb", f'#!/bin/sh\n{client} --user={ADMIN} --password={PASSWORD} "$@"\n', 0o755
        )
        self.shell = Shell(machine.enter, machine.env())
        self.shell.runs(f"cd {CHECKOUT}")

    def runs(self, words: str) -> str:
        """Runs the step in which these words stand; what it said."""
        (step,) = [step for step in STEPS if words in step]
        return self.shell.runs(step.replace("$a http: {listen", "s/^http: .*/http: {listen").replace(
            '"127.0.0.1:9834"}', f'"127.0.0.1:{self.ports[1]}"}}/'
        ))  # fmt: skip

    def edits(self) -> None:
        """What everybody has to say in their own way: where the server is, and a port that is free."""
        place = rf"\n  port: {self.server.port}"
        self.shell.runs(
            f"sed -i 's/^  user: qd$/&{place}/' /etc/qd/qd.yaml\n"
            f"echo 'http: {{listen: \"127.0.0.1:{self.ports[0]}\"}}' >>/etc/qd/qd.yaml"
        )

    def active(self) -> list[str]:
        """The daemons that run."""
        said = self.machine.run("systemctl", "list-units", "--plain", "--no-legend", "--state=active", "qd*.service")
        return [line.split()[0] for line in said.stdout.splitlines()]

    def succeeded(self) -> bool:
        """Whether the daemon's page counts a mail that was sent."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[0]}/metrics", timeout=5) as page:
            counts = [line for line in page.read().decode().splitlines() if line.startswith("qd_job_attempts_total{")]
        return any('type="send_email",outcome="succeeded"' in line and line.endswith(" 1.0") for line in counts)


def test_the_installation_works_word_for_word_and_a_second_one_changes_nothing_of_the_users(
    bare: Machine, own_mariadb: Callable[..., MariaDB]
) -> None:
    reader = Reader(bare, own_mariadb())
    assert "qd: next: the password into /etc/credstore/qd.db-password" in reader.runs("make install")
    reader.edits()
    reader.runs("qd.password /etc/credstore")
    reader.runs("migrate.yaml migrate")
    reader.runs("shop_jobs.py")
    said = reader.runs("systemctl enable --now qd\n")
    assert "FAIL" not in said and "warn" not in said, said
    assert 'Status: "ready, 0 jobs running, 0 waiting"' in said and "event=daemon.ready" in said
    wait_for(reader.succeeded, 15, "the mail to be sent")
    reader.runs("qd@mails")
    wait_for(lambda: reader.active() == ["qd.service", "qd@mails.service"], 20, "both daemons")
    reader.runs("jobs.conf.example")
    assert reader.active() == ["qd.service", "qd@mails.service"]

    mine = bare.sh("cat /etc/qd/qd.yaml /etc/credstore/* /etc/systemd/system/qd.service.d/jobs.conf")
    again = reader.shell.runs(f"cd {CHECKOUT}\n{STEPS[0]}")
    assert "qd: upgraded " in again and "systemctl restart qd.service qd@mails.service" in again
    assert "credstore" not in again and bare.sh("stat -c '%a %G' /etc/qd/*.yaml") == 2 * "640 qd\n"
    reader.shell.runs("systemctl restart qd.service qd@mails.service")
    assert reader.active() == ["qd.service", "qd@mails.service"]
    assert mine == bare.sh("cat /etc/qd/qd.yaml /etc/credstore/* /etc/systemd/system/qd.service.d/jobs.conf")

    refused = bare.run("make", "-C", CHECKOUT, "uninstall", check=False)
    assert (
        refused.returncode != 0 and "qd.service qd@mails.service still run: systemctl stop qd.target" in refused.stderr
    )
    timers = ("qd.timer", "qd@nightly.timer")
    for name in timers:
        bare.write(f"/etc/systemd/system/{name}", "[Timer]\nOnCalendar=yearly\n[Install]\nWantedBy=timers.target\n")
    bare.run("systemctl", "enable", *timers)
    assert "yours and kept: /etc/qd, " in reader.runs("make uninstall")
    assert mine == bare.sh("cat /etc/qd/qd.yaml /etc/credstore/* /etc/systemd/system/qd.service.d/jobs.conf")
    assert bare.sh("ls -d /opt/qd /usr/local/bin/qd /usr/local/lib/systemd/system/qd* 2>/dev/null || true") == ""
    assert bare.sh("find /etc/systemd/system -xtype l -name 'qd*'") == "", "links that lead nowhere"
    left = bare.run("systemctl", "list-unit-files", "--plain", "--no-legend", "qd*").stdout.splitlines()
    assert [line.split()[:2] for line in left] == [[name, "enabled"] for name in timers], "the user's own"
