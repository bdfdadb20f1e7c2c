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
from tests.support.upgrading import MIGRATION, next_files
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
STEPS = blocks(ROOT / "docs" / "operations.md")
NAMED = """find /etc /run /root /usr/local /var/lib -maxdepth 4 -path /run/systemd -prune -o -name 'qd*' -print | sort
getent passwd qd || true; getent group qd || true"""
"""What there is that bears qd's name."""
NEXT = "/opt/next"
"""Of the next version, the checkout: this one can't be written to."""
SOURCES = "Makefile LICENSE README.md setup.py pyproject.toml .ci config docs grafana qd systemd"


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
        return self.shell.runs(self.step(words))

    def step(self, words: str) -> str:
        """The step in which these words stand, with the ports that are free here."""
        (step,) = [step for step in STEPS if words in step]
        step = step.replace("$a http: {listen", "s/^http: .*/http: {listen")
        step = step.replace('"127.0.0.1:9834"}', f'"127.0.0.1:{self.ports[1]}"}}/')
        return step.replace("127.0.0.1:9833/", f"127.0.0.1:{self.ports[0]}/")

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


def upgraded(reader: Reader) -> str:
    """The next version comes, by the block of "Upgrade": what `make install` said.

    The older daemons go on until each is restarted, the new program's look at everything is clean, and nothing is
    left to be migrated.
    """
    before = [reader.machine.value(name, "MainPID") for name in reader.active()]
    reader.machine.sh(f"mkdir {NEXT} && cd {CHECKOUT} && cp -R {SOURCES} {NEXT}")
    for name, text in next_files().items():
        reader.machine.write(f"{NEXT}/{name}", text)
    install, migrate, rest = reader.step("migrate --status\n").partition("qd --config /root")
    said = reader.shell.runs(f"cd {NEXT}\n{install}")
    assert before == [reader.machine.value(name, "MainPID") for name in reader.active()]
    mails = '{"to": 8}'
    reader.shell.runs(f"(cd /var/lib/qd && qd enqueue send_email '{mails}')")
    left = "SELECT (SELECT COUNT(*) FROM qd_jobs WHERE type = 'send_email') + (SELECT COUNT(*) FROM qd_failed_jobs)"
    wait_for(lambda: reader.server.run(left, database="qd") == [(0,)], 15, "the mail to be sent")
    then = reader.shell.runs(migrate + rest)
    assert f"pending          {MIGRATION}\n" in then and f"applied {MIGRATION}\n" in then, then
    assert "FAIL" not in then and "warn" not in then, then
    after = [reader.machine.value(name, "MainPID") for name in reader.active()]
    assert len(after) == 2 and not set(before) & set(after)
    return said


def test_the_installation_works_word_for_word_and_a_second_one_changes_nothing_of_the_users(
    bare: Machine, own_mariadb: Callable[..., MariaDB]
) -> None:
    reader, before = Reader(bare, own_mariadb()), bare.sh(NAMED)
    assert "qd: next: the password into /etc/credstore/qd.db-password" in reader.shell.runs(STEPS[0])
    reader.edits()
    reader.runs("install -m 600 qd.password")
    reader.runs("rm grants.sql")
    reader.runs("shop_jobs.py")
    said = reader.runs("systemctl enable --now qd\n")
    assert "FAIL" not in said and "warn" not in said, said
    assert 'Status: "ready, 0 jobs running, 0 waiting"' in said and "event=daemon.ready" in said
    wait_for(reader.succeeded, 15, "the mail to be sent")
    said = reader.runs("qd failed list")
    assert 'outcome="succeeded",queue="default"} 1.0\n' in said, said
    assert bare.sh("cat /root/qd-accounts/grants.sql 2>&1 || true").endswith("No such file or directory\n")
    reader.runs("qd@mails")
    wait_for(lambda: reader.active() == ["qd.service", "qd@mails.service"], 20, "both daemons")
    reader.runs("jobs.conf.example")
    assert reader.active() == ["qd.service", "qd@mails.service"]
    bare.sh("echo 'bad: [' >>/etc/qd/mails.yaml; ! systemctl restart qd@mails; sed -i '$d' /etc/qd/mails.yaml")
    wait_for(lambda: bare.value("qd@mails", "ActiveState") == "failed", 20, "one that has failed")

    mine = bare.sh("cat /etc/qd/qd.yaml /etc/credstore/* /etc/systemd/system/qd.service.d/jobs.conf")
    again = upgraded(reader)
    assert "qd: upgraded " in again and "systemctl restart qd.service qd@mails.service" in again
    assert "migrate --status" in again.partition("systemctl restart")[0], "the schema comes before the daemons"
    assert "credstore" not in again and bare.sh("stat -c '%a %G' /etc/qd/*.yaml") == 2 * "640 qd\n"
    assert mine == bare.sh("cat /etc/qd/qd.yaml /etc/credstore/* /etc/systemd/system/qd.service.d/jobs.conf")

    refused = bare.run("make", "-C", CHECKOUT, "uninstall", check=False)
    assert (
        refused.returncode != 0 and "qd.service qd@mails.service still run: systemctl stop qd.target" in refused.stderr
    )
    reader.shell.runs(f"cd {NEXT}")
    timers = ("qd.timer", "qd@nightly.timer")
    for name in timers:
        bare.write(f"/etc/systemd/system/{name}", "[Timer]\nOnCalendar=yearly\n[Install]\nWantedBy=timers.target\n")
    bare.run("systemctl", "enable", *timers)
    bare.sh("useradd -r caller; usermod -aG qd caller; echo >$(echo /opt/qd/lib/python*/site-packages)/shop.py")
    assert "yours and kept: /opt/qd with " in reader.runs("make uninstall")
    assert mine == bare.sh("cat /etc/qd/qd.yaml /etc/credstore/* /etc/systemd/system/qd.service.d/jobs.conf")
    assert (
        bare.sh("ls -d /opt/qd /usr/local/bin/qd /usr/local/lib/systemd/system/qd* 2>/dev/null || true") == "/opt/qd\n"
    )
    assert bare.sh("find /etc/systemd/system -xtype l -name 'qd*'") == "", "links that lead nowhere"
    units = bare.run("systemctl", "list-unit-files", "--plain", "--no-legend", "qd*").stdout.splitlines()
    assert [line.split()[:2] for line in units] == [[name, "enabled"] for name in timers], "the user's own"

    bare.run("systemctl", "disable", *timers)
    bare.run("rm", *(f"/etc/systemd/system/{name}" for name in timers))
    reader.runs("userdel qd")
    assert bare.sh(NAMED) == before and bare.sh("ls /opt | grep qd || true") == "", "what the page says is all of it"
    assert reader.server.run("SHOW TABLES", database="qd") == []
    assert reader.server.run("SELECT User FROM mysql.user WHERE User IN ('qd', 'qd_migrator', 'shop')") == []
