"""The demo's lines where there is no terminal."""

from __future__ import annotations

import io

from rich.console import Console

from qd.demo.view import LiveView
from qd.store.protocol import QueueDepth


def test_no_rate_is_shown_while_all_that_is_left_waits_for_its_time() -> None:
    out = io.StringIO()
    view = LiveView(Console(file=out, width=80), 10, "http://127.0.0.1:9833/metrics")
    view.show(QueueDepth("default"), 10)
    assert out.getvalue() == "10 of 10 done: ready 0  delayed 0  reserved 0  stale 0  failed 0\n"
    view.show(QueueDepth("default", ready=1), 10)
    assert "jobs/s: ready 1" in out.getvalue()
