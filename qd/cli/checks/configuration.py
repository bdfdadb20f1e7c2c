"""`qd check`: the file, what is odd in it, and whether the password can be read.

May import: config, protocol's values.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qd.config.model import Config
from qd.errors import ConfigError
from qd.store.protocol import Finding


def of_file(file: Path, config: Config) -> Iterator[Finding]:
    """The file and what is allowed in it, but probably not meant."""
    from qd.config.remarks import remarks

    yield Finding("ok", "config", str(file))
    yield from (Finding("warn", "config", remark) for remark in remarks(config))


def of_password(config: Config) -> Iterator[Finding]:
    """Whether the password can be read; never the password."""
    from qd.config.password import read_password

    try:
        read_password(config.database)
    except ConfigError as error:
        yield from (Finding("FAIL", "password", problem) for problem in error.problems)
