"""What a log line looks like in each format, whatever its values are."""

from __future__ import annotations

import json
import os
import re
from enum import Enum
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qd.log.lines import VALUE_LIMIT, choose, formatter

NOW = 1714564800.1239
FIELDS = [("event", "job.failed"), ("job_id", 7), ("error", 'no "such"\nrow'), ("retry_in", None), ("seconds", 0.25)]
VALUES = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=200),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.binary(max_size=20),
    st.lists(st.text(max_size=5), max_size=3),
)
NAMES = ("event", "queue", "type", "error", "result")
PAIR = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))(?: |$)')
UNQUOTED = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}


def parse(text: str) -> dict[str, str]:
    """Reads logfmt as a log collector does."""
    found = {}
    end = 0
    for match in PAIR.finditer(text):
        assert match.start() == end, f"not logfmt: {text!r}"
        end = match.end()
        quoted = match[2]
        found[match[1]] = re.sub(r"\\.", lambda m: UNQUOTED[m[0]], quoted) if quoted is not None else match[3]
    assert end == len(text)
    return found


def as_text(value: object) -> str:
    return ("false", "true")[value] if isinstance(value, bool) else str(value)


def test_text_is_logfmt_with_the_time_in_utc() -> None:
    assert formatter("text")(NOW, "warning", FIELDS) == (
        'time=2024-05-01T12:00:00.123Z level=warning event=job.failed job_id=7 error="no \\"such\\"\\nrow" seconds=0.25'
    )


def test_json_is_an_object_with_the_same_fields() -> None:
    assert json.loads(formatter("json")(NOW, "warning", FIELDS)) == {
        "time": "2024-05-01T12:00:00.123Z",
        "level": "warning",
        "event": "job.failed",
        "job_id": 7,
        "error": 'no "such"\nrow',
        "seconds": 0.25,
    }


@pytest.mark.parametrize(("level", "number"), [("error", 3), ("warning", 4), ("info", 6), ("debug", 7)])
def test_journal_lines_begin_with_the_syslog_level_and_leave_the_time_to_the_journal(level: str, number: int) -> None:
    line = formatter("journal")(NOW, level, FIELDS)
    assert line.startswith(f"<{number}>event=job.failed job_id=7 ") and "time=" not in line


@given(st.dictionaries(st.sampled_from(NAMES), VALUES))
def test_any_value_makes_one_whole_line_with_the_same_fields_in_every_format(values: dict[str, object]) -> None:
    pairs = list(values.items())
    lines = {name: formatter(name)(NOW, "info", pairs) for name in ("text", "json", "journal")}
    for line in lines.values():
        assert line.encode("utf-8", "strict").isascii() or not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029]", line)
        assert not re.search("[\x00-\x1f\x7f]", line)
    fields = json.loads(lines["json"])
    del fields["time"], fields["level"]
    assert set(fields) == set(values)
    said = parse(lines["text"].split(" ", 2)[2] if values else "")
    assert said == parse(lines["journal"].removeprefix("<6>"))
    assert said == {name: as_text(value) for name, value in fields.items()}


def test_a_long_value_is_cut_and_says_so() -> None:
    for name in ("text", "json"):
        line = formatter(name)(NOW, "info", [("error", "é" * 100_000)])
        assert "é … [cut]" in line and len(line.encode()) < VALUE_LIMIT + 100


class Label(str, Enum):
    FAILED = "failed"


class Hostile:
    def __str__(self) -> str:
        raise SystemExit(1)

    def __eq__(self, other: object) -> bool:
        raise SystemExit(2)

    __class__ = property(lambda self: 1 / 0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (1 << 80, str(1 << 80)),
        (True, True),
        (1.00000049, 1.0),
        (Label.FAILED, "failed"),
        (b"\xff", "b'\\xff'"),
        ("\x1b[2J\udcff", "\\x1b[2J\\udcff"),
    ],
)
def test_a_value_that_json_does_not_know_is_text(value: object, shown: object) -> None:
    assert json.loads(formatter("json")(NOW, "info", [("value", value)]))["value"] == shown


def test_a_hostile_value_is_named() -> None:
    line = formatter("json")(NOW, "info", [("value", Hostile())])
    assert json.loads(line)["value"] == "[no text: SystemExit in __str__]"
    line = formatter("json")(NOW, "info", [("value", 10**5000)])
    assert json.loads(line)["value"] == "[no text: ValueError in __str__]"


def test_auto_is_json_in_a_file_and_journal_prefixes_where_systemd_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "log").open("w") as file:
        fd = file.fileno()
        found = os.fstat(fd)
        monkeypatch.delenv("JOURNAL_STREAM", raising=False)
        assert choose("auto", fd) == "json"
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
        assert choose("auto", fd) == "journal"
        assert choose("text", fd) == "text"
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino + 1}")
        assert choose("auto", fd) == "json"
    assert choose("auto", fd) == "json"  # closed by now


def test_auto_is_text_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    ours, terminal = os.openpty()
    assert choose("auto", terminal) == "text"
    os.close(ours)
    os.close(terminal)
