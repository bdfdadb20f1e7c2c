"""A proxy before a MySQL server that answers some statements in the server's place, or greets by another version."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.support.answer import statement_of

Refusal = Callable[["Talk", bytes], "int | None"]
"""Asked of every statement: None lets the server have it, a number is the error that it gets instead."""


@dataclass
class Talk:
    """One connection.

    Attributes:
        transaction: the statements since the last COMMIT or ROLLBACK, without the one at hand.
        owed: what the client is told in place of the server's next answer.
    """

    client: socket.socket
    server: socket.socket
    transaction: list[bytes] = field(default_factory=list)
    owed: bytes | None = None
    greeted: bool = False

    def end(self) -> None:
        """Ends both sides."""
        for one in (self.client, self.server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class AnsweringProxy:
    """TLS must be off, so that statements can be read.

    Args:
        port: where it shall listen; 0: anywhere.

    Attributes:
        port: where it listens, on 127.0.0.1.
        refusal: see Refusal. A COMMIT that is refused is undone: the server gets a ROLLBACK.
        version: what new connections are told to be the server's; None: the truth.
        change: what a client's packet becomes on its way, in the same number of bytes.
        refused: how many statements got an error.
    """

    def __init__(self, server_port: int, refusal: Refusal = lambda talk, statement: None, port: int = 0) -> None:
        self._server_port, self.refusal = server_port, refusal
        self.version: str | None = None
        self.change: Callable[[bytes], bytes] = lambda packet: packet
        self.refused = 0
        self._talks: list[Talk] = []
        self._listener = socket.create_server(("127.0.0.1", port))
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
        talks, self._talks = self._talks, []
        for talk in talks:
            talk.end()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()
                continue
            talk = Talk(client, server)
            self._talks.append(talk)
            for forward in (self._up, self._down):
                threading.Thread(target=forward, args=(talk,), daemon=True).start()

    def _up(self, talk: Talk) -> None:
        with suppress(OSError):
            while data := talk.client.recv(1_048_576):
                statement = statement_of(data)
                errno = self.refusal(talk, statement) if statement else None
                commits = statement.lower() == b"commit"
                if errno is None:
                    talk.server.sendall(self.change(data))
                elif commits:
                    talk.owed = _error(errno)
                    talk.server.sendall(_packet(data[4:].removesuffix(statement) + b"ROLLBACK", 0))
                else:
                    talk.client.sendall(_error(errno))
                self.refused += errno is not None
                ends = commits or statement.lower() == b"rollback"
                talk.transaction = [] if ends else [*talk.transaction, statement]
        talk.end()

    def _down(self, talk: Talk) -> None:
        with suppress(OSError):
            while data := talk.server.recv(1_048_576):
                if not talk.greeted:
                    talk.greeted, data = True, self._greeting(data)
                elif talk.owed is not None:
                    data, talk.owed = talk.owed, None
                talk.client.sendall(data)
        talk.end()

    def _greeting(self, data: bytes) -> bytes:
        end = data.index(b"\0", 5)
        if self.version is None or data[4:5] != b"\x0a":  # a server that refuses says so in an error
            return data
        return _packet(data[4:5] + self.version.encode() + data[end:], data[3])


def _packet(payload: bytes, number: int) -> bytes:
    return struct.pack("<I", len(payload))[:3] + bytes([number]) + payload


def _error(errno: int) -> bytes:
    text = f"#HY000answered by the proxy with {errno}".encode()
    return _packet(b"\xff" + struct.pack("<H", errno) + text, 1)
