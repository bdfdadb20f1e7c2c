"""The daemon's HTTP: /metrics, /livez, /readyz and a page of links, all from memory.

Answers GET and HEAD, one request a connection, and is bounded in every way: threads, the size of
a request, the time to send one and to take its answer. When all places are taken, the connection
that has been longest without a whole request gives way, or else the one that has been longest in
taking its answer, so that slow clients can't keep a scraper out. Bound to loopback it answers only
requests that name a loopback address as their host: a web page in somebody's browser can't read it
under a name of its own.
May import: daemon.request, config, errors, clock.
"""

from __future__ import annotations

import os
import socket
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

from qd.clock import monotonic
from qd.config import is_loopback, listen_address
from qd.daemon.request import Malformed, Request, names_loopback, parse_head, read_head
from qd.errors import QdError

PLACES = 64
"""Connections at a time."""

PATIENCE = 5.0
"""Seconds that a client has to send its whole request, and again to take the whole answer."""

TURN = 1.0
"""Seconds that a client waits for a place before it is turned away; a client that takes longer over
its answer may have to leave its place to it."""

DRAIN_WITHIN = 0.5
"""Seconds for a body that nobody asked for: closing on unread bytes would cut the answer off."""

PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back.

    Attributes:
        text: a text, or the page's bytes.
    """

    status: int
    text: str | bytes
    content_type: str = PLAIN


Route = Callable[[str], Answer]
"""Answers a path; given the request's Accept header."""


def daemon_routes(
    page: Callable[[str], tuple[bytes, str]],
    overdue: Callable[[], str | None],
    unready: Callable[[], str | None],
) -> dict[str, Route]:
    """The daemon's pages.

    Args:
        page: the metrics page and its content type, by the Accept header.
        overdue: None while every loop keeps its deadline, else which doesn't, in one line.
        unready: None while the daemon can claim, else why it can't, in one line.
    """

    def metrics(accept: str) -> Answer:
        body, content_type = page(accept)
        return Answer(200, body, content_type)

    return {
        "/": lambda accept: Answer(200, INDEX, "text/html; charset=utf-8"),
        "/metrics": metrics,
        "/livez": lambda accept: _verdict(overdue()),
        "/readyz": lambda accept: _verdict(unready()),
    }


def _verdict(trouble: str | None) -> Answer:
    return Answer(200, "ok\n") if trouble is None else Answer(503, f"{trouble}\n")


