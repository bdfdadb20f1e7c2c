"""What is allowed in a configuration, but probably not meant. Looks at files' modes and at $PATH.

May import: the pure modules, and what lies below it in this package.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator

from qd.config.limits import is_loopback
from qd.config.load import world_readable
from qd.config.model import Config
from qd.config.problems import Path


def remarks(config: Config) -> list[str]:
    """Lines for a person, each `FILE:LINE: dotted.key: what to look at`; none is an error."""
    return [config._origin.problem(path, text) for path, text in _all(config)]


def _all(config: Config) -> Iterator[tuple[Path, str]]:
    yield from _secrets(config)
    yield from _queues(config)
    yield from _commands(config)
    address = config.http.address
    if address is not None and not is_loopback(address[0]):
        yield ("http", "listen"), "is open to the network without a login: queues, job types and counts can be read"


def _secrets(config: Config) -> Iterator[tuple[Path, str]]:
    origin, file = config._origin, config.database.password_file
    if origin.password_written and origin.file and world_readable(origin.file):
        yield ("database", "password"), f"every user of this machine may read {origin.file}; chmod o-r it"
    if file is not None and world_readable(file):
        yield ("database", "password_file"), f"every user of this machine may read {file}; chmod o-r it"


def _queues(config: Config) -> Iterator[tuple[Path, str]]:
    served = set(config.served)
    alike: dict[str, list[str]] = defaultdict(list)
    for name in config.queues:
        alike[name.lower()].append(name)
        if name not in served:
            yield ("queues", name), "no worker of this configuration serves it"
    for names in alike.values():
        if len(names) > 1:
            yield ("queues", names[-1]), f"{' and '.join(names)} differ only by case; they are different queues"


def _commands(config: Config) -> Iterator[tuple[Path, str]]:
    for name, command in config.handlers.commands.items():
        if shutil.which(command.argv[0]) is None:
            yield ("handlers", "commands", name, "argv"), "its program is not found here, or may not be executed"
