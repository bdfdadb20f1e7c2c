"""The credential that an installed service gives its daemon, for who runs the command line and may read it: root.

It counts for the very file that the service runs, and for no other: another configuration may name another server,
or an account without a password, and neither may be sent this one. The file is the one that was opened and read.
May import: config, checks.unit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from qd.cli.checks.unit import file_of, units_of
from qd.cli.checks.unit_files import Unit
from qd.config.model import DatabaseConfig
from qd.config.password import CREDENTIAL

STORE = "etc/credstore"
"""Where systemd looks for a credential that a unit names without a path; below the root."""

ROOT = Path("/")


def stored(database: DatabaseConfig, file: Path, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The password of the service that runs this file; None where it has none, or this process may not read it.

    Args:
        environ: what systemd gives this process itself comes first.
    """
    asked = database.driver == "mysql" and database.password is None and database.password_file is None
    if not asked or "CREDENTIALS_DIRECTORY" in environ:
        return None
    source = next((source_of(unit) for unit in units_of(file, ROOT) if _runs_what_was_read(unit, database)), None)
    return source if source is not None and os.access(source, os.R_OK) else None


def _runs_what_was_read(unit: Unit, database: DatabaseConfig) -> bool:
    """Whether the service's file is the very one whose content this is: a name may have been led elsewhere since."""
    file = file_of(unit)
    try:
        found = None if file is None else os.stat(file)
    except OSError:
        return False
    return found is not None and (found.st_dev, found.st_ino) == database._origin.inode


def source_of(unit: Unit) -> Path | None:
    """Where a service has its password from; None: from nowhere, or not from a plain file."""
    source = ""
    for key, value in unit.service:
        if key in ("LoadCredential", "LoadCredentialEncrypted"):
            name, _, path = value.partition(":")
            if not value:
                source = ""
            elif name == CREDENTIAL:
                source = (path or name) if key == "LoadCredential" else ""
    source = source.replace("%i", unit.instance)
    return ROOT / STORE / source if source and "%" not in source else None
