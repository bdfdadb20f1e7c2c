"""The protocol as a whole: whatever owners, people and time do, and in whichever order, the tables say what the
model beside them says.

QD_MODEL_EXAMPLES=2000 makes it a long search; `pytest --hypothesis-seed=N` repeats one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from qd.config.model import DatabaseConfig
from qd.events import Events
from tests.contract.bench import Bench
from tests.contract.protocol_people import WholeMachine
from tests.contract.protocol_tables import Tables

EXAMPLES = int(os.environ.get("QD_MODEL_EXAMPLES", "25"))
"""Runs of some fifty acts each, on each kind of store."""


@pytest.fixture
def sqlite_config(tmp_path: Path) -> Iterator[DatabaseConfig]:
    """In memory where the machine has a folder for that: its thousands of commits needn't wait for a disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as folder:
        yield DatabaseConfig(driver="sqlite", path=f"{folder}/qd.sqlite3")


def test_the_tables_say_what_a_model_says_whatever_is_done_to_them(bench: Bench) -> None:
    path = bench.again(Events()).check().claim_path
    assert path is not None
    search = settings(
        max_examples=EXAMPLES, stateful_step_count=50, deadline=None, database=None, print_blob=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    with closing(Tables(bench)) as tables:
        run_state_machine_as_test(lambda: WholeMachine(bench, tables, path), settings=search)
