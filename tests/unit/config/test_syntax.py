"""Files that are no configuration at all, and what YAML can do and a configuration needs not."""

from __future__ import annotations

from pathlib import Path

import pytest

from qd.config import load_config, parse_config
from qd.config.load import MAX_BYTES
from qd.errors import ConfigError
from tests.unit.config.judging import refused, told


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "\ufeff", "---\n...\n"])
def test_an_empty_file_is_refused_with_an_example(text: str) -> None:
    (problem,) = refused(text)
    assert problem == "qd.yaml:1: is empty; a minimal example: queues: {default: {}}"
    parse_config("queues: {default: {}}")


@pytest.mark.parametrize("text", ["- a\n", "[a]", "text", "7", "null", "~", "*a", '""'])
def test_a_file_that_is_no_map_is_refused(text: str) -> None:
    (problem,) = refused(text)
    assert problem.startswith("qd.yaml:1: the file is ") and "write a map" in problem


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("database:\n\tport: 1\n", 2),
        ("database:\n  port:\t3306\n", 2),
        ("queues:\n  default:\n    timeout: 5m\n\tlease: 90s\n", 4),
        ("http: {refresh: 5s,\n\tlisten: null}\n", 2),
    ],
)
def test_a_tab_is_told_as_a_tab_at_its_line(text: str, line: int) -> None:
    (problem,) = refused(text)
    assert problem == f"qd.yaml:{line}: a tab stands where only blanks may; indent with blanks"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("database: {port: 1", 1),
        ("database:\n  user: 'it's'\n", 2),
        ('database:\n  password: "never closed\n  user: qd\n', 2),
        ("database:\n  password:secretword\n  user: x\n", 3),
        ("database:\n  password: secretword: x\n", 2),
        ("database:\n  password: @secretword\n", 2),
        ("database:\n  password: |secretword\n", 2),
        ("database:\n  password: %secretword\n", 2),
        ('database:\n  password: "secretword\\q"\n', 2),
        ('database:\n  password: "secretword\\UFFFFFFFF"\n', 2),
        ("database:\n  password: secret\x07word\n", 2),
        ("database:\n  password: !no!secretword x\n", 2),
        ("database:\n password: x\n  user: secretword\n", 3),
        ("%YAML 1." + "9" * 5000 + "\n---\na: 1\n", 1),
        ("a: 1\n---\nb: 2\n", 2),
        ("a: 1\n...\n---\n", 3),
        ("a: " + "[" * 100000, 1),
        ("- " * 100000, 1),
        ("a: " + "{b: " * 5000, 1),
    ],
)
def test_what_is_not_one_yaml_document_is_told_at_its_line_and_never_quoted(text: str, line: int) -> None:
    (problem,) = refused(text)
    assert problem.startswith(f"qd.yaml:{line}: ")
    assert "secret" not in problem and "word" not in problem.removeprefix("write a word")


@pytest.mark.parametrize(
    "value",
    ["secretword: x", "[secretword]", "{secretword}", "!secretword", "*secretword", "&secretword", "!!str secretword"],
)
def test_a_password_that_yaml_takes_for_something_else_is_told_and_never_shown(value: str) -> None:
    text = (
        f"database:\n  user: qd\n  password:\n    {value}\n"
        if ":" in value
        else f"database:\n  user: qd\n  password: {value}\n"
    )
    problems = refused(text)
    assert "secretword" not in "".join(problems) and "database.password" in problems[0]


def test_the_end_of_a_password_with_a_comma_is_not_shown_as_a_key() -> None:
    (problem,) = refused("database: {user: qd, password: secret,word}")
    assert problem.startswith("qd.yaml:1: database: has a key without a value") and '"' not in problem
    assert "secret" not in problem and "word" not in problem.replace("password", "")


def test_a_key_without_its_blank_or_with_too_much_indentation_is_told_and_not_swallowed() -> None:
    problem = told(
        "database:\n  user: qd\n    password:secretword\n  port: 1\n", "2: database.user", "runs over several lines"
    )
    assert "secretword" not in problem


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("log: {}\nlog: {}\n", "2: log"),
        ("log:\n  level: info\n  level: debug\n", "3: log.level"),
        ("queues:\n  default: {}\n  default: {}\n", "3: queues.default"),
        ('queues:\n  default: {}\n  "default": {}\n', "3: queues.default"),
        (
            "queues:\n  default:\n    backoff:\n      cap: 1m\n      base: 1s\n      cap: 2m\n",
            "6: queues.default.backoff.cap",
        ),
        ("workers:\n  - queues: [default]\n    threads: 1\n    threads: 2\n", "4: workers[0].threads"),
        ("handlers:\n  commands:\n    a: {argv: [x]}\n    a: {argv: [y]}\n", "4: handlers.commands.a"),
    ],
)
def test_a_key_that_stands_twice_is_told_at_any_depth(text: str, place: str) -> None:
    assert "stands twice, first in line" in told(text, place)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("log: &a {level: info}\n", "1: log"),
        ("log: {level: &a info}\n", "1: log.level"),
        ("queues: {default: {}, b: *a}\n", "1: queues.b"),
        ("queues: &a\n  default: *a\n", "2: queues.default"),
        ("workers: &a [*a]\n", "1: workers[0]"),
        ("log:\n  <<: {level: info}\n", "2: log.<<"),
        ("queues:\n  default:\n    <<: *a\n", "3: queues.default.<<"),
        ("log: !x {}\n", "1: log"),
        ("log: {level: !!str info}\n", "1: log.level"),
        ("log:\n  ? [a]\n  : b\n", "2: log"),
        ("log:\n  ? &a level\n  : info\n", "2: log.level"),
    ],
)
def test_anchors_aliases_merge_keys_tags_and_keys_that_are_no_words_are_refused(text: str, place: str) -> None:
    assert told(text, place)


def test_a_billion_laughs_are_refused_at_once() -> None:
    rows = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"{new}: &{new} [{', '.join(['*' + old] * 10)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    problems = refused("\n".join(rows) + "\nqueues: *i\n")
    assert any("queues: is an alias" in problem for problem in problems)


def test_a_bom_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "qd.yaml"
    file.write_bytes(b"\xef\xbb\xbflog: {level: debug}\r\n")
    assert load_config(str(file)).log.level == "debug"


@pytest.mark.parametrize(
    ("raw", "where", "words"),
    [
        (b"log:\n  level: \xff\n", ":2: ", "not UTF-8"),
        ("log: {}\n".encode("utf-16"), ":1: ", "UTF-16"),
        (b"log: {}\n\x00", ":2: ", "U+0000"),
        (b"#" * (MAX_BYTES + 1), ": ", "is larger than"),
    ],
)
def test_bytes_that_are_no_text_are_told(tmp_path: Path, raw: bytes, where: str, words: str) -> None:
    file = tmp_path / "qd.yaml"
    file.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        load_config(str(file))
    assert str(caught.value).startswith(f"{file}{where}") and words in str(caught.value)


def test_a_file_that_is_missing_or_a_directory_is_told(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none.yaml", "No such file"), (tmp_path, "directory"), (tmp_path / "a\0b", "name")):
        with pytest.raises(ConfigError) as caught:
            load_config(str(path))
        assert f"{path}: can't be read: " in str(caught.value) and words in str(caught.value)


def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    loop = tmp_path / "qd.yaml"
    loop.symlink_to(loop)
    with pytest.raises(ConfigError, match=r"qd.yaml: can't be read: Too many levels"):
        load_config(str(loop))
