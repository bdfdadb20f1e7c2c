"""What docs/scale-out.md shows of a configuration is one."""

from __future__ import annotations

import re
from pathlib import Path

from qd.config import parse_config

PAGE = (Path(__file__).parents[3] / "docs/scale-out.md").read_text(encoding="utf-8")


def test_the_pages_configuration_is_taken_as_it_stands() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    config = parse_config(block, environ={})
    assert config.queues["default"].lease >= 3 * config.database.statement_timeout
