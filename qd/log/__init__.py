"""The log: one line per event on stderr, and the standard library's records beside them.

Worded by `qd.events`, written whole or not at all, never in anybody's way. May import: the pure
modules.
"""

from __future__ import annotations

from qd.log.listener import LogListener
from qd.log.records import current, setup_logging

__all__ = ["LogListener", "current", "setup_logging"]
