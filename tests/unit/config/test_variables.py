"""`${NAME}`: put in after parsing, once, never as YAML, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qd.config import parse_config
from tests.unit.config.judging import refused, told

SECRETS = [
    "a:b", "p#x", "p #x", "$HOME${X}", "$$", "${QD_P}", "\"'", "!tag", "*x", "&x", "yes", "no", "~", "null", "0123",
    "22:00", "one\ntwo\n", " leading", "trailing ", "\t", "a\nconsole: {listen: 0.0.0.0:1}", "{a: b}", "[1]", "%", "@",
    "`", "- a", "\\", "\\n", "päß😀", "a" * 10000,
]  # fmt: skip


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("written", ["${QD_P}", '"${QD_P}"', "'${QD_P}'"])
def test_a_password_arrives_byte_for_byte_and_brings_no_keys(secret: str, written: str) -> None:
    config = parse_config(f"database:\n  password: {written}\n", environ={"QD_P": secret, "X": "wrong"})
    assert config.database.password == secret
    assert config.console.listen is None and config == parse_config("{}").model_copy(
        update={"database": config.database}
    )


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_any_text_arrives_as_a_part_of_a_password(secret: str) -> None:
    config = parse_config('database: {password: "<${P}>"}', environ={"P": secret})
    assert config.database.password == f"<{secret}>"


def test_a_variable_is_the_whole_or_a_part_of_any_value_also_of_numbers_and_durations() -> None:
    text = """
database: {host: "db-${N}.local", port: "33${N}"}
handlers: {commands: {a: {argv: ["${SHELL}", "${N}"]}}}
queues:
  "no": {max_attempts: "${N}", timeout: "${N}m", memory: null, backoff: {factor: "1.${N}"}}
workers: [{queues: ["${QUEUE}"], threads: {max: "${N}"}}]
batch: ${BATCH}
http: {listen: "${HOST}:98${N}"}
console: {payloads: "${OFF}"}
"""
    environ = {"N": "07", "QUEUE": "no", "SHELL": "/bin/sh", "BATCH": "auto", "HOST": "[::1]", "OFF": "false"}
    found = refused(text, environ)
    assert [line.split(": ")[1] for line in found] == ["queues.no.max_attempts", "workers[0].threads.max"]
    config = parse_config(text, environ=environ | {"N": "7"})
    assert (config.database.host, config.database.port) == ("db-7.local", 337)
    assert config.handlers.commands["a"].argv == ("/bin/sh", "7")
    assert config.queues["no"].max_attempts == 7 and config.queues["no"].timeout == 420.0
    assert config.served == ("no",) and config.workers[0].most == 7
    assert config.http.address == ("::1", 987) and config.console.payloads is False


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("a$$b", "a$b"),
        ("$$", "$"),
        ("$${P}", "${P}"),
        ("$$$$", "$$"),
        ("$x", "$x"),
        ("a$", "a$"),
        ("$$${P}", "$p"),
        ("$ {P}", "$ {P}"),
    ],
)
def test_two_dollars_are_one_and_a_lone_one_stays(written: str, value: str) -> None:
    assert parse_config(f"database: {{password: '{written}'}}", environ={"P": "p"}).database.password == value


@pytest.mark.parametrize("key", ["host", "port", "password", "user", "connect_timeout", "driver"])
def test_a_variable_that_is_not_set_is_told_with_key_line_and_name(key: str) -> None:
    told(f"database:\n  {key}: ${{QD_NOT_SET}}\n", f"2: database.{key}", "${QD_NOT_SET}", "not set")


def test_all_variables_of_a_value_that_are_not_set_are_told() -> None:
    told("database:\n  host: ${A}.${B}.${A}.${C}\n", "2: database.host", "${A}, ${B} are variables", environ={"C": "c"})


@pytest.mark.parametrize("key", ["host", "port", "name", "user", "password", "password_file", "connect_timeout"])
def test_a_value_of_variables_that_are_empty_is_refused_a_password_too(key: str) -> None:
    told(f"database:\n  {key}: ${{E}}${{E}}\n", f"2: database.{key}", "set but empty", environ={"E": ""})
    assert parse_config('database: {password: ""}').database.password == ""


@pytest.mark.parametrize("written", ["${}", "${A", "${A-B}", "${A:-x}", "${1A}", "${ A }", "a${", "${a\n  b}"])
def test_what_is_no_name_of_a_variable_is_told_and_not_shown(written: str) -> None:
    problem = told(f"database:\n  password: '{written}'\n", "2: database.password", "write ${NAME}, or $$ for a dollar")
    assert "A-B" not in problem and ":-" not in problem


def test_keys_are_not_expanded() -> None:
    told("queues:\n  ${Q}: {}\n", "2: queues.${Q}", "is not a name", environ={"Q": "default"})
    told("${S}: {}\n", "1: ${S}", "is not a key", environ={"S": "log"})


def test_what_a_variable_holds_is_never_shown() -> None:
    environ = {"P": "geheim"}
    for key in ("port", "connect_timeout", "driver", "host"):
        problem = told(f"database:\n  {key}: /${{P}}\n", f"2: database.{key}", environ=environ)
        assert "geheim" not in problem
    assert "geheim" not in told("http: {listen: '${P}'}", "1: http.listen", '"${P}"', environ=environ)


def test_a_variable_that_is_not_utf8_is_refused() -> None:
    told("database: {password: '${P}'}", "1: database.password", "not UTF-8", environ={"P": "a\udcff"})


def test_in_a_flow_map_the_hint_says_to_quote() -> None:
    (problem,) = refused("database: {password: ${P}}", {"P": "x"})
    assert 'write "${NAME}" in quotes' in problem
