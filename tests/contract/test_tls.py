"""TLS to the server: what is asked for is got, or the reason is said as one that only a person can mend."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qd.config.model import DatabaseConfig, Tls
from qd.errors import ConnectionLost, SetupWrong, StoreError
from qd.store.mysql.connection import connect
from tests.support.mariadb import MariaDB
from tests.support.proxy import FaultProxy

FLAVOURS = (False, True)
"""Of the driver: the C extension, and pure Python."""


def certificate(folder: Path, name: str, names: str) -> Path:
    """A certificate that vouches for itself, and beside it its key."""
    file = folder / f"{name}.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={name}",
    ]
    command += ["-addext", f"subjectAltName={names}", "-keyout", str(folder / f"{name}.key"), "-out", str(file)]
    subprocess.run(command, check=True, capture_output=True)
    (folder / f"{name}.key").chmod(0o644)  # the server may run as another user
    return file


class Secured:
    """A server with a certificate for 127.0.0.1, and one of a stranger."""

    def __init__(self, folder: Path, start: Callable[..., MariaDB]) -> None:
        folder.chmod(0o755)
        self.own = certificate(folder, "server", "IP:127.0.0.1")
        self.strangers = certificate(folder, "stranger", "DNS:stranger.example")
        self.server = start(f"--ssl-cert={self.own}", f"--ssl-key={self.own.with_suffix('.key')}")
        self.database = self.server.new_database()

    def config(self, mode: str, ca: object = None, **more: Any) -> DatabaseConfig:
        """Of its database, with this section `tls`."""
        tls = Tls(mode=mode, ca=None if ca is None else str(ca))  # type: ignore[arg-type]
        config = self.server.config(self.database, connect_timeout=2.0, statement_timeout=2.0)
        return config.model_copy(update={"tls": tls, **more})


@pytest.fixture
def secured(tmp_path: Path, own_mariadb: Callable[..., MariaDB]) -> Iterator[Secured]:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on this machine to make a certificate with")
    yield Secured(tmp_path, own_mariadb)


def refusal(config: DatabaseConfig, pure: bool) -> str:
    """Why the connection isn't made: one line, for a person to act on."""
    with pytest.raises(SetupWrong) as refused:
        connect(config, "test", pure=pure).discard()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_what_is_asked_for_is_got_or_refused_for_good(secured: Secured, tmp_path: Path) -> None:
    for pure in FLAVOURS:
        got(secured, pure)
        refused(secured, tmp_path, pure)


def got(secured: Secured, pure: bool) -> None:
    """Every mode speaks TLS with a server that is what it says."""
    for mode in ("preferred", "required", "verify_ca", "verify_identity"):
        ca = secured.own if mode.startswith("verify") else None
        connection = connect(secured.config(mode, ca), "test", pure=pure)
        connection.cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        assert connection.cursor.fetchone()[1], mode
        connection.discard()
    connect(secured.config("verify_ca", secured.own, host="localhost"), "test", pure=pure).discard()


def refused(secured: Secured, tmp_path: Path, pure: bool) -> None:
    """An authority that doesn't vouch for it, one that isn't there, a name that isn't its own."""
    assert refusal(secured.config("verify_identity", secured.own, host="localhost"), pure)
    for mode in ("verify_ca", "verify_identity"):
        assert "certificate" in refusal(secured.config(mode, secured.strangers), pure)
        assert "certificate" in refusal(secured.config(mode), pure), "the system's authorities don't vouch for it"
        missing = tmp_path / "none.pem"
        assert str(missing) in refusal(secured.config(mode, missing), pure)
        (tmp_path / "text.pem").write_text("no certificate")
        assert "text.pem" in refusal(secured.config(mode, tmp_path / "text.pem"), pure)


def test_a_connection_that_is_cut_in_the_middle_of_tls_is_an_outage(secured: Secured) -> None:
    for pure in FLAVOURS:
        assert losses(secured, pure) >= 2


def losses(secured: Secured, pure: bool) -> int:
    """At how many of its steps a connection was cut before one was made."""
    config, lost = secured.config("verify_ca", secured.own), 0
    while True:
        step = lost + 1
        proxy = FaultProxy(secured.server.port, lambda link, statement: "before" if link.packets == step else None)  # noqa: B023
        try:
            connect(config.model_copy(update={"port": proxy.port}), "test", pure=pure).discard()
            return lost
        except StoreError as error:
            assert isinstance(error, ConnectionLost), error
            lost += 1
        finally:
            proxy.close()
