"""The handlers that a configuration names: modules imported, programs added.

Runs the modules' code, and whatever that raises becomes a problem of the configuration's line.
May import: the pure modules, the registry and the model.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from types import TracebackType

from qd import registry as registry_module
from qd.config.model import Config
from qd.config.problems import Origin, Path
from qd.errors import ConfigError, HandlerError
from qd.registry import REGISTRY, Handler, Registry

_LONGEST = 300
_MACHINERY = (__file__, importlib.__file__, registry_module.__file__)


def load_handlers(config: Config, registry: Registry | None = None) -> Registry:
    """Imports `handlers.modules` and adds `handlers.commands`.

    A module that is already imported is not run again: its code changes with a restart. A module
    that fails leaves no handler behind, so that it can be tried again after it was mended.

    Args:
        registry: where `@qd.handler` has registered; None takes the process's.

    Returns:
        A registry of its own, for this configuration.

    Raises:
        ConfigError: with every module that can't be imported and every command whose name is taken.
    """
    source = REGISTRY if registry is None else registry
    _look_here()
    problems: dict[Path, str] = {}
    for n, name in enumerate(config.handlers.modules):
        if (problem := _import(name, source)) is not None:
            problems["handlers", "modules", n] = problem
    loaded = source.copy()
    for name, command in config.handlers.commands.items():
        try:
            loaded.add(Handler(name, argv=command.argv))
        except HandlerError as error:
            problems["handlers", "commands", name] = str(error)
    if problems:
        origin = config._origin
        raise ConfigError([origin.problem(path, problems[path]) for path in sorted(problems, key=_by_line(origin))])
    return loaded


def _by_line(origin: Origin) -> Callable[[Path], int]:
    return lambda path: origin.line(path) or 0


def _look_here() -> None:
    """Puts the working directory on sys.path, as `python -m` does and a console script doesn't."""
    try:
        here = os.getcwd()
    except FileNotFoundError:  # it was removed under us: then nothing can be imported from it
        return
    if not getattr(sys.flags, "safe_path", False) and here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def _import(name: str, source: Registry) -> str | None:
    """Imports a module; the problem, or None."""
    before = set(source.names())
    try:
        importlib.import_module(name)
    except KeyboardInterrupt:  # a person's, not the module's
        raise
    except BaseException as error:  # whatever a module raises, sys.exit() too, is told at its line
        _forget_unloaded(source, before)
        return f"{name} can't be imported: {_told(error, name)}"
    return None


def _forget_unloaded(source: Registry, before: set[str]) -> None:
    """Takes back what was registered by modules that are not loaded after all."""
    for handler in source.handlers():
        module = getattr(handler.function, "__module__", None)
        if handler.name not in before and module not in sys.modules:
            source.remove(handler.name)


def _told(error: BaseException, name: str) -> str:
    """`shop/jobs.py:7: ModuleNotFoundError: No module named 'requests'`, in one line."""
    if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
        return f"there is no module {error.name}; it was looked for in {sys.path[0]} and the rest of Python's path"
    try:
        text = " ".join(str(error).split())
    except Exception:  # a hostile __str__; the class says enough
        text = ""
    where = _where(error)
    parts = [where, type(error).__name__, text[:_LONGEST]]
    return ": ".join(part for part in parts if part)


def _where(error: BaseException) -> str:
    """File and line of the innermost frame that isn't the import system's."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{error.filename}:{error.lineno}"
    return _innermost(error.__traceback__)


def _innermost(trace: TracebackType | None) -> str:
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(trace)
        if not frame.f_code.co_filename.startswith("<frozen") and frame.f_code.co_filename not in _MACHINERY
    ]
    return f"{frames[-1][0]}:{frames[-1][1]}" if frames else ""
