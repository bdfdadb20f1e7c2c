"""SIGQUIT shows where each thread is, in lines that the log can carry."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from qd.daemon.stacks import DEEPEST, stacks


@dataclass
class Deep:
    """A thread that waits some calls deep."""

    there: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def dive(self, depth: int) -> None:
        if depth:
            self.dive(depth - 1)
        else:
            self.there.set()
            self.go.wait()


@pytest.fixture
def diver() -> Iterator[None]:
    deep = Deep()
    thread = threading.Thread(target=deep.dive, args=(200,), name="qd diver")
    thread.start()
    deep.there.wait()
    yield
    deep.go.set()
    thread.join()


def test_each_thread_is_one_line_innermost_frame_first(diver: None) -> None:
    shown = dict(stacks())
    assert shown["qd diver"].startswith("threading.py:") and " < test_daemon_stacks.py:" in shown["qd diver"]
    assert "test_each_thread_is_one_line" in shown["MainThread"] and "\n" not in "".join(shown.values())


def test_a_stack_without_end_is_cut(diver: None) -> None:
    assert dict(stacks())["qd diver"].count(" < ") == DEEPEST - 1
