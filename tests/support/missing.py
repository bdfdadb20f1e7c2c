"""A test needs what this machine lacks: a reason to skip at a user's, a failure in CI. May import: nothing of qd."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def without(missing: object) -> NoReturn:
    """Skips at a user's, fails in CI, where something that is missing must not pass for success.

    Args:
        missing: what it is, and what would help.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI needs it: {missing}")
    pytest.skip(str(missing))
