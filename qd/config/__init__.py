"""The configuration: found, read, judged with every problem at once, and the handlers that it names.

May import: this package, the pure modules and the registry.
"""

from __future__ import annotations

from qd.config.handlers import load_handlers
from qd.config.limits import is_loopback, listen_address
from qd.config.load import find_config, load_config, parse_config, read_config, world_readable
from qd.config.model import Config
from qd.config.password import read_password
from qd.config.remarks import remarks

__all__ = [
    "Config",
    "find_config",
    "is_loopback",
    "listen_address",
    "load_config",
    "load_handlers",
    "parse_config",
    "read_config",
    "read_password",
    "remarks",
    "world_readable",
]
