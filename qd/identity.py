"""Who claims: tokens that are never used twice. Pure, but for the host's name and the process id."""

from __future__ import annotations

import itertools
import os
import re
import secrets
import socket


class Identity:
    """One process's name among all that ever claim.

    Host and pid tell a person where to look; both repeat in containers, so a random nonce per
    process start makes the name unique, and a counter that all of the process's threads and
    engines share makes each token so.
    """

    def __init__(self) -> None:
        self.host = re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname())[:64] or "host"
        self.pid = os.getpid()
        self.nonce = secrets.token_hex(5)
        self._counter = itertools.count(1)

    @property
    def name(self) -> str:
        """`host:pid:nonce`."""
        return f"{self.host}:{self.pid}:{self.nonce}"

    def token(self, worker: str) -> str:
        """A new token `host:pid:nonce:worker:n`, at most 255 ASCII characters.

        Args:
            worker: the claiming thread's name.
        """
        return f"{self.name}:{worker[:100]}:{next(self._counter)}"
