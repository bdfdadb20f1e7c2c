"""Fixtures of the tests of the verbs' SQL, which is the same for both claim paths."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.admin.desk import Desk


@pytest.fixture(params=["mysql", "sqlite"])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A fresh database of each kind, as the daemon's account."""
    if request.param == "mysql":
        made = Desk(request.getfixturevalue("mysql_config"), request.getfixturevalue("mariadb"))
    else:
        made = Desk(request.getfixturevalue("sqlite_config"))
        made.database.migrate()
    yield made
    made.close()
