"""YAML's guesses: what it would take for something else than text is refused, and quoted it is text."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from qd.config import parse_config
from qd.config.problems import dotted
from qd.config.scalars import yaml_reading
from tests.unit.config.judging import refused, told

WORDS = "no No NO yes on off true False y N ~ null NULL"
NUMBERS = "0123 0o17 0b11 0x1F 1_000 12 -7 +7 010 12:30:00 22:00 1:2 1e3 1E3 1.5 .5 5. .inf -.Inf .nan"
DATES = "2026-01-01 2026-1-1"
TRAPS = [*WORDS.split(), *NUMBERS.split(), *DATES.split()]


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("key", ["host", "name", "user", "password", "unix_socket"])
def test_text_of_the_database_must_be_quoted_where_yaml_would_guess(key: str, trap: str) -> None:
    text = f"database:\n  {key}: {trap}\n"
    if trap.lower() in ("~", "null") and key in ("password", "unix_socket"):
        assert getattr(parse_config(text).database, key) is None
        return
    assert "quotes" in told(text, f"2: database.{key}")


@pytest.mark.parametrize("trap", [trap for trap in TRAPS if " " not in trap and "+" not in trap and "~" not in trap])
def test_names_must_be_quoted_where_yaml_would_guess_and_are_then_those_names(trap: str) -> None:
    text = f"queues:\n  {trap}: {{}}\nworkers:\n  - queues: [{trap}]\n"
    assert 'write it in quotes ("...")' in told(text, f"2: {dotted(('queues', trap))}")
    assert "quotes" in told(text, "4: workers[0].queues[0]")
    config = parse_config(text.replace(trap, f'"{trap}"'))
    assert list(config.queues) == [trap] and config.served == (trap,)


@pytest.mark.parametrize("trap", ["no", "on", "0123", "~"])
def test_handler_names_modules_and_arguments_too(trap: str) -> None:
    problems = refused(f"handlers:\n  modules: [{trap}]\n  commands:\n    {trap}:\n      argv: [prog, {trap}]\n")
    assert [problem.split(": ")[0] for problem in problems] == ["qd.yaml:2", "qd.yaml:4", "qd.yaml:5"]


@pytest.mark.parametrize("trap", [trap for trap in TRAPS if trap.lower() not in ("~", "null")])
def test_a_duration_is_never_guessed(trap: str) -> None:
    told(f"queues:\n  default:\n    timeout: {trap}\n", "3: queues.default.timeout", "write a number with a unit")


def test_a_number_without_a_unit_is_told_so() -> None:
    told("shutdown: {grace: 30}", "1: shutdown.grace", '"30" is a number without a unit', "30s")


@pytest.mark.parametrize("wrong", ["0123", "0x1F", "1_000", "22:00", "1e3", "+5", "5.0", "٥", "yes"])
def test_a_port_is_plain_digits(wrong: str) -> None:
    told(f"database: {{port: {wrong}}}", "1: database.port", "plain decimal digits", "from 1 to 65535")


def test_a_number_in_quotes_is_text() -> None:
    told('database: {port: "3306"}', "1: database.port", "text because of its quotes", "without them")


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", "True", "FALSE", "1", "0", "~"])
def test_only_true_and_false_are_true_and_false(word: str) -> None:
    told(f"console: {{payloads: {word}}}", "1: console.payloads", "true or false")


@given(st.text(alphabet="0123456789_.:+-eExXobOinfaNyYsltrTuUdD~=<", min_size=1, max_size=12))
def test_whatever_yaml_itself_reads_as_something_else_is_known(text: str) -> None:
    assume(text not in ("---", "..."))  # marks of a document's ends, no values
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return
    if not isinstance(value, str | dict | list):
        assert yaml_reading(text) is not None


@pytest.mark.parametrize(
    "text", ["qd", "127.0.0.1", "::1", "mails", "a1", "v1.2.3", "None", "nope", "e3", "1a", "10.0.0", "x:y"]
)
def test_plain_text_needs_no_quotes(text: str) -> None:
    assert yaml_reading(text) is None
