"""`qd check` as root: root runs no code that others can change.

Handlers may lie where jobs can write. The process that imports them is the service's user for good; where he can't
reach this program nothing is imported, and where no such service is known nothing from a place that another than
root can write.
May import: eyes, unit_files, config's values. Owns: the process's user.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Callable, Iterator, Sequence

from qd.cli.checks.eyes import Account, Sight, account_of, blockers, files_of, for_another, searched
from qd.cli.checks.unit_files import Unit
from qd.config.model import Config, Secret
from qd.config.password import read_password
from qd.config.trust import changeable_by_others
from qd.errors import ConfigError
from qd.store.protocol import Finding

AS_USER = "run the check as the daemon's user (`runuser -u USER -- qd check`), or have root alone own that place"


def who_imports(config: Config, units: Sequence[Unit]) -> tuple[Callable[[], None], Finding | None]:
    """What makes a process of the check's the one that may import handlers, and what forbids that to any.

    Args:
        config: keeps its password, which the service's user may not be able to read.
    """
    if os.geteuid() != 0:
        return as_it_is, None
    accounts = [account_of(unit) for unit in units if for_another(unit)]
    account = next((each for each in accounts if each is not None and each.user != 0), None)
    if account is None or not _reaches_qd(account):
        return as_it_is, _forbidden(config, units)
    _remember_password(config)
    _load_verb()
    return lambda: become(account), None


def as_it_is() -> None:
    """Becomes nobody else."""


def _forbidden(config: Config, units: Sequence[Unit]) -> Finding | None:
    """Why root, which can't become the service's user, imports nothing."""
    apart = [unit for unit in units if for_another(unit)]
    if apart and config.handlers.modules:
        return Finding(
            "warn", "handlers", f"not imported: {apart[0].name} runs as {apart[0].value('User')}, who isn't known here "
            f"or can't reach this program ({sys.executable}), and root runs no code that is his: {AS_USER}"
        )  # fmt: skip
    place = None if not config.handlers.modules else next(_changeable(config), None)
    if place is None:
        return None
    return Finding(
        "warn", "handlers", f"not imported: another user than root can write {place}, and what lies there would run "
        f"as root: {AS_USER}"
    )  # fmt: skip


def become(account: Account) -> None:
    """Gives up root for good."""
    os.setgroups(account.groups)
    os.setgid(account.group)
    os.setuid(account.user)
    entry = pwd.getpwuid(account.user)
    os.environ.update(HOME=entry.pw_dir, USER=entry.pw_name, LOGNAME=entry.pw_name)


def _reaches_qd(account: Account) -> bool:
    """Whether he can go on with this very program."""
    sights = [Sight("program", path) for path in (sys.prefix, os.__file__, __file__)]
    return blockers(account, [*sights, Sight("program", sys.executable, os.X_OK)]) == [None] * 4


def _remember_password(config: Config) -> None:
    try:
        password = read_password(config.database)
    except ConfigError:  # has been told
        return
    config.database._known = None if password is None else Secret(password)


def _load_verb() -> None:
    """What the rest of the check is made of, while Python's path is still root's alone."""
    import qd.config.handlers
    import qd.executors.children
    import qd.metrics.series
    import qd.store  # noqa: F401


# -------------------------------------------------------------------- what others can change


def _changeable(config: Config) -> Iterator[str]:
    """The places from which handlers would be imported and that others than root can write."""
    trusted = tuple(os.path.join(place, "") for place in (sys.prefix, sys.base_prefix))
    for entry in searched():
        if "site-packages" in entry or "dist-packages" in entry:
            break
        if not f"{entry}/".startswith(trusted) and changeable_by_others(entry):
            yield os.path.realpath(entry)
    for sight in files_of(config):
        folder = os.path.dirname(sight.path)
        places = (folder, os.path.join(folder, "__pycache__"), sight.path)
        yield from (place for place in places if changeable_by_others(place))
