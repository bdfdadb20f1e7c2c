"""Finding, reading and judging a configuration file.

Reads the one file and nothing else. Owns: where a configuration is looked for.
May import: the pure modules, and what lies below it in this package.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from qd.config.document import Node, Unreadable, compose
from qd.config.model import Config
from qd.config.problems import Origin, Problems
from qd.config.problems import Path as KeyPath
from qd.config.reader import Reader
from qd.config.rules import Draft, check
from qd.config.trust import file_changeable_by_others, writable_by_others
from qd.errors import ConfigError

MAX_BYTES = 256 << 10
"""A larger file is no configuration; parsing one would take seconds."""

SYSTEM_FILE = Path("/etc/qd/qd.yaml")
LOCAL_FILE = Path("qd.yaml")

_MINIMAL = "queues: {default: {}}"


@dataclass(frozen=True)
class Place:
    """Where a configuration is.

    Attributes:
        named: by who runs qd, so that it is meant whoever can write it. What was only found root takes from
            nobody else: it says which server is sent which file's content as a password.
    """

    file: Path
    named: bool


def find_config(path: str | None, environ: Mapping[str, str] = os.environ) -> Place:
    """The file to read: `path` (--config), else $QD_CONFIG, else ./qd.yaml, else /etc/qd/qd.yaml.

    Raises:
        ConfigError: none is named and none is there; it says where was looked.
    """
    named = path or environ.get("QD_CONFIG")
    if named:
        return Place(Path(named), named=True)
    for candidate in (LOCAL_FILE, SYSTEM_FILE):
        if os.path.lexists(candidate):
            return Place(candidate, named=False)
    raise ConfigError(
        [f"no configuration: no --config, $QD_CONFIG is not set, and there is no ./{LOCAL_FILE} and no {SYSTEM_FILE}"]
    )


def load_config(path: str | None = None, environ: Mapping[str, str] = os.environ) -> Config:
    """Reads and judges the configuration.

    Args:
        path: the file, or None to look for it (`find_config`).
        environ: where `${NAME}` is looked up.

    Raises:
        ConfigError: with every problem of the file.
    """
    return read_config(find_config(path, environ), environ)


def read_config(place: Place, environ: Mapping[str, str] = os.environ) -> Config:
    """Reads and judges the configuration at a place that `find_config` has told.

    Raises:
        ConfigError: with every problem of the file, or why root doesn't take it.
    """
    text, opened = _text(place)
    config = parse_config(text, str(place.file), environ)
    origin = replace(config._origin, inode=(opened.st_dev, opened.st_ino))
    config._origin = config.database._origin = origin
    return config


def world_readable(path: str | os.PathLike[str]) -> bool:
    """Whether every user of the machine may read the file (mode o+r); False if it can't be told."""
    try:
        return bool(os.stat(path).st_mode & stat.S_IROTH)
    except OSError:
        return False


def parse_config(text: str, file_name: str = "qd.yaml", environ: Mapping[str, str] = os.environ) -> Config:
    """Judges the text of a configuration; `load_config` without the file.

    Raises:
        ConfigError: with every problem, each `FILE:LINE: dotted.key: what is wrong, what is allowed`.
    """
    problems = Problems(file_name)
    try:
        root = compose(text.removeprefix("\ufeff"))
    except Unreadable as error:
        raise ConfigError([f"{file_name}:{error.line}: {error.message}"]) from None
    if root is None:
        raise ConfigError([f"{file_name}:1: is empty; a minimal example: {_MINIMAL}"])
    reader = Reader(problems, environ)
    config = _build(_sections(reader, root), reader)
    if config is not None:
        check(Draft(config, reader, problems))
    if config is None or problems:
        raise problems.error()
    return _with_origin(config, reader, file_name)


def _sections(reader: Reader, root: Node) -> dict[str, object]:
    if root.kind != "map":
        noun = {"list": "a list", "alias": "an alias"}.get(root.kind, "text")
        reader.problems.add(root.line, (), f"the file is {noun}; write a map, at least: {_MINIMAL}")
        return {}
    return reader.section(root, Config, ()) if reader.readable(root, (), root.line) else {}


def _build(data: dict[str, object], reader: Reader) -> Config | None:
    """The model of what was read, or None with a problem told.

    The reader has judged all of it by the same annotations; should pydantic find more, it is told in our words.
    """
    try:
        return Config.model_validate(data)
    except ValidationError as error:
        for found in error.errors(include_url=False, include_context=False, include_input=False):
            path: KeyPath = tuple(found["loc"])
            line = Origin(reader.problems.file, reader.lines).line(path) or 1
            reader.problems.add(line, path, "is not a value that is allowed here; docs/configuration.md says what is")
        return None


def _with_origin(config: Config, reader: Reader, file_name: str) -> Config:
    secret: KeyPath = ("database", "password")
    written = reader.values.get(secret) is not None and secret not in reader.variables
    origin = Origin(file_name, dict(reader.lines), written)
    own = config.model_copy(update={"database": config.database.model_copy()})  # a default is one for all
    own._origin = own.database._origin = origin
    return own


def _text(place: Place) -> tuple[str, os.stat_result]:
    """The file's text, and which file it was; every way in which it can't be read is a ConfigError."""
    file = place.file
    careful = not place.named and os.geteuid() == 0
    try:
        if careful:
            _trust(file, file_changeable_by_others(str(file)))
        with open(file, "rb") as stream:
            opened = os.fstat(stream.fileno())
            if careful:
                _trust(file, _changed(file, opened))
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or "its name is none"
        raise ConfigError([f"{file}: can't be read: {reason}"]) from None
    return _decoded(file, raw), opened


def _trust(file: Path, objection: str | None) -> None:
    """Root goes by no configuration that another can change, unless it is told to."""
    if objection is not None:
        meant = SYSTEM_FILE if file != SYSTEM_FILE and SYSTEM_FILE.is_file() else file.absolute()
        raise ConfigError(
            [
                f"{file}: root takes no configuration that it only finds and another can change: {objection}; "
                f"name the one that is meant: --config {meant}, QD_CONFIG={meant}, in Python from_config('{meant}')"
            ]
        )


def _changed(file: Path, opened: os.stat_result) -> str | None:
    """What is wrong with the very file that was opened."""
    why = writable_by_others(opened)
    return None if why is None else f"{file.absolute()} {why}"


def _decoded(file: Path, raw: bytes) -> str:
    if len(raw) > MAX_BYTES:
        raise ConfigError([f"{file}: is larger than {MAX_BYTES >> 10} KiB; that is no configuration"])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        what = "is UTF-16" if wide else "has a byte here that is not UTF-8"
        raise ConfigError([f"{file}:{line}: {what}; save the file as UTF-8"]) from None
