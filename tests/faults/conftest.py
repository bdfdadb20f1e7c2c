"""Fixtures of the fault tests: a server of their own, and daemons on it that may be harmed."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.fleet import Fleet
from tests.support.mariadb import MariaDB


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not under pytest's own folder: a socket's path has to be short."""
    path = Path(tempfile.mkdtemp(prefix="qd-f-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def new_fleet(folder: Path, own_mariadb: Callable[..., MariaDB]) -> Iterator[Callable[..., Fleet]]:
    """Starts a daemon for each batch size that it is called with; further arguments are Fleet's."""
    fleets: list[Fleet] = []

    def start(*batches: object, **more: Any) -> Fleet:
        fleets.append(Fleet(folder, own_mariadb(), batches, **more))
        fleets[-1].until_ready()
        return fleets[-1]

    yield start
    for fleet in fleets:
        if fleet.server.running():
            fleet.server.thaw()
        fleet.end()


@pytest.fixture
def seed() -> int:
    """Of chance, printed; QD_FAULT_SEED repeats a run's choices."""
    seed = int(os.environ.get("QD_FAULT_SEED", random.randrange(1_000_000)))
    print(f"QD_FAULT_SEED={seed}")
    return seed


@pytest.fixture
def rng(seed: int) -> random.Random:
    """Chance with that seed."""
    return random.Random(seed)
