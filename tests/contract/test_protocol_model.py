"""The protocol as a whole: whatever owners, people and time do, and in whichever order, the tables say what the
model beside them says.

QD_MODEL_EXAMPLES=2000 makes it a long search; `pytest --hypothesis-seed=N` repeats one.
"""

from __future__ import annotations

import os
from contextlib import closing

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from qd.events import Events
from tests.contract.bench import Bench
from tests.contract.protocol_people import WholeMachine
from tests.contract.protocol_tables import Tables

EXAMPLES = int(os.environ.get("QD_MODEL_EXAMPLES", "40"))
"""Runs of some fifty acts each, on each kind of store."""


def test_the_tables_say_what_a_model_says_whatever_is_done_to_them(bench: Bench) -> None:
    path = bench.again(Events()).check().claim_path
    assert path is not None
    search = settings(
        max_examples=EXAMPLES, stateful_step_count=50, deadline=None, database=None, print_blob=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    with closing(Tables(bench)) as tables:
        run_state_machine_as_test(lambda: WholeMachine(bench, tables, path), settings=search)
