"""What the loader says of a text."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from qd.config import parse_config
from qd.errors import ConfigError


def refused(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    """The problems of a configuration, which must have some; each begins with `qd.yaml:LINE: `."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "qd.yaml", environ or {})
    problems = caught.value.problems
    assert problems
    assert all(problem.startswith("qd.yaml:") and "\n" not in problem for problem in problems), problems
    assert caught.value.__suppress_context__ or caught.value.__context__ is None  # no traceback tells more
    return problems


def told(text: str, place: str, *words: str, environ: Mapping[str, str] | None = None) -> str:
    """The one problem at a place, `LINE: dotted.key`; it must hold the words."""
    problems = refused(text, environ)
    found = [problem for problem in problems if problem.startswith(f"qd.yaml:{place}: ")]
    assert len(found) == 1, problems
    assert all(word in found[0] for word in words), found[0]
    return found[0]
