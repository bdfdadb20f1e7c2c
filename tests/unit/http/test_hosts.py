"""A web page in somebody's browser can't read a server that is bound to loopback."""

from __future__ import annotations

import socket

import pytest

from qd.daemon.request import names_loopback
from tests.unit.http.client import Serve, ask, send

OURS = (
    "localhost", "LOCALHOST", "localhost:9833", "127.0.0.1", "127.0.0.1:1", "127.8.9.10", "[::1]", "[::1]:9833",
    "[::ffff:127.0.0.1]:80", "[0:0:0:0:0:0:0:1]",
)  # fmt: skip

STRANGE = (
    "", " ", "evil.example", "127.0.0.1.evil.example", "evil.example:9833", "127.1", "2130706433", "0x7f000001",
    "0177.0.0.1", "localhost.", "localhost.evil.example", "localhost:", "localhost:x", "localhost:1:2", "::1",
    "[::1", "::1]", "[::1]evil", "[::2]", "10.0.0.1", "0.0.0.0", "localhost@evil.example", "evil.example#localhost",
    "localhost/", "localhost, evil.example", "127.0.0.1\t", "localhost:99999999", "١٢٧.0.0.1", "localhost:٣",
)  # fmt: skip


@pytest.mark.parametrize("host", OURS)
def test_a_loopback_address_is_answered_with_or_without_a_port(serve: Serve, host: str) -> None:
    assert ask(serve(), "/page", host=host).status == 200


@pytest.mark.parametrize("host", STRANGE)
def test_no_other_name_passes_for_loopback(host: str) -> None:
    assert not names_loopback(host)


@pytest.mark.parametrize("host", ["", "evil.example", "127.0.0.1.evil.example", "127.1", "localhost.", "[::1"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_request_under_another_name_is_421_and_learns_nothing(serve: Serve, host: str, method: str) -> None:
    server = serve()
    for path in ("/page", "/nowhere"):
        reply = ask(server, path, method, host)
        assert reply.status == 421
        assert reply.body == (b"" if method == "HEAD" else b"Misdirected Request\n")


def test_exactly_one_host_is_asked_for(serve: Serve) -> None:
    server = serve()
    assert send(server, b"GET /page HTTP/1.1\r\n\r\n").status == 421
    assert send(server, b"GET /page HTTP/1.0\r\n\r\n").status == 421
    assert send(server, b"GET /page HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n").status == 421
    assert send(server, b"GET /page HTTP/1.1\r\nHost: localhost\r\nhost: evil.example\r\n\r\n").status == 421
    assert send(server, b"GET /page HTTP/1.0\r\nHost:localhost\r\n\r\n").status == 200


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://localhost/page", 200),
        ("http://127.0.0.1:80/page?x", 200),
        ("http://evil.example/page", 421),
        ("http://localhost@evil.example/page", 421),
        ("http://127.0.0.1.evil.example/page", 421),
        ("page", 421),
        ("*", 421),
        ("http://[::1/page", 400),
    ],
)
def test_the_host_of_an_absolute_target_counts_too(serve: Serve, target: str, status: int) -> None:
    reply = send(serve(), f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert reply.status == status
    assert (b"secret" in reply.body) == (status == 200)


def test_an_absolute_target_does_not_outvote_a_strange_host(serve: Serve) -> None:
    assert send(serve(), b"GET http://localhost/page HTTP/1.1\r\nHost: evil.example\r\n\r\n").status == 421


def test_bound_to_the_network_any_name_is_answered(serve: Serve) -> None:
    server = serve(listen="0.0.0.0:0")
    port = server.address.rpartition(":")[2]
    with socket.create_connection(("127.0.0.1", int(port)), timeout=5) as connection:
        connection.sendall(b"GET /page HTTP/1.1\r\nHost: metrics.shop.example\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
