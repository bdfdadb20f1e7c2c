"""A TCP proxy before a MySQL server that ends, holds up or slows connections as it is told.

TLS must be off, so that statements can be read.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.support.answer import Answer, statement_of, whole


@dataclass
class Link:
    """One connection through the proxy.

    Attributes:
        packets: how many the client has sent, the one at hand included.
        transaction: the statements since the last COMMIT or ROLLBACK, without the one at hand.
        silent: nothing of the server's reaches the client any more.
        number: the server's own of this connection, for KILL; 0: it has said nothing yet.
        vanished: the server's side has ended, and the client is not told.
        forsaken: the client's side has ended, and the server is not told.
    """

    client: socket.socket
    server: socket.socket
    packets: int = 0
    transaction: list[bytes] = field(default_factory=list)
    silent: bool = False
    number: int = 0
    vanished: bool = False
    forsaken: bool = False
    ended: bool = False
    answered: threading.Event = field(default_factory=threading.Event)
    heard: threading.Event = field(default_factory=threading.Event)

    def end(self) -> None:
        """Ends both sides."""
        self.ended = True
        _close(self.client, self.server)

    def end_unless_half(self) -> None:
        """Ends both sides, but for one that is meant to outlive the other for a while."""
        if not (self.vanished or self.forsaken):
            self.end()


Rule = Callable[[Link, bytes], "str | Answer | None"]
"""Asked of every packet of a client (a statement's text, or empty for another command): None lets
it pass; `before` ends the connection instead; `half` after half of it; `after` lets the server have
all of it, and loses the answer; an Answer is what the client gets instead of the server's."""


class Way:
    """One direction of all connections: open, or held up with nobody told."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._open.set()
        self.latency = 0.0
        """Seconds that each packet is on its way."""

    def stop(self) -> None:
        """Nothing gets through until `go`; what is sent meanwhile arrives then."""
        self._open.clear()

    def go(self) -> None:
        """The opposite of stop."""
        self._open.set()

    def travel(self) -> None:
        """Returns once a packet has arrived."""
        if self.latency:
            threading.Event().wait(self.latency)
        self._open.wait()


class FaultProxy:
    """Forwards to a server.

    Attributes:
        port: where it listens, on 127.0.0.1.
        server_port: where new connections are led.
        rule: see Rule.
        change: what a client's packet becomes on its way, in the same number of bytes.
        refusing: new connections are closed at once.
        greeting: what new connections get in place of the server's greeting, then their end.
        accepted: how many connections were asked for.
        cuts: how many packets the rule has not let pass.
        up, down: the ways to the server and back.
    """

    def __init__(self, server_port: int, rule: Rule = lambda link, statement: None) -> None:
        self.server_port, self.rule = server_port, rule
        self.change: Callable[[bytes], bytes] = lambda packet: packet
        self.refusing = False
        self.greeting: Answer | None = None
        self.accepted = self.cuts = 0
        self.up, self.down = Way(), Way()
        self._lock = threading.Lock()
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
        for way in (self.up, self.down):
            way.go()

    def cut_all(self) -> None:
        """Ends all connections without a word."""
        with self._lock:
            links, self._links = self._links, []
        _end_all(links)

    def vanish(self) -> None:
        """The server's side of all connections ends; the clients hear nothing more, not even an end."""
        for link in self._living():
            link.vanished = True
            _close(link.server)

    def forsake(self) -> Callable[[], None]:
        """The clients' side of all connections ends; the server isn't told until the result is called."""
        links = self._living()
        for link in links:
            link.forsaken = True
            _close(link.client)
        return lambda: _end_all(links)

    def _living(self) -> list[Link]:
        with self._lock:
            return [link for link in self._links if not (link.ended or link.vanished or link.forsaken)]

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            try:
                if self.greeting is not None:
                    client.sendall(self.greeting.packet(b""))
                if self.refusing or self.greeting is not None:
                    raise ConnectionRefusedError
                server = socket.create_connection(("127.0.0.1", self.server_port))
            except OSError:
                client.close()
                continue
            link = Link(client, server)
            with self._lock:
                self._links = [*(one for one in self._links if not one.ended), link]
            for forward in (self._up, self._down):
                threading.Thread(target=forward, args=(link,), daemon=True).start()

    def _up(self, link: Link) -> None:
        with suppress(OSError):
            while data := link.client.recv(1_048_576):
                if link.vanished:
                    continue
                statement = statement_of(data)
                link.packets += 1
                how = self.rule(link, statement)
                if how is not None:
                    self.cuts += 1
                    if isinstance(how, Answer) and self._answer(link, data, how):
                        continue
                    if isinstance(how, str):
                        self._cut(link, data, how)
                    break
                ends = statement.lower().startswith((b"commit", b"rollback"))
                link.transaction = [] if ends else [*link.transaction, statement]
                self.up.travel()
                self._send_up(link, self.change(data))
        if not link.forsaken:
            link.end()

    def _send_up(self, link: Link, data: bytes) -> None:
        try:
            link.server.sendall(data)
        except OSError:
            if not link.vanished:
                raise

    def _answer(self, link: Link, data: bytes, answer: Answer) -> bool:
        """Answers in the server's name; whether the connection goes on."""
        while not whole(data) and (more := link.client.recv(1_048_576)):
            data += more
        if answer.reached:
            link.silent = True
            link.heard.clear()
            link.server.sendall(data)
            link.heard.wait(10)
            link.silent = False
        link.client.sendall(answer.packet(data))
        return not answer.ends

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
                link.number = link.number or _number(data)
                self.down.travel()
                if not (link.silent or link.forsaken):
                    link.client.sendall(data)
                link.heard.set()
        link.answered.set()
        link.end_unless_half()


def _number(greeting: bytes) -> int:
    """The connection's number, which stands behind the version in the server's first packet."""
    end = greeting.find(b"\0", 5)
    return int(struct.unpack_from("<I", greeting, end + 1)[0]) if greeting[4:5] == b"\x0a" and end > 0 else 0


def _end_all(links: Iterable[Link]) -> None:
    for link in links:
        link.end()


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
