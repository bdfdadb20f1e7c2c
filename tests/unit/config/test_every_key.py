"""Every key of the model is tried with every kind of value that it can't have."""

from __future__ import annotations

import pytest

from qd.config import parse_config
from qd.errors import ConfigError
from tests.unit.config.catalogue import Key, keys
from tests.unit.config.judging import refused

KEYS = keys()

WRONG = {
    "text": ["[a]", "{a: b}", "true", "7", "0x1F", "22:00", "2026-01-01", ".inf"],
    "whole number": [
        "[a]",
        "true",
        '"7"',
        "word",
        "1.5",
        "0x10",
        "1_0",
        "1e1",
        "012",
        "-9",
        "99999999999999999999",
        "",
    ],
    "number": ["[a]", "{a: b}", "yes", '"0.5"', "word", ".inf", "-.inf", ".nan", "1e0", "0_1", "-0.1", "1" * 400],
    "duration": ["[a]", "{a: b}", "true", "7", "1.5", "word", "22:00", "-5s", "5 parsecs", '"5"', "9" * 39 + "d", "٣s"],
    "size": ["[a]", "{a: b}", "true", "7", "word", "5MB", "-5MiB", "0B", "9999999GiB"],
    "choice": ["[a]", "{a: b}", "true", "7", "word", '""', "on"],
    "true or false": ["[a]", "{a: b}", "yes", "on", "True", '"true"', "7", "1", "word"],
    "auto or whole number": ["[a]", "{a: b}", "true", "word", "0", "1001", '"7"', "1.5", "Auto"],
}
WRONG_LISTS = ["{a: b}", "word", "7", "true", "null", '"a"']
WRONG_ITEMS = ["[a]", "{a: b}", "true", "7", "null", "", "22:00"]


def document(key: Key, value: str) -> tuple[str, int, str]:
    """A file that sets the one key to the value; the key's line and its dotted name."""
    lines: list[str] = []
    names: list[str] = []
    indent = ""
    for part in key.path.replace("NAME", "default").split("."):
        name = part.removesuffix("[]")
        lines.append(f"{indent}{name}:")
        names.append(name)
        indent = " " * (len(lines[-1]) - len(lines[-1].lstrip(" -"))) + "  "
        if part.endswith("[]"):
            names[-1] += "[0]"
            indent += "- "
    lines[-1] += f" {value}"
    return "\n".join(lines) + "\n", len(lines), ".".join(names)


def kinds(key: Key) -> list[str]:
    """Values that this key can't have."""
    if key.listed:
        items = WRONG_ITEMS if key.leaf.limits else [item for item in WRONG_ITEMS if item]
        return WRONG_LISTS + [f"[fine, {item}, fine]" for item in items if item]
    return WRONG[key.leaf.kind] + ([] if key.leaf.optional else ["null", "~", ""])


CASES = [(key, value) for key in KEYS for value in kinds(key)]


@pytest.mark.parametrize(("key", "value"), CASES, ids=[f"{key.path}={value[:20]}" for key, value in CASES])
def test_a_value_of_the_wrong_kind_is_told_with_exactly_its_key_and_line(key: Key, value: str) -> None:
    text, line, dotted = document(key, value)
    place = f"qd.yaml:{line}: {dotted}"
    problems = refused(text)
    inner = [problem for problem in problems if problem.startswith(f"{place}: ")]
    items = [problem for problem in problems if problem.startswith(f"{place}[")]
    assert inner or items, problems
    assert all(problem.startswith(place) for problem in problems), problems


@pytest.mark.parametrize("key", [key for key in KEYS if key.leaf.optional], ids=lambda key: key.path)
@pytest.mark.parametrize("null", ["null", "~", ""])
def test_null_is_taken_where_it_is_allowed(key: Key, null: str) -> None:
    parse_config(document(key, null)[0])


ONLY_BESIDE_ANOTHER = ("database.path", "workers[].max_jobs", "workers[].max_memory")
"""Refused with the default of driver or executor, even where they say the default."""

DEFAULTED = [
    key for key in KEYS if not key.listed and key.path not in ONLY_BESIDE_ANOTHER and ".threads." not in key.path
]


@pytest.mark.parametrize("key", DEFAULTED, ids=lambda key: key.path)
def test_every_key_takes_its_default_when_it_is_written_out(key: Key) -> None:
    text = document(key, key.default)[0]
    assert parse_config(text) == parse_config("{}")


RIGHT = {"whole number": "7", "number": "1", "size": "5MiB", "true or false": "false", "auto or whole number": "7"}


def right(key: Key) -> str:
    """A value that the key can have, by itself."""
    own = {"host": "h.example", "listen": "localhost:1", "proxy_header": "X-Real-IP", "argv": "[a]", "lease": "2m"}
    name = key.path.rpartition(".")[2]
    if key.leaf.kind == "choice":
        return key.leaf.write.removeprefix("one of ").split(", ")[0]
    return (
        own.get(name)
        or RIGHT.get(key.leaf.kind)
        or ("[a]" if key.listed else "11s" if key.leaf.kind == "duration" else "a")
    )


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_a_value_that_is_right_passes_all_judgements_of_its_own(key: Key) -> None:
    text, _, _ = document(key, right(key))
    try:
        parse_config(text)
    except ConfigError as error:
        between_keys = (
            "not in queues",
            "not in this version",
            "no meaning with",
            "needs executor",
            "executor is thread",
            "is more than",
            "without a login",
        )
        assert all(any(words in problem for words in between_keys) for problem in error.problems), error


@pytest.mark.parametrize("section", ["database", "handlers", "poll", "http", "console", "shutdown", "retention", "log"])
@pytest.mark.parametrize("value", ["null", "~", "7", "true", "text", "[a]", '"a"'])
def test_a_section_that_is_no_map_is_told_at_its_line(section: str, value: str) -> None:
    (problem,) = refused(f"batch: auto\n{section}: {value}\n")
    assert problem.startswith(f"qd.yaml:2: {section}: is ") and "write a map with the keys" in problem


@pytest.mark.parametrize("section", ["database", "handlers", "poll", "http", "console", "shutdown", "retention", "log"])
def test_a_section_with_all_its_keys_commented_out_has_its_defaults(section: str) -> None:
    assert parse_config(f"{section}:\n  # key: value\n") == parse_config("{}")


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_a_misspelt_key_is_told_with_the_right_one(key: Key) -> None:
    text, line, dotted = document(key, "x")
    name = key.path.rpartition(".")[2].removesuffix("[]")
    wrong = name + "x"
    text = text.replace(f"{name}: x", f"{wrong}: x")
    (problem,) = [problem for problem in refused(text) if "is not a key" in problem]
    assert problem.startswith(f"qd.yaml:{line}: {dotted}x: is not a key; did you mean {name}?")


def test_a_list_that_is_wrong_in_several_places_is_told_item_by_item() -> None:
    problems = refused(
        "workers:\n  - queues:\n    - no\n    - default\n    - [a]\n    - mial\n  - {threads: x}\n  - 7\n"
    )
    assert [problem.split(": ")[:2] for problem in problems] == [
        ["qd.yaml:3", "workers[0].queues[0]"],
        ["qd.yaml:5", "workers[0].queues[2]"],
        ["qd.yaml:6", "workers[0].queues[3]"],
        ["qd.yaml:7", "workers[1].threads"],
        ["qd.yaml:8", "workers[2]"],
    ]
