"""Slow, greedy, broken and malicious clients cost little, and never keep a scraper out."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qd.daemon.http import PLACES, Answer, HttpServer
from qd.daemon.request import HEAD, Malformed, parse_head
from qd.errors import QdError
from tests.support.waiting import wait_for
from tests.unit.http.client import Serve, ask, connect, read_all, send


def requests_running() -> int:
    return sum(thread.name == "qd http request" for thread in threading.enumerate())


MALFORMED = (
    b"\r\n\r\n", b"GET\r\n\r\n", b"GET /page\r\n\r\n", b"GET /page HTTP/9.9\r\n\r\n", b"GET /page HTTP/2.0\r\n\r\n",
    b"get /page HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET  /page HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /page HTTP/1.1\nHost: localhost\r\n\r\n", b"GET /page HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n",
    b"GET /page HTTP/1.1\r\nHost : localhost\r\n\r\n", b"GET /page HTTP/1.1\r\nno colon\r\n\r\n",
    b"GET /page HTTP/1.1\r\nHost: localhost\r\nX: a\nHost: evil\r\n\r\n", b"GET /page HTTP/1.1\r\n: x\r\n\r\n",
    b"GET /p\xc3\xa4ge HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /page HTTP/1.1\r\nHost: local\x00host\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"\x00" * 100 + b"\r\n\r\n",
)  # fmt: skip


@pytest.mark.parametrize("raw", MALFORMED)
def test_a_malformed_request_is_a_bare_400(
    serve: Serve, raw: bytes, faults: list[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    server = serve()
    reply = send(server, raw)
    assert (reply.status, reply.body) == (400, b"Bad Request\n")
    assert ask(server, "/page").status == 200
    assert faults == []
    assert capfd.readouterr() == ("", "")


@settings(max_examples=200, deadline=None, database=None)
@given(st.binary(max_size=300) | st.lists(st.sampled_from(MALFORMED)).map(b"".join))
def test_any_bytes_are_a_request_or_malformed(head: bytes) -> None:
    try:
        request = parse_head(head)
    except Malformed:
        return
    assert request.hosts


@pytest.mark.parametrize("part", [b"GET /" + b"a" * HEAD, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * HEAD])
def test_a_request_that_is_too_large_is_431(serve: Serve, part: bytes) -> None:
    assert send(serve(), part).status == 431


def test_a_head_is_read_in_a_time_that_grows_with_its_length_only() -> None:
    for filling in (b" ", b"\t", b"a", b":", b" a"):
        with pytest.raises(Malformed):
            parse_head(b"GET / HTTP/1.1\r\nX:" + filling * (HEAD // len(filling)) + b"\x00")


def test_clients_that_never_finish_their_request_do_not_keep_others_out(serve: Serve) -> None:
    server = serve()
    with ExitStack() as stack:
        for _ in range(3 * PLACES):
            stack.enter_context(closing(connect(server))).sendall(b"GET /page HT")
        for _ in range(5):
            assert ask(server, "/page").status == 200
        assert requests_running() <= PLACES


def test_a_client_that_dribbles_is_cut_off_in_time(serve: Serve) -> None:
    begun = time.monotonic()
    with closing(connect(serve(patience=0.5))) as connection:
        connection.sendall(b"GET /page HTTP/1.1\r\nX: ")

        def cut_off() -> bool:
            try:
                connection.sendall(b"y")
            except OSError:
                return True
            return False

        wait_for(cut_off, 5, "the end of the dribbling")
    assert time.monotonic() - begun >= 0.4
    wait_for(lambda: requests_running() == 0, 5, "its thread to end")


def test_a_client_that_takes_no_answer_gives_its_place_back(serve: Serve) -> None:
    server = serve({"/big": lambda accept: Answer(200, b"x" * 50_000_000)}, patience=0.5)
    with closing(connect(server)) as connection:
        connection.sendall(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for(lambda: requests_running() == 1, 5, "the answer to begin")
        wait_for(lambda: requests_running() == 0, 5, "the server to give up")


def test_when_every_place_is_being_answered_the_next_client_is_turned_away_soon(serve: Serve) -> None:
    go_on = threading.Event()

    def held(accept: str) -> Answer:
        assert go_on.wait(20)
        return Answer(200, "held")

    server = serve({"/held": held})
    with ExitStack() as stack:
        waiting = [stack.enter_context(closing(connect(server))) for _ in range(PLACES)]
        for connection in waiting:
            connection.sendall(b"GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for(lambda: requests_running() == PLACES, 10, "all places to be taken")
        with closing(connect(server)) as late:
            assert read_all(late) == b""
        go_on.set()
        assert all(read_all(connection).endswith(b"held") for connection in waiting)


def test_clients_that_take_no_answer_do_not_keep_others_out(serve: Serve) -> None:
    big = b"x" * 5_000_000  # more than the kernel takes for a client that reads nothing
    routes = {"/big": lambda accept: Answer(200, big), "/page": lambda accept: Answer(200, "page")}
    server = serve(routes, patience=60)
    host, _, port = server.address.rpartition(":")
    with ExitStack() as stack:
        for _ in range(PLACES):
            connection = stack.enter_context(closing(socket.socket()))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect((host, int(port)))
            connection.sendall(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for(lambda: requests_running() == PLACES, 10, "all places to be taken")
        begun = time.monotonic()
        wait_for(lambda: time.monotonic() - begun > 1.1, 5, "them to be slow")
        for _ in range(3):
            assert ask(server, "/page").status == 200


def test_ten_scrapers_at_once_are_all_answered_and_no_thread_stays(serve: Serve) -> None:
    server = serve()
    with ThreadPoolExecutor(10) as pool:
        replies = list(pool.map(lambda _: ask(server, "/page").status, range(300)))
    assert replies == [200] * 300
    wait_for(lambda: requests_running() == 0, 5, "all threads to end")


def test_the_bound_address_is_the_configured_one(serve: Serve) -> None:
    server = serve(listen="127.0.0.1:0")
    host, _, port = server.address.rpartition(":")
    assert host == "127.0.0.1"
    with pytest.raises(QdError, match=rf"^http\.listen: can't listen at 127\.0\.0\.1:{port}: Address already in use$"):
        HttpServer(f"127.0.0.1:{port}", {})
    server.close()
    HttpServer(f"127.0.0.1:{port}", {}).close()


def test_ipv6_is_served_where_the_machine_has_it(serve: Serve) -> None:
    try:
        server = serve(listen="[::1]:0")
    except QdError as error:
        pytest.skip(f"no IPv6 here: {error}")
    assert server.address.startswith("[::1]:")
    assert ask(server, "/page").status == 200


NO_ADDRESS = ("", ":80", "9833", "localhost", "127.0.0.1:99999", "a b:1", "[::1]", "::1:80", "h:1\n")


@pytest.mark.parametrize("listen", NO_ADDRESS)
def test_an_address_that_is_none_is_refused_in_one_line(listen: str) -> None:
    with pytest.raises(QdError, match=r"^http\.listen: .*; write (host:port|a port)") as caught:
        HttpServer(listen, {})
    assert "\n" not in str(caught.value)


def test_close_is_quick_whatever_clients_do_and_harmless_before_the_start(serve: Serve) -> None:
    HttpServer("127.0.0.1:0", {}).close()
    server = serve()
    with closing(connect(server)) as connection:
        connection.sendall(b"GET ")
        wait_for(lambda: requests_running() == 1, 5, "the client to be read")
        server.close()
        assert connection.recv(100) == b""
    wait_for(lambda: requests_running() == 0, 5, "its thread to end")
    with pytest.raises(OSError):
        connect(server)


def sockets(pid: int | str = "self") -> set[str]:
    """The sockets that a process holds."""
    links = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # the directory's own, or one closed meanwhile
            links.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return {link for link in links if link.startswith("socket:")}


def test_programs_that_a_handler_starts_inherit_no_socket(serve: Serve) -> None:
    before = sockets()
    server = serve()
    wait = [sys.executable, "-c", "input()"]
    with closing(connect(server)), subprocess.Popen(wait, stdin=subprocess.PIPE, close_fds=False) as child:
        assert sockets() - before
        assert not sockets(child.pid) & (sockets() - before)
        child.communicate(b"\n", timeout=10)


def test_a_child_that_a_handler_forks_does_not_hold_the_port(serve: Serve) -> None:
    before = sockets()
    serve()
    ours = sockets() - before
    pid = os.fork()
    if pid == 0:  # the child: lives on, as one that was left behind would
        signal.pause()
        os._exit(0)
    try:
        assert ours
        wait_for(lambda: not ours & sockets(pid), 5, "the child to let go of the listening socket")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_server_without_file_descriptors_left_answers_once_there_are_some(serve: Serve) -> None:
    server = serve()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    host, _, port = server.address.rpartition(":")
    with closing(socket.socket()) as first, closing(socket.socket()) as client, ExitStack() as held:
        highest = max(int(fd) for fd in os.listdir("/proc/self/fd"))
        held.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 10, limits[1]))
        with suppress(OSError):
            while True:
                held.callback(os.close, os.dup(0))
        first.connect((host, int(port)))  # the kernel gave accept its descriptor before it began to wait
        client.connect((host, int(port)))
        client.sendall(b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.recv(1)
        held.close()
        client.settimeout(10)
        assert b"secret" in read_all(client)
