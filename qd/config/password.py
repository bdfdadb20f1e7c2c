"""The database's password, from wherever the configuration has it.

May import: the pure modules and the model. Owns: the name of the systemd credential.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from qd.config.model import DatabaseConfig
from qd.errors import ConfigError

CREDENTIAL = "qd.db-password"
"""The systemd credential (LoadCredential=) that counts where the configuration names no password."""

_AT_THE_START = "a service gets it at its start only: once it is in /etc/credstore, `systemctl restart` (no reload)"
_NO_SERVICE = "CREDENTIALS_DIRECTORY isn't set"
_LONGEST = 65536


@dataclass(frozen=True)
class Place:
    """Where a password is.

    Attributes:
        told: for people.
        file: that holds it; None: the configuration itself.
        intro: how a complaint about the file begins.
    """

    told: str
    file: Path | None = None
    intro: str = ""


def read_password(database: DatabaseConfig, environ: Mapping[str, str] = os.environ) -> str | None:
    """The password, from its place.

    A file's one line break at its end is dropped; all else counts, blanks too.

    Args:
        environ: where $CREDENTIALS_DIRECTORY is looked up.

    Returns:
        None where there is none: the server may trust the socket's user.

    Raises:
        ConfigError: the file can't be read, is empty, or is not text.
    """
    if database._known is not None:
        return database._known
    place = password_place(database, environ)
    if place is None:
        return None
    return str(database.password) if place.file is None else _content(place.file, database, place.intro)


def password_place(database: DatabaseConfig, environ: Mapping[str, str] = os.environ) -> Place | None:
    """`password`, else `password_file`, else the systemd credential of this process, else that of the service."""
    if database.driver == "sqlite":
        return None
    if database.password is not None:
        return Place("from database.password")
    if database.password_file is not None:
        return Place(f"from {database.password_file} (database.password_file)", Path(database.password_file))
    folder = environ.get("CREDENTIALS_DIRECTORY")
    file = Path(folder) / CREDENTIAL if folder else database._credential
    if file is None or not os.path.lexists(file):
        return None
    return Place(f"from {file}, the systemd credential {CREDENTIAL}", file, f"the systemd credential {CREDENTIAL}: ")


def why_none(database: DatabaseConfig, environ: Mapping[str, str] = os.environ) -> str | None:
    """Where a password was looked for in vain; None: there is one."""
    if password_place(database, environ) is not None:
        return None
    folder = environ.get("CREDENTIALS_DIRECTORY") or database._handed
    place = f"there is none in CREDENTIALS_DIRECTORY, {folder}; {_AT_THE_START}" if folder else _NO_SERVICE
    return (
        "no password is configured, neither database.password nor database.password_file, "
        f"nor did a systemd credential {CREDENTIAL} come: {place}"
    )


def _at_once(file: str, flags: int) -> int:
    """Opens; a FIFO without a writer keeps nobody."""
    return os.open(file, flags | os.O_NONBLOCK)


def _content(file: Path, database: DatabaseConfig, intro: str) -> str:
    def refuse(reason: str) -> ConfigError:
        return ConfigError([database._origin.problem(("database", "password_file"), f"{intro}{file} {reason}")])

    try:
        with open(file, "rb", opener=_at_once) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):  # it is read anew for each connection
                raise refuse("is no regular file")
            raw = stream.read(_LONGEST + 1)
    except OSError as error:
        raise refuse(f"can't be read: {error.strerror}") from None
    if len(raw) > _LONGEST:
        raise refuse("is too large for a password")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise refuse("is not UTF-8 text") from None
    text = text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
    if not text or "\0" in text:
        raise refuse("holds no password" if not text else "holds a NUL, which no password can")
    return text
