"""A TCP proxy before a MySQL server that ends connections where a rule says so."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

QUERY = b"\x03"


@dataclass
class Link:
    """One connection through the proxy.

    Attributes:
        packets: how many the client has sent, the one at hand included.
        transaction: the statements since the last COMMIT or ROLLBACK, without the one at hand.
        silent: nothing of the server's reaches the client any more.
    """

    client: socket.socket
    server: socket.socket
    packets: int = 0
    transaction: list[bytes] = field(default_factory=list)
    silent: bool = False
    answered: threading.Event = field(default_factory=threading.Event)

    def end(self) -> None:
        """Ends both sides."""
        for one in (self.client, self.server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


Rule = Callable[[Link, bytes], "str | None"]
"""Asked of every packet of a client (a statement's text, or empty for another command): None lets
it pass; `before` ends the connection instead; `half` after half of it; `after` lets the server have
all of it, and loses the answer."""


class FaultProxy:
    """Forwards to a server; TLS must be off, so that statements can be read.

    Attributes:
        port: where it listens, on 127.0.0.1.
        rule: see Rule.
        change: what a client's packet becomes on its way, in the same number of bytes.
        refusing: new connections are closed at once.
        cuts: how many connections the rule has ended.
    """

    def __init__(self, server_port: int, rule: Rule = lambda link, statement: None) -> None:
        self._server_port, self.rule = server_port, rule
        self.change: Callable[[bytes], bytes] = lambda packet: packet
        self.refusing = False
        self.cuts = 0
        self._links: list[Link] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Ends it and all its connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()

    def cut_all(self) -> None:
        """Ends all connections without a word."""
        links, self._links = self._links, []
        for link in links:
            link.end()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self.refusing:
                    raise ConnectionRefusedError
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()
                continue
            link = Link(client, server)
            self._links.append(link)
            for forward in (self._up, self._down):
                threading.Thread(target=forward, args=(link,), daemon=True).start()

    def _up(self, link: Link) -> None:
        with suppress(OSError):
            while data := link.client.recv(1_048_576):
                statement = data[5:] if data[4:5] == QUERY else b""
                link.packets += 1
                how = self.rule(link, statement)
                if how is not None:
                    self.cuts += 1
                    self._cut(link, data, how)
                    break
                ends = statement.lower().startswith((b"commit", b"rollback"))
                link.transaction = [] if ends else [*link.transaction, statement]
                link.server.sendall(self.change(data))
        link.end()

    def _cut(self, link: Link, data: bytes, how: str) -> None:
        link.silent = True
        if how == "half":
            link.server.sendall(data[: len(data) // 2])
        elif how == "after":
            link.server.sendall(data)
            link.server.shutdown(socket.SHUT_WR)
            link.answered.wait(10)  # the server ends its side once it has answered

    def _down(self, link: Link) -> None:
        with suppress(OSError):
            while data := link.server.recv(1_048_576):
                if not link.silent:
                    link.client.sendall(data)
        link.answered.set()
        link.end()
