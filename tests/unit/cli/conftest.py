"""Fixtures of the command line's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.shop import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A fresh SQLite file with its configuration."""
    return Shop(tmp_path)
