"""What `qd status --watch` draws: changes over a window, what fits the terminal, and complaints."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.console import Console

from qd.cli.frame import WINDOW, Seen, frame
from qd.cli.status import Picture
from qd.store.protocol import DaemonRow, QueueDepth, ServerInfo

SERVER = ServerInfo("MariaDB 10.11", "c", None)


def picture(*depths: QueueDepth, daemons: int = 0) -> Picture:
    rows = [DaemonRow(f"h:{n}:x:1", f"web{n}", n, "1.0", ("mails",), ("send",)) for n in range(daemons)]
    return Picture(list(depths), rows, SERVER, "db:3306/qd", frozenset({"mails"}))


def drawn(seen: Seen, now: float, *, height: int = 24, width: int = 120) -> list[str]:
    console = Console(width=width, height=height, force_terminal=False)
    with console.capture() as captured:
        console.print(frame(seen, now, 1.0, height, width))
    return captured.get().splitlines()


def test_a_change_is_of_all_jobs_that_are_there_over_the_last_seconds() -> None:
    seen = Seen()
    assert seen.change("mails") == "-"
    seen.came(picture(QueueDepth("mails", ready=50, delayed=10, reserved=4)), 100.0)
    assert seen.change("mails") == "-"
    seen.came(picture(QueueDepth("mails", ready=40, delayed=10, reserved=4)), 102.0)
    assert seen.change("mails") == "-5.0/s"
    seen.came(picture(QueueDepth("mails", ready=40, delayed=10, reserved=4, failed=9)), 104.0)
    assert seen.change("mails") == "-2.5/s", "dead letters are no jobs that wait"
    for second in range(105, 105 + int(WINDOW) + 2):
        seen.came(picture(QueueDepth("mails", ready=40 + 2000 * (second - 104), delayed=14)), float(second))
    assert seen.change("mails") == "+2,000.0/s", "what is longer ago doesn't count"
    assert seen.change("gone") == "0"


def test_an_outage_is_no_base_for_a_change() -> None:
    seen = Seen()
    seen.came(picture(QueueDepth("mails", ready=50)), 100.0)
    seen.failed("gone")
    seen.came(picture(QueueDepth("mails", ready=10)), 160.0)
    assert seen.change("mails") == "-" and seen.complaint(161.0) is None


def test_a_complaint_tells_how_old_what_is_shown_is() -> None:
    seen = Seen()
    assert seen.complaint(5.0) is None
    seen.asked = 10.0
    assert seen.complaint(11.0) is None
    assert seen.complaint(15.0) == "the database hasn't answered for 5s"
    seen.came(picture(), 16.0)
    seen.asked = None
    seen.failed("connecting: \x1b[2J refused " + "x" * 500)
    said = seen.complaint(20.0)
    assert said is not None and said.startswith("the database is away: connecting: \\x1b[2J refused xxx")
    assert said.endswith("…; what follows is 4s old") and len(said) < 300
    assert "the database is away" in "\n".join(drawn(seen, 20.0))


def test_everything_is_drawn_by_name_where_it_fits() -> None:
    seen = Seen()
    seen.came(picture(QueueDepth("a"), QueueDepth("mails", ready=1, oldest_ready_age=90.0), daemons=2), 1.0)
    lines = drawn(seen, 1.0)
    assert lines[0].startswith("MariaDB 10.11 at db:3306/qd  ") and lines[0].endswith("every 1s, Ctrl-C ends")
    text = "\n".join(lines)
    assert text.index(" a ") < text.index(" mails ") < text.index("web0") < text.index("web1")
    assert "1m30s" in text and "more" not in text and "BLOCKED" not in text
    seen.came(picture(QueueDepth("a", blocked=2)), 2.0)
    assert "BLOCKED" in "\n".join(drawn(seen, 2.0))


def test_what_does_not_fit_is_counted_and_the_fullest_stay() -> None:
    seen = Seen()
    depths = [QueueDepth(f"q{number:03}", ready=number) for number in range(200)]
    seen.came(picture(*depths, daemons=50), 1.0)
    for height in (12, 24, 40, 60):
        lines = drawn(seen, 1.0, height=height)
        assert len(lines) <= height
        text = "\n".join(lines)
        assert "q199" in text and "q001" not in text
        queues = sum("   no daemon" in line or " not in the" in line for line in lines)
        assert f"and {200 - queues} more queues" in text
        daemons = sum(line.startswith(" web") for line in lines)
        assert f"and {50 - daemons} more daemons" in text


@pytest.mark.parametrize("size", [(80, 24), (80, 40), (100, 30), (80, 16)])
def test_rows_whose_cells_are_folded_leave_no_queue_out_that_has_more_jobs(size: tuple[int, int]) -> None:
    width, height = size
    depths = [QueueDepth(f"a-queue-with-a-long-name-{number:03}", ready=1_000_000 + number) for number in range(40)]
    seen, served = Seen(), tuple(depth.queue for depth in depths)
    shown = picture(*depths)
    daemon = DaemonRow("h:1:x:1", "web1", 1, "1.0", served[:12], ("send",))
    seen.came(replace(shown, daemons=[daemon, replace(daemon, host="web2")]), 1.0)
    lines = drawn(seen, 1.0, height=height, width=width)
    assert len(lines) <= height
    text = re.sub(r"\s", "", "".join(lines))
    said = re.search(r"and(\d+)morequeues", text)
    assert said is not None
    counts = [number for number in range(40) if f"1,000,{number:03}" in text]
    assert counts and counts == list(range(int(said[1]), 40)), "those with most are drawn, and the others counted"


def test_a_daemon_that_is_overdue_is_drawn_as_such() -> None:
    seen, dead = Seen(), DaemonRow("h:1:x:1", "web1", 7, "1.0", ("mails",), ("send",), seen_ago=35.2)
    seen.came(Picture([QueueDepth("mails")], [dead], SERVER, "db:3306/qd", frozenset({"mails"})), 1.0)
    text = "\n".join(drawn(seen, 1.0))
    assert "silent for 35s" in text and "who serves it is silent" in text


def test_before_the_first_answer_it_says_that_it_looks() -> None:
    assert drawn(Seen(), 0.0) == ["looking ...  every 1s, Ctrl-C ends"]
