"""What verbs take, and what they refuse before anything is opened."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from qd.cli.enqueue import Moment, read_payload
from qd.cli.root import cli
from qd.cli.work import split, thread_span


def qd(config: Path, *args: str, input: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["--config", str(config), *args], input=input)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration whose database may not be made: its folder isn't there."""
    file = tmp_path / "qd.yaml"
    file.write_text(
        f"database: {{driver: sqlite, path: {tmp_path}/none/qd.sqlite3}}\n"
        "queues: {default: {}, mails: {}}\nworkers: [{queues: [mails, default]}]\n"
    )
    return file


@pytest.mark.parametrize(
    ("given", "span"),
    [((None, None, None), (1, 1)), ((4, None, None), (4, 4)), ((None, 2, 6), (2, 6)), ((None, None, 6), (1, 6))],
)
def test_threads_of_a_foreground_worker(given: tuple[int | None, ...], span: tuple[int, int]) -> None:
    assert thread_span(*given) == span


@pytest.mark.parametrize("given", [(4, 1, None), (4, None, 8), (None, 2, None), (None, 5, 2)])
def test_contradicting_thread_options_are_refused(given: tuple[int | None, ...]) -> None:
    with pytest.raises(click.UsageError):
        thread_span(*given)


def test_queues_of_a_worker_are_taken_in_order_and_once() -> None:
    assert split("critical, default,critical") == ("critical", "default")
    with pytest.raises(click.UsageError):
        split(" , ")


def test_an_unknown_queue_is_refused_by_name_with_the_known_ones(config: Path) -> None:
    result = qd(config, "work", "--queue", "mails,defualt", "--once")
    assert result.exit_code == 78
    assert "'defualt'" in result.stderr
    assert "default, mails" in result.stderr


@pytest.mark.parametrize("args", [("--once", "--drain"), ("--max", "2", "--once"), ("--max", "0"), ("--threads", "0")])
def test_contradicting_or_senseless_limits_of_a_worker_are_refused(config: Path, args: tuple[str, ...]) -> None:
    assert qd(config, "work", *args).exit_code == 2


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-02-03T04:05:06Z", datetime(2026, 2, 3, 4, 5, 6, tzinfo=timezone.utc)),
        ("2026-02-03T04:05:06+01:00", datetime(2026, 2, 3, 3, 5, 6, tzinfo=timezone.utc)),
    ],
)
def test_a_time_with_a_zone_is_that_moment(text: str, moment: datetime) -> None:
    assert Moment().convert(text, None, None) == moment


@pytest.mark.parametrize("text", ["2026-02-03T04:05:06", "2026-02-03", "tomorrow", ""])
def test_a_time_without_a_zone_is_refused(config: Path, text: str) -> None:
    assert qd(config, "enqueue", "send", "--at", text).exit_code == 2


@pytest.mark.parametrize("payload", ["{not json", "NaN", "[1e999]", "@/no/such/file", "[" * 40 + "]" * 40, ""])
def test_a_payload_that_is_no_json_is_refused_before_a_connection(config: Path, payload: str) -> None:
    result = qd(config, "enqueue", "send", payload)
    assert result.exit_code == 2
    assert "payload: " in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        "--priority asap", "--priority 4", "--delay 5", "--delay 5parsecs", "--max-attempts 0", "--max-attempts 70000",
        "--count 0", "--delay 1h --at 2026-02-03T04:05:06Z", "--unique k --count 2", "--unique=", "--queue a/b",
        "--at 2040-01-01T00:00:00Z", f"--unique {'k' * 192}",
    ],
)  # fmt: skip
def test_an_enqueue_that_cannot_be_right_is_refused_before_a_connection(config: Path, options: str) -> None:
    result = qd(config, "enqueue", "send", "{}", *options.split())
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--at", "2040-01-01T00:00:00Z"), "2040-01-01T00:00:00+00:00"),
        (("--delay", "٣s"), "not a duration"),
        (("@",), "name a file"),
    ],
)
def test_a_refusal_says_the_value_as_people_write_it(config: Path, option: tuple[str, ...], words: str) -> None:
    result = qd(config, "enqueue", "send", *option)
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize("job_type", ["qd.post", "two words", "", "x" * 129])
def test_a_type_that_no_user_may_have_is_refused(config: Path, job_type: str) -> None:
    assert qd(config, "enqueue", job_type).exit_code == 2


def test_a_queue_that_the_configuration_lacks_is_refused_unless_forced(config: Path) -> None:
    result = qd(config, "enqueue", "send", "--queue", "mial")
    assert result.exit_code == 1
    assert "'mial'" in result.stderr
    assert "--force" in result.stderr


def test_a_payload_is_read_byte_for_byte_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_bytes(b'{"b": 1.0,\r\n "a": "\\u00e9"}\n')
    assert read_payload(f"@{file}") == '{"b": 1.0,\r\n "a": "\\u00e9"}\n'


def test_a_payload_that_is_no_text_is_refused_at_its_byte(tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(click.UsageError, match="byte 7"):
        read_payload(f"@{file}")


def test_a_payload_that_lost_its_quotes_to_the_shell_is_told_so(config: Path) -> None:
    assert "quote it for the shell" in qd(config, "enqueue", "send", "{to: 7}").stderr


@pytest.mark.parametrize(
    "command",
    [
        "failed retry", "failed retry 5 --all", "failed delete 5 --queue mails", "failed delete --queue mails",
        "failed list --reason odd", "failed purge --older-than soon", "jobs delete", "jobs delete 5 --queue mails",
        "jobs release", "jobs show abc", "jobs show 0", "jobs list --limit 0", "jobs list --state odd",
        "status --watch --json", "queues pause",
    ],
)  # fmt: skip
def test_a_verb_that_leaves_open_what_it_means_is_refused(config: Path, command: str) -> None:
    assert qd(config, *command.split()).exit_code == 2


@pytest.mark.parametrize(
    "verb",
    [
        ("jobs", "list"), ("jobs", "delete", "--yes"), ("failed", "list"), ("failed", "list", "--json"),
        ("failed", "retry", "--all", "--yes"), ("failed", "delete", "--all", "--yes"), ("recover",),
    ],
)  # fmt: skip
def test_what_metrics_call_unknown_queues_is_no_filter_and_the_refusal_says_what_is(
    config: Path, verb: tuple[str, ...]
) -> None:
    refused = qd(config, *verb, "--queue", "_other")
    assert (refused.exit_code, refused.stdout) == (1, "")
    (line,) = refused.stderr.splitlines()
    assert "all queues that the configuration doesn't know; `qd status` names them" in line
