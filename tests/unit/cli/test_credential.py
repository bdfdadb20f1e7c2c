"""The password that a service is given counts on the command line for the very file that the service runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from qd.cli import credential
from qd.cli.checks.unit import units_of
from qd.cli.checks.unit_files import Unit
from qd.cli.context import Cli
from qd.config import read_password
from tests.support.server import ROOT

UNITS = "etc/systemd/system"
DEFAULT, MAILS = "etc/credstore/qd.db-password", "etc/credstore/mails.db-password"


class Host:
    """A machine's files, with the shipped units; /etc/qd is below its root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("qd.service", "qd@.service"):
            self.write(f"{UNITS}/{name}", (ROOT / "systemd" / name).read_text())
        self.write(DEFAULT, "production\n")
        self.write(MAILS, "mails\n")

    def write(self, place: str, text: str) -> Path:
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("/etc/", f"{self.root}/etc/"))
        return path

    def password(self, place: str, text: str = "queues: {default: {}}\n") -> str | None:
        """What the command line sends to the server of this configuration, made here."""
        return read_password(Cli(str(self.write(place, text))).config.database, {})

    def drop_in(self, unit: str, *lines: str) -> None:
        self.write(f"{UNITS}/{unit}.d/own.conf", "\n".join(["[Service]", *lines, ""]))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(credential, "ROOT", tmp_path)
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    return Host(tmp_path)


@pytest.mark.parametrize("place", ["etc/qd/qd.yaml", "etc/qd/mails.yaml"])
def test_the_files_of_the_shipped_units_find_it(host: Host, place: str) -> None:
    assert host.password(place) == "production"


@pytest.mark.parametrize("place", ["srv/staging/qd.yaml", "root/mails.yaml", "etc/qd/old/qd.yaml", "etc/qd/a b.yaml"])
def test_no_other_configuration_is_sent_it(host: Host, place: str) -> None:
    host.password("etc/qd/qd.yaml")
    assert host.password(place) is None


def test_a_configuration_is_the_services_by_its_resolved_path(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    real = host.root / "etc/qd/qd.yaml"
    assert host.password("etc/qd/qd.yaml") == "production"
    monkeypatch.chdir(real.parent)
    assert read_password(Cli("../qd/qd.yaml").config.database, {}) == "production"
    link = host.root / "link.yaml"
    link.symlink_to(real)
    assert read_password(Cli(str(link)).config.database, {}) == "production"


def test_without_the_unit_there_is_nobody_whose_password_it_is(host: Host) -> None:
    (host.root / UNITS / "qd.service").unlink()
    (host.root / UNITS / "qd@.service").unlink()
    assert host.password("etc/qd/qd.yaml") is None


@pytest.mark.parametrize(
    ("lines", "password"),
    [
        (["LoadCredential=qd.db-password:/etc/credstore/mails.db-password"], "mails"),
        (["LoadCredential=", "LoadCredential=qd.db-password:/etc/credstore/%i.db-password"], "mails"),
        (["LoadCredential=qd.db-password:mails.db-password"], "mails"),
        (["LoadCredential=other:/etc/credstore/mails.db-password"], "production"),
        (["LoadCredential="], None),
        (["LoadCredential=qd.db-password:%d/else"], None),
        (["LoadCredential=qd.db-password:/etc/none"], None),
        (["LoadCredentialEncrypted=qd.db-password:/etc/credstore/mails.db-password"], None),
    ],
)
def test_an_instance_with_a_credential_of_its_own_is_never_sent_the_others(
    host: Host, lines: list[str], password: str | None
) -> None:
    host.drop_in("qd@mails.service", *lines)
    assert host.password("etc/qd/mails.yaml") == password
    assert host.password("etc/qd/qd.yaml") == "production"


def test_who_has_a_password_of_its_own_or_is_given_one_by_systemd_uses_that(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert host.password("etc/qd/qd.yaml", "database: {password: mine}\n") == "mine"
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(host.root / "none"))
    assert host.password("etc/qd/qd.yaml") is None


def test_who_may_not_read_it_has_none(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # tests may run as root, who may read all
    assert host.password("etc/qd/qd.yaml") is None


def test_it_is_for_the_file_that_was_read_whatever_its_name_leads_to_since(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.password("etc/qd/qd.yaml")
    theirs = host.write("theirs.yaml", "database: {unix_socket: /theirs}\n")
    link = host.root / "link.yaml"
    link.symlink_to(theirs)

    def swapped(path: Path, root: Path) -> list[Unit]:
        link.unlink()
        link.symlink_to(host.root / "etc/qd/qd.yaml")
        return units_of(path, root)

    monkeypatch.setattr(credential, "units_of", swapped)
    assert read_password(Cli(str(link)).config.database, {}) is None


def test_what_one_configuration_knows_of_its_database_no_other_knows(host: Host) -> None:
    """Also where neither has a section `database`."""
    text = "queues: {default: {}}\n"
    ours, theirs = (Cli(str(host.write(place, text))) for place in ("etc/qd/qd.yaml", "srv/qd.yaml"))
    assert ours.config.database._credential is not None and theirs.config.database._credential is None
    assert ours.config.database._credential is not None and ours.config.database is not theirs.config.database
