"""`qd check`: the file, what is odd in it, and whether the password can be read.

May import: config, protocol's values.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qd.config.model import Config
from qd.errors import ConfigError
from qd.store.protocol import Finding

NO_PASSWORD = "none is configured: the database has to trust who connects"


def of_file(file: Path, config: Config) -> Iterator[Finding]:
    """The file and what is allowed in it, but probably not meant."""
    from qd.config.remarks import remarks

    yield Finding("ok", "config", str(file))
    yield from (Finding("warn", "config", remark) for remark in remarks(config))


def of_password(config: Config) -> Iterator[Finding]:
    """Where the password comes from, and whether it can be read; never the password."""
    from qd.config.password import password_place, read_password

    if config.database.driver == "sqlite":
        return
    try:
        read_password(config.database)
    except ConfigError as error:
        yield from (Finding("FAIL", "password", problem) for problem in error.problems)
        return
    place = password_place(config.database)
    yield Finding("ok", "password", place.told if place is not None else NO_PASSWORD)
