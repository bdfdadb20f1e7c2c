"""The log: one line per event on stderr, and the standard library's records beside them.

Worded by `qd.events`, written whole or not at all, never in anybody's way. May import: the pure
modules and the configuration model.
"""

from __future__ import annotations

from qd.log.listener import LogListener
from qd.log.records import setup_logging

__all__ = ["LogListener", "setup_logging"]
