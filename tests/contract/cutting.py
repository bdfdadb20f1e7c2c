"""A TCP proxy before a MySQL server that loses a COMMIT's answer, or the COMMIT itself, when told to."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class CuttingProxy:
    """Forwards to a server; TLS must be off, so that statements can be read.

    Attributes:
        port: where it listens, on 127.0.0.1.
        cut: None; `before` loses the next COMMIT before the server has it, `after` lets the server
            have it and loses its answer. Set back to None once it has cut.
        spared: COMMITs that pass before the one that is cut.
        refusing: new connections are closed at once.
    """

    def __init__(self, port: int) -> None:
        self._server_port = port
        self.cut: str | None = None
        self.spared = 0
        self.refusing = False
        self._mute: set[socket.socket] = set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
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
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            _end(*pair)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refusing:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._server_port))
            self._pairs.append((client, server))
            for source, target, up in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._forward, args=(source, target, up), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, up: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if up and self.cut and data[4:5] == b"\x03" and data.lower().endswith(b"commit"):
                    if not self.spared:
                        self._cut(source, target, data)
                        return
                    self.spared -= 1
                if target not in self._mute:
                    target.sendall(data)
        _end(source, target)

    def _cut(self, client: socket.socket, server: socket.socket, commit: bytes) -> None:
        how, self.cut = self.cut, None
        self._mute.add(client)
        with suppress(OSError):
            if how == "after":
                server.sendall(commit)
                server.shutdown(socket.SHUT_WR)
                while server.recv(65_536):  # the server ends its side once it has answered
                    pass
        _end(client, server)


def _end(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
