"""`qd check` as root: what the service reads, looked at with its user's eyes, for root may read all.

A child process drops to that user and tries, so that groups, links and access lists count as they do for the
service. It runs no handler's code: modules are found, not imported. What the service's own settings hide
(ProtectHome=, PrivateTmp=) is told too.
May import: unit, unit_files, config, protocol's values.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from qd.cli.checks.unit import home_of, program_of
from qd.cli.checks.unit_files import Unit
from qd.config.model import Config
from qd.store.protocol import Finding

HIDDEN = {"ProtectHome": ("/home", "/root", "/run/user"), "PrivateTmp": ("/tmp", "/var/tmp")}
"""What a service doesn't see where a setting is on."""

ON = frozenset({"1", "yes", "y", "true", "t", "on", "tmpfs"})

UNTOLD = "whether it may read all that it needs can't be told, it was looked at as root"


@dataclass(frozen=True)
class Sight:
    """Something that the service needs.

    Attributes:
        what: the finding's subject.
        need: os.R_OK, or os.X_OK for a program.
    """

    what: str
    path: str
    need: int = os.R_OK


@dataclass(frozen=True)
class Account:
    """Who a service runs as."""

    name: str
    user: int
    group: int
    groups: tuple[int, ...]


def of_eyes(config: Config, file: Path, units: Sequence[Unit]) -> Iterator[Finding]:
    """What each service's user can't read or run of what the service needs; nothing unless root asks."""
    for unit in units if os.geteuid() == 0 else ():
        if for_another(unit):
            seen = {sight.path: sight for sight in (*files_of(config), *modules_of(config))}
            yield from _of_unit(unit, [*_files(config, file), *seen.values(), *_programs(config, unit)])


def for_another(unit: Unit) -> bool:
    """Whether a service runs as another user than root."""
    return unit.value("User") not in ("", "root", "0")


def of_hidden(config: Config, units: Sequence[Unit], seen: Sequence[Finding]) -> list[Finding]:
    """What was seen before the modules were loaded, with what the settings hide of what they have imported."""
    more: dict[str, Finding] = {}
    for unit in units if seen else ():
        for sight in modules_of(config):
            hides = hidden(unit, os.path.realpath(sight.path))
            if hides is not None and for_another(unit):
                who = f"{unit.name} runs as {unit.value('User')}"
                more.setdefault(
                    who + hides[1], Finding("FAIL", sight.what, f"{who}, from whom {_hides(sight, *hides)}")
                )
    told = [finding for finding in more.values() if not any(_is_told(finding, each) for each in seen)]
    begun = tuple(finding.detail.partition(",")[0] for finding in told)
    return [*(each for each in seen if each.level != "ok" or not each.detail.startswith(begun or ("\0",))), *told]


def _is_told(finding: Finding, other: Finding) -> bool:
    """Whether another has told of the same folder and service."""
    return other.level == "FAIL" and finding.detail.partition(", and so ")[0] == other.detail.partition(", and so ")[0]


def _of_unit(unit: Unit, sights: list[Sight]) -> Iterator[Finding]:
    who = f"{unit.name} runs as {unit.value('User')}"
    account = account_of(unit)
    blocked = None if account is None or unit.value("RootDirectory") else blockers(account, sights)
    if account is None or blocked is None:
        reason = ": there is no such user or group here" if account is None else ""
        yield Finding("warn", "user", f"{who}{reason}: {UNTOLD}")
        return
    told: dict[str, Finding] = {}  # a folder that stops many is told once
    for sight, stop in zip(sights, blocked, strict=True):
        hides = hidden(unit, os.path.realpath(sight.path))
        if hides is not None:
            told.setdefault(hides[1], Finding("FAIL", sight.what, f"{who}, from whom {_hides(sight, *hides)}"))
        elif stop is not None:
            told.setdefault(stop, Finding("FAIL", sight.what, f"{who}, who may not {_may_not(sight, stop, account)}"))
    yield from told.values()
    if not told:
        yield Finding("ok", "user", f"{who}, who may read its configuration, handlers and program")


def _hides(sight: Sight, setting: str, folder: str) -> str:
    return f"{setting}= hides {folder}, and so {sight.path}: move it, as to /opt or /var/lib"


def _may_not(sight: Sight, stop: str, account: Account) -> str:
    group = grp.getgrgid(account.group).gr_name
    if os.path.isdir(stop):
        on_the_way = "" if sight.path == stop else f", on the way to {sight.path}"
        return f"enter {stop}{on_the_way}: chgrp {group} and chmod g+rx that folder, or move what is in it"
    if sight.what == "password":  # whose group may hold others, who are let in to wake the daemon
        return f"read {stop}: chown {account.name} and chmod 400 {stop}"
    right, act = ("x", "run") if sight.need == os.X_OK else ("", "read")
    return f"{act} {stop}: chgrp {group} and chmod g+r{right} it"


# -------------------------------------------------------------------- what a service needs


def _files(config: Config, file: Path) -> Iterator[Sight]:
    yield Sight("config", os.path.abspath(file))
    database = config.database
    if database.driver == "mysql" and database.password is None and database.password_file is not None:
        yield Sight("password", os.path.abspath(database.password_file))