INDEX = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>qd</title>
<h1>qd</h1>
<ul>
<li><a href="/metrics">/metrics</a> for Prometheus
<li><a href="/livez">/livez</a> does every loop keep its deadline?
<li><a href="/readyz">/readyz</a> can jobs be claimed?
</ul>
</html>
"""


def _said(status: HTTPStatus) -> Answer:
    return Answer(status.value, f"{status.phrase}\n")


def to_bytes(answer: Answer, *, body: bool = True) -> bytes:
    """The answer as it goes over the wire, in one piece."""
    content = answer.text.encode("utf-8", "replace") if isinstance(answer.text, str) else answer.text
    lines = (
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(content)}",
        *(("Allow: GET, HEAD",) if answer.status == HTTPStatus.METHOD_NOT_ALLOWED else ()),
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'",
        "Connection: close",
        "\r\n",
    )
    return "\r\n".join(lines).encode("latin-1") + (content if body else b"")


class _Places:
    """The connections that there are, at most PLACES; knows which send their request, which take the answer."""

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(PLACES)
        self._lock = threading.Lock()
        self._reading: dict[socket.socket, None] = {}
        self._sending: dict[socket.socket, float] = {}

    def take(self, connection: socket.socket) -> bool:
        """A place, if need be that of the one that has been slowest. False: all are being answered."""
        if not self._free.acquire(blocking=False):
            if not self.hurry(1):
                self._hurry_taker()
            if not self._free.acquire(timeout=TURN):
                return False
        with self._lock:
            self._reading[connection] = None
        return True

    def hurry(self, count: int = PLACES) -> int:
        """Ends the reading of the oldest; their threads then see the end of the request. How many there were."""
        with self._lock:
            oldest = list(self._reading)[:count]
            for connection in oldest:
                del self._reading[connection]
                _break_off(connection)
        return len(oldest)

    def _hurry_taker(self) -> None:
        """Ends the answer that has been sent longest, if that is longer than anybody should wait."""
        with self._lock:
            slowest = next(iter(self._sending), None)
            if slowest is not None and monotonic() - self._sending[slowest] > TURN:
                del self._sending[slowest]
                _break_off(slowest)

    def sends(self, connection: socket.socket) -> None:
        """Its answer is made and goes out from now on."""
        with self._lock:
            self._sending[connection] = monotonic()

    def has_read(self, connection: socket.socket) -> None:
        """Its request is there: it is answered, whoever else comes."""
        with self._lock:
            self._reading.pop(connection, None)

    def leave(self, connection: socket.socket) -> None:
        """Closes it and frees its place."""
        with self._lock:
            self._reading.pop(connection, None)
            self._sending.pop(connection, None)
        connection.close()
        self._free.release()


def _break_off(connection: socket.socket) -> None:
    with suppress(OSError):  # the client was quicker
        connection.shutdown(socket.SHUT_RDWR)


class HttpServer:
    """Serves routes until it is closed. Binds at once, answers from `start` on.

    Args:
        listen: HOST:PORT, as the configuration has it; port 0 takes a free one.
        routes: by path.
        on_fault: told what a route raised; the client gets a bare 500.
        patience: seconds that a client has to send its request, and again to take the answer.

    Raises:
        QdError: the address can't be had; one line that names it.
    """

    def __init__(
        self,
        listen: str,
        routes: Mapping[str, Route],
        on_fault: Callable[[BaseException], None] = lambda error: None,
        patience: float = PATIENCE,
    ) -> None:
        self._routes, self._on_fault, self._patience = routes, on_fault, patience
        self._socket = _bind(listen)
        self._loopback = is_loopback(self._socket.getsockname()[0])
        self._places = _Places()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="qd http", daemon=True)

    @property
    def address(self) -> str:
        """HOST:PORT as bound, the port that was found for 0 in it."""
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stops listening, within a second; an answer that is under way may still end."""
        self._closed.set()
        with suppress(OSError):  # wakes the thread that waits in accept
            self._socket.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):  # a handler has closed it
            self._socket.close()
        self._places.hurry()
        if self._thread.ident is not None:
            self._thread.join(1.0)

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed; or no file descriptor is left: not in a hot loop
                self._closed.wait(0.1)
                continue
            self._admit(connection)

    def _admit(self, connection: socket.socket) -> None:
        if not self._places.take(connection):
            connection.close()
            return
        try:
            threading.Thread(target=self._talk, args=(connection,), name="qd http request", daemon=True).start()
        except RuntimeError as error:  # no more threads: this client goes without
            self._places.leave(connection)
            self._on_fault(error)

    def _talk(self, connection: socket.socket) -> None:
        try:
            self._exchange(connection)
        except OSError:  # the client is slow or gone
            pass
        except Exception as error:  # a bug of ours must not print a traceback for each request
            self._on_fault(error)
        finally:
            self._places.leave(connection)

    def _exchange(self, connection: socket.socket) -> None:
        body = True
        try:
            head = read_head(connection, self._patience)
            self._places.has_read(connection)
            if head is None:
                return
            request = parse_head(head)
            answer, body = self._answer(request), request.method != "HEAD"
        except Malformed as refused:
            answer = _said(refused.status)
        self._places.sends(connection)
        connection.settimeout(self._patience)  # sendall: for the whole of it, not for each part
        connection.sendall(to_bytes(answer, body=body))
        connection.shutdown(socket.SHUT_WR)
        if answer.status not in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE):
            _drain(connection)

    def _answer(self, request: Request) -> Answer:
        if self._loopback and not all(names_loopback(host) for host in request.hosts):
            return _said(HTTPStatus.MISDIRECTED_REQUEST)
        if request.method not in ("GET", "HEAD"):
            return _said(HTTPStatus.METHOD_NOT_ALLOWED)
        route = self._routes.get(request.path)
        if route is None:
            return _said(HTTPStatus.NOT_FOUND)
        try:
            return route(request.accept)
        except Exception as error:  # said once, to whoever watches; the client learns nothing
            self._on_fault(error)
            return _said(HTTPStatus.INTERNAL_SERVER_ERROR)


_LISTENING: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _let_go() -> None:
    """In a child that a handler forks: it would hold the port after the daemon's end."""
    for listening in list(_LISTENING):
        listening.close()


os.register_at_fork(after_in_child=_let_go)


def _bind(listen: str) -> socket.socket:
    """A listening socket; Python's own close-on-exec holds for it and for what it accepts."""
    try:
        host, port = listen_address(listen)
        family, address = _resolve(host, port)
        dual = family == socket.AF_INET6 and socket.has_dualstack_ipv6()  # [::] means everything
        listening = socket.create_server(address, family=family, backlog=128, dualstack_ipv6=dual)
    except ValueError as error:
        raise QdError(f"http.listen: {listen!r} {error}") from None
    except OSError as error:
        reason = str(error.strerror or error).split(" (while")[0]
        raise QdError(f"http.listen: can't listen at {listen}: {reason}") from None
    _LISTENING.add(listening)
    return listening


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """The address to bind; of a name with several the IPv4 one."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    return family, (str(address[0]), int(address[1]))


def _drain(connection: socket.socket) -> None:
    """Takes what is left of a request that was refused, within bounds."""
    deadline = monotonic() + DRAIN_WITHIN
    for _ in range(64):
        connection.settimeout(max(0.001, deadline - monotonic()))
        if not connection.recv(4096):
            return
