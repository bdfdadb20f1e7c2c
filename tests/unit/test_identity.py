"""Tokens are never used twice, also where host name and process id are another's."""

from __future__ import annotations

import re
import threading

import pytest

from qd.identity import Identity


def test_two_processes_of_the_same_host_and_pid_have_different_names() -> None:
    first, second = Identity(), Identity()  # as two containers have them, or one that is started again
    assert (first.host, first.pid) == (second.host, second.pid)
    assert first.name != second.name
    assert first.token("default-1") != second.token("default-1")


def test_threads_that_ask_at_once_never_get_the_same_token() -> None:
    identity, found = Identity(), list[list[str]]()

    def ask() -> None:
        found.append([identity.token("default-1") for _ in range(5000)])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tokens = [token for some in found for token in some]
    assert len(tokens) == len(set(tokens)) == 20_000


def test_whatever_host_and_worker_are_called_the_token_fits_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("h\xf6st:\n" + "x" * 300, ""):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        token = Identity().token("w" * 300)
        assert len(token) <= 255 and re.fullmatch(r"[A-Za-z0-9_.-]+:\d+:[0-9a-f]+:w+:\d+", token)