def modules_of(config: Config) -> Iterator[Sight]:
    """The files of the handlers' modules that are loaded, of their packages, and of what they import beside them."""
    named = {part for name in config.handlers.modules for part in _with_packages(name)}
    ours = [os.path.realpath(place) + os.sep for place in (sys.prefix, sys.base_prefix, Path(__file__).parents[2])]
    for name, module in sorted(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if not config.handlers.modules or not isinstance(path, str) or name == "__main__":
            continue
        if name in named or not os.path.realpath(path).startswith(tuple(ours)):
            yield Sight("handlers", os.path.abspath(path))


def files_of(config: Config) -> Iterator[Sight]:
    """The files of the handlers' modules and of their packages as an import would find them; nothing is run."""
    for name in config.handlers.modules:
        path: Sequence[str] | None = searched()
        for part in _with_packages(name):
            spec = PathFinder.find_spec(part, path) if path is not None else None
            if spec is not None and spec.origin is not None and spec.has_location:
                yield Sight("handlers", os.path.abspath(spec.origin))
            inner = None if spec is None else spec.submodule_search_locations
            path = None if inner is None else list(getattr(inner, "_path", inner))  # a namespace would ask its parent


def searched() -> list[str]:
    """Where Python looks for handlers: in the working directory first."""
    try:
        here = [] if getattr(sys.flags, "safe_path", False) else [os.getcwd()]
    except FileNotFoundError:  # it was removed
        here = []
    return [*here, *sys.path]


def _with_packages(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _programs(config: Config, unit: Unit) -> Iterator[Sight]:
    program = program_of(unit)
    if os.path.isabs(program):
        yield Sight("program", program, os.X_OK)
        yield from (Sight("program", interpreter, os.X_OK) for interpreter in _interpreter(program))
    for command in config.handlers.commands.values():
        first = command.argv[0]
        found = str(home_of(unit) / first) if "/" in first else shutil.which(first)
        if found is not None:
            yield Sight("handlers", found, os.X_OK)


def _interpreter(program: str) -> list[str]:
    """What the first line of a script names."""
    try:
        with open(program, "rb") as script:
            line = script.readline(256)
    except OSError:
        return []
    words = line[2:].split() if line.startswith(b"#!") else []
    return [os.fsdecode(words[0])] if words else []


# -------------------------------------------------------------------- who it runs as, and what he sees


def account_of(unit: Unit) -> Account | None:
    """Its user with all his groups; None: this machine doesn't know him, or systemd makes one up."""
    user, group = unit.value("User"), unit.value("Group")
    try:
        entry = pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
        number = _group(group) if group else entry.pw_gid
        more = [_group(name) for value in unit.values("SupplementaryGroups") for name in value.split()]
    except KeyError:
        return None
    return Account(entry.pw_name, entry.pw_uid, number, (*os.getgrouplist(entry.pw_name, number), *more))


def _group(name: str) -> int:
    return int(name) if name.isdecimal() else grp.getgrnam(name).gr_gid


def hidden(unit: Unit, path: str) -> tuple[str, str] | None:
    """The setting that hides a path from a service, and the folder that it hides."""
    for setting, folders in HIDDEN.items():
        for folder in folders if unit.value(setting).lower() in ON else ():
            if path.startswith(folder + os.sep) and not _is_bound(unit, path):
                return setting, folder
    return None


def _is_bound(unit: Unit, path: str) -> bool:
    """Whether a service is given this path all the same: `BindReadOnlyPaths=/home/shop`."""
    bound = [word for key in ("BindPaths", "BindReadOnlyPaths") for value in unit.values(key) for word in value.split()]
    places = [word.lstrip("-+").split(":")[1 if word.count(":") else 0].rstrip("/") for word in bound]
    return any(f"{path}/".startswith(f"{place}/") for place in places)


def blockers(account: Account, sights: Sequence[Sight]) -> list[str | None] | None:
    """For each: the folder or file at which the account is stopped, None where it isn't; None: it can't be tried."""
    ways = [(_way(sight.path), sight.need) for sight in sights]  # links are followed as root
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _try_as(account, ways, writer)
    os.close(writer)
    with open(reader, "rb") as answers:
        said = answers.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else None


def _way(path: str) -> list[str]:
    """The folders on the way to a path, then what it is without links, and as it is named; none where it isn't."""
    if not os.path.exists(path):
        return []
    real = Path(os.path.realpath(path))
    return [str(step) for step in (*reversed(Path(path).parents), *reversed(real.parents), real, path)]


def _try_as(account: Account, ways: list[tuple[list[str], int]], writer: int) -> None:
    """In the child: becomes the account for good, tries, answers, ends."""
    try:
        os.setgroups(account.groups)
        os.setgid(account.group)
        os.setuid(account.user)
        answer = json.dumps([_stop(way, need) for way, need in ways]).encode()
        while answer:
            answer = answer[os.write(writer, answer) :]
    finally:
        os._exit(0)


def _stop(way: list[str], need: int) -> str | None:
    steps = [(step, os.X_OK) for step in way[:-2]] + [(step, need) for step in way[-2:]]
    return next((step for step, right in steps if not os.access(step, right)), None)
