"""Names that begin with `qd.` are qd's own: users' are refused at every door, qd's own code is let in."""

from __future__ import annotations

import pytest

from qd.errors import BadInput, HandlerError
from qd.job import NewJob, OwnType
from qd.registry import Handler, Registry
from qd.store.callers.new_row import new_row


def test_a_job_of_such_a_type_is_let_in_from_qd_itself_only() -> None:
    with pytest.raises(BadInput, match="qd's own"):
        new_row(NewJob("qd.mine"))
    row = new_row(NewJob(OwnType("qd.mine")))
    assert row.type == "qd.mine" and type(row.type) is str, "a driver takes exact texts only"


def test_a_handler_of_such_a_name_is_let_in_from_qd_itself_only() -> None:
    registry = Registry()
    with pytest.raises(HandlerError, match="qd's own"):
        registry.add(Handler("qd.mine", function=lambda job: None))
    registry.add(Handler(OwnType("qd.mine"), function=lambda job: None))
    assert registry.names() == ("qd.mine",)
    assert registry.get("qd.mine") is not None


def test_a_name_of_its_own_must_be_right_in_all_else() -> None:
    with pytest.raises(BadInput):
        new_row(NewJob(OwnType("qd. mine")))
    with pytest.raises(HandlerError):
        Registry().add(Handler(OwnType("qd. mine"), function=lambda job: None))
