"""Whatever the file holds, the answer is a configuration or its problems, never anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qd.config import load_config, parse_config
from qd.config.model import Config
from qd.errors import ConfigError
from tests.unit.config.catalogue import keys

COMPLETE = (Path(__file__).parents[3] / "config/qd.yaml").read_text(encoding="utf-8")
NAMES = sorted(
    {part.removesuffix("[]") for key in keys() for part in key.path.split(".")} | {"default", "no", "<<", ""}
)

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.dates(), st.binary(max_size=4),
    st.sampled_from(["default", "auto", "10s", "5m", "h:1", "${A}", "${B}", "$$", "mysql", "sqlite", "512MiB"]),
)  # fmt: skip
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(NAMES), st.text(max_size=5)), inner, max_size=6),
    ),
    max_leaves=30,
)


def judged(text: str) -> Config | None:
    """The configuration, or None where its problems are as they should be."""
    try:
        return parse_config(text, "qd.yaml", {"A": "1", "B": ""})
    except ConfigError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.startswith("qd.yaml:") and "\n" not in problem and problem.isprintable()
            assert (
                1
                <= int(problem.split(":")[1])
                <= text.count("\n") + text.count("\r") + 2 + sum(map(text.count, "\x85\u2028\u2029"))
            )
            assert "pydantic" not in problem and "Input should" not in problem
        return None


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
@settings(max_examples=100)
def test_any_text(text: str) -> None:
    judged(text)


@given(st.text(alphabet="ab:{}[]-?,&*!|>'\"%@`#\\ \n\t~<$0", max_size=60))
@settings(max_examples=100)
def test_any_text_of_the_signs_that_mean_something_to_yaml(text: str) -> None:
    judged(text)
    judged("queues: " + text)


@given(trees)
@example({"queues": {"no\nname": None, "\ud7fc": None}})
@settings(max_examples=60, deadline=None)
def test_any_tree(tree: Any) -> None:
    judged(yaml.safe_dump(tree, allow_unicode=True))


@given(st.sampled_from(keys()), trees)
@settings(max_examples=60, deadline=None)
def test_any_tree_at_any_key(key: Any, tree: Any) -> None:
    value = tree
    for part in reversed(key.path.replace("NAME", "default").split(".")):
        value = {part.removesuffix("[]"): [value] if part.endswith("[]") else value}
    judged(yaml.safe_dump(value, allow_unicode=True))


@given(st.integers(0, len(COMPLETE)), st.integers(0, 30), st.text(alphabet=st.characters(codec="utf-8"), max_size=5))
@settings(max_examples=60, deadline=None)
def test_the_complete_file_with_any_small_change(at: int, length: int, put: str) -> None:
    judged(COMPLETE[:at] + put + COMPLETE[at + length :])


def test_any_bytes_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "qd.yaml"

    @given(st.binary(max_size=100))
    @settings(max_examples=60, deadline=None)
    def attempt(raw: bytes) -> None:
        file.write_bytes(raw)
        try:
            load_config(str(file), {})
        except ConfigError as error:
            assert str(error).startswith(str(file))

    attempt()
