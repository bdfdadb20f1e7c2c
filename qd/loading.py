"""Imports the modules that register handlers, in the daemon and in its children.

Runs the modules' code, and whatever that raises becomes one line for a person. May import: registry.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from types import TracebackType

from qd import registry as registry_module
from qd.registry import Registry

LOOKED_FOR = "it was looked for in"
"""Is in what is said of a module that isn't there."""

_LONGEST = 300
_MACHINERY = (__file__, importlib.__file__, registry_module.__file__)


def look_here() -> None:
    """Puts the working directory on sys.path, as `python -m` does and a console script doesn't."""
    try:
        here = os.getcwd()
    except FileNotFoundError:  # it was removed under us: then nothing can be imported from it
        return
    if not getattr(sys.flags, "safe_path", False) and here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def load_public(*but: str) -> None:
    """Loads what is loaded at its first use, so that a handler finds it where a deploy has replaced the files by then:
    the next version's would come to this one's.

    Args:
        but: names that cost more than they are worth.
    """
    public = importlib.import_module(__package__)  # by its name: what it leads to is above this layer
    for name in public.__all__:
        if name not in but:
            getattr(public, name)


def import_module(name: str, source: Registry) -> str | None:
    """Imports a module; the problem in one line, or None. One that fails leaves no handler in `source`."""
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
        return f"there is no module {error.name}; {LOOKED_FOR} {sys.path[0]} and the rest of Python's path"
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
