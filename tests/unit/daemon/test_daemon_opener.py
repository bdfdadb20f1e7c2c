"""Work begins once the database is as it should be; what is wrong with it is said, once."""

from __future__ import annotations

from typing import Any, cast

import pytest

from qd.daemon.opener import Opener
from qd.errors import ConnectionLost, SetupWrong, StoreError
from qd.events import Event, Events, Problem
from qd.store.protocol import Database, SchemaState


class Answers:
    """A database that answers as it is told."""

    def __init__(self) -> None:
        self.error: StoreError | None = None
        self.state = SchemaState(1, 1)

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def schema(self) -> SchemaState:
        self.check()
        return self.state

    def up(self) -> bool:
        return not isinstance(self.error, ConnectionLost)


@pytest.fixture
def database() -> Answers:
    return Answers()


@pytest.fixture
def said() -> list[Event]:
    return []


@pytest.fixture
def began() -> list[str]:
    return []


@pytest.fixture
def opener(database: Answers, said: list[Event], began: list[str]) -> Opener:
    return Opener(cast("Database", cast(Any, database)), lambda: began.append("work"), Events(said.append))


def test_a_schema_that_is_missing_is_said_once_and_work_begins_when_it_is_there(
    opener: Opener, database: Answers, said: list[Event], began: list[str]
) -> None:
    database.error = SetupWrong("the database has no qd tables: run `qd migrate`")
    for _ in range(3):
        opener.run_once()
    assert said == [Problem("database", "the database has no qd tables: run `qd migrate`")]
    assert opener.reason == "the database has no qd tables: run `qd migrate`"
    database.error = None
    for _ in range(2):
        opener.run_once()
    assert (began, opener.reason, opener.opened) == (["work"], None, True)


def test_what_a_connection_says_itself_is_not_said_twice(opener: Opener, database: Answers, said: list[Event]) -> None:
    database.error = SetupWrong("access denied", 1045)
    opener.run_once()
    database.error = ConnectionLost("out of reach", 2003)
    with pytest.raises(ConnectionLost):
        opener.run_once()
    assert said == []


def test_a_schema_that_was_changed_under_the_daemon_is_known_as_such(opener: Opener, database: Answers) -> None:
    opener.run_once()
    database.state = SchemaState(9, 9)
    opener.run_once()
    assert opener.incompatible is not None and "upgrade qd" in opener.incompatible
