"""Keeps a forked child from ending its parent's connections.

A child inherits the sockets; when its copies of the connection objects are destroyed, the driver
says good-bye on them and the server closes the parent's session. So in a child they are never
destroyed. Pure, apart from the fork hook it installs.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any

_guarded: weakref.WeakSet[Any] = weakref.WeakSet()


def guard(raw: Any) -> None:
    """Watches a driver's connection for as long as it exists."""
    _guarded.add(raw)


def _keep_for_ever() -> None:
    for raw in list(_guarded):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(raw))


os.register_at_fork(after_in_child=_keep_for_ever)
