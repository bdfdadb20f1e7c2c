"""The database's password, from wherever the configuration has it.

May import: the pure modules and the model. Owns: the name of the systemd credential.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from qd.config.model import DatabaseConfig
from qd.errors import ConfigError

CREDENTIAL = "qd.db-password"
"""The systemd credential (LoadCredential=) that counts where the configuration names no password."""

STORE = Path("/etc/credstore")
"""Where systemd takes it from for the shipped units; root's command line finds it there, others may not look."""

_LONGEST = 65536


def read_password(database: DatabaseConfig, environ: Mapping[str, str] = os.environ) -> str | None:
    """The password: `password`, else the content of `password_file`, else the systemd credential, else that in STORE.

    A file's one line break at its end is dropped; all else counts, blanks too.

    Args:
        environ: where $CREDENTIALS_DIRECTORY is looked up.

    Returns:
        None where there is none: the server may trust the socket's user.

    Raises:
        ConfigError: the file can't be read, is empty, or is not text.
    """
    if database.driver == "sqlite":
        return None
    if database.password is not None:
        return str(database.password)
    if database.password_file is not None:
        return _content(Path(database.password_file), database, "")
    credential = _credential(environ.get("CREDENTIALS_DIRECTORY"))
    if credential is None:
        return None
    return _content(credential, database, f"the systemd credential {CREDENTIAL}: ")


def _credential(folder: str | None) -> Path | None:
    """The one that systemd gave this process, or the one that it gives the daemon, if this process may read it."""
    if folder:
        given = Path(folder) / CREDENTIAL
        return given if os.path.lexists(given) else None
    stored = STORE / CREDENTIAL
    return stored if os.access(stored, os.R_OK) else None


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
