"""Dead letters: each is retried or deleted once, whole, and by one of those who try."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import pytest

from qd.errors import NotFound, QdError, Refused
from qd.store.protocol import Filter
from tests.contract.admin.desk import Desk

PAYLOAD = '{"b": 1.0, "a": "\\u00e9", "b": 1, "z": [ ] }'
HISTORY = json.dumps([{"start": "2026-01-01T00:00:00Z", "outcome": "failed", "error": "first"}])


def test_a_retry_brings_the_job_back_under_its_id_with_fresh_attempts(desk: Desk) -> None:
    desk.dead(
        job_id=500, queue="mails", type="send", payload=PAYLOAD, priority=1, attempts=3, max_attempts=3,
        unique_key="k", history=HISTORY, error="boom",
    )  # fmt: skip
    created = desk.sql("SELECT created_at FROM qd_failed_jobs")[0][0]
    assert desk.store().retry_failed(500) == 500
    row = desk.store().job(500)
    assert (row.queue, row.type, row.payload, row.priority, row.state) == ("mails", "send", PAYLOAD, 1, "ready")
    assert (row.attempts, row.crashes, row.max_attempts, row.unique_key) == (0, 0, 3, "k")
    assert row.history == json.loads(HISTORY)
    assert row.last_error == "boom"
    assert desk.row(500, "created_at") == (created,)
    assert desk.ids("qd_failed_jobs") == []


def test_a_taken_id_is_replaced_by_a_new_one(desk: Desk) -> None:
    desk.job(id=500, type="other")
    desk.dead(job_id=500, payload=PAYLOAD)
    new_id = desk.store().retry_failed(500)
    assert new_id > 500
    assert desk.store().job(new_id).payload == PAYLOAD
    assert desk.store().job(500).type == "other"
    assert desk.ids("qd_failed_jobs") == []


def test_a_taken_unique_key_refuses_the_retry_and_changes_nothing(desk: Desk) -> None:
    holder = desk.job(queue="mails", unique_key="k")
    letter = desk.dead(job_id=500, queue="mails", unique_key="k")
    with pytest.raises(Refused, match=f"'k' is taken by job {holder}"):
        desk.store().retry_failed(500)
    assert (desk.ids(), desk.ids("qd_failed_jobs")) == ([holder], [letter])


def test_the_same_key_in_another_queue_is_no_obstacle(desk: Desk) -> None:
    desk.job(queue="default", unique_key="k")
    desk.dead(job_id=500, queue="mails", unique_key="k")
    assert desk.store().retry_failed(500) == 500


def test_verbs_act_on_the_newest_of_several_and_show_tells_of_the_others(desk: Desk) -> None:
    old, new = desk.dead(error="old"), desk.dead(error="new")
    row = desk.store().failed(500)
    assert (row.id, row.error, row.others) == (new, "new", 1)
    desk.store().delete_failed(500)
    assert desk.ids("qd_failed_jobs") == [old]


def test_an_act_on_many_does_not_touch_what_failed_after_it_began(desk: Desk) -> None:
    old = desk.dead()
    [(job_id, letter)] = desk.store().failed_ids(Filter())
    assert (job_id, letter) == (500, old)
    assert desk.store().retry_failed(500, up_to=letter) == 500
    desk.sql("DELETE FROM qd_jobs WHERE id = 500")
    newer = desk.dead()
    for act in (desk.store().retry_failed, desk.store().delete_failed):
        with pytest.raises(NotFound):
            act(500, up_to=letter)
    assert desk.ids("qd_failed_jobs") == [newer]


def test_an_unknown_id_is_not_found(desk: Desk) -> None:
    store = desk.store()
    for act in (store.failed, store.retry_failed, store.delete_failed):
        with pytest.raises(NotFound, match="999999"):
            act(999999)


@pytest.mark.parametrize("second", ["retry_failed", "delete_failed"])
def test_of_two_who_act_on_one_dead_letter_one_is_told_that_it_is_gone(desk: Desk, second: str) -> None:
    for round_ in range(5):
        desk.dead(job_id=600 + round_)
        outcomes = at_once(
            lambda job_id=600 + round_: desk.store().retry_failed(job_id),
            lambda job_id=600 + round_: getattr(desk.store(), second)(job_id),
        )
        assert sum(isinstance(outcome, NotFound) for outcome in outcomes) == 1, outcomes
        jobs = desk.sql("SELECT COUNT(*) FROM qd_jobs WHERE id = %s", 600 + round_)[0][0]
        assert jobs == (1 if second == "retry_failed" or not isinstance(outcomes[0], NotFound) else 0)
        assert desk.ids("qd_failed_jobs") == []


def test_two_who_retry_everything_bring_each_job_back_once(desk: Desk) -> None:
    for number in range(60):
        desk.dead(job_id=700 + number)

    def retry_all() -> int:
        store, retried = desk.store(), 0
        for job_id, letter in store.failed_ids(Filter()):
            try:
                store.retry_failed(job_id, up_to=letter)
                retried += 1
            except NotFound:
                pass
        return retried

    outcomes = at_once(retry_all, retry_all)
    assert sum(outcome for outcome in outcomes if isinstance(outcome, int)) == 60, outcomes
    assert desk.ids() == [700 + number for number in range(60)]
    assert desk.ids("qd_failed_jobs") == []


def test_a_list_is_newest_first_paged_and_filtered(desk: Desk) -> None:
    ids = [
        desk.dead(job_id=1, queue="a", reason="error"), desk.dead(job_id=2, queue="b", reason="timeout"),
        desk.dead(job_id=3, queue="a", type="other", failed=-7200),
    ]  # fmt: skip
    store = desk.store()
    assert [row.id for row in store.list_failed(Filter(limit=2))] == [ids[2], ids[1]]
    assert [row.id for row in store.list_failed(Filter(after=ids[1]))] == [ids[0]]
    for where, wanted in [
        (Filter(queue="a"), [3, 1]), (Filter(reason="timeout"), [2]), (Filter(type="other"), [3]),
        (Filter(older_than=3600), [3]), (Filter(queue="a", older_than=1), [3, 1]), (Filter(queue="c"), []),
    ]:  # fmt: skip
        assert [row.job_id for row in store.list_failed(where)] == wanted
        assert store.count_failed(where) == len(wanted)
        assert [job_id for job_id, _ in store.failed_ids(where)] == sorted(wanted)


def test_a_payload_that_the_schema_refuses_stays_a_dead_letter(desk: Desk) -> None:
    letter = desk.dead(payload="not json")
    with pytest.raises(Refused, match="job 500"):
        desk.store().retry_failed(500)
    assert (desk.ids(), desk.ids("qd_failed_jobs")) == ([], [letter])
    assert desk.store().failed(500).payload == "not json"


def test_acts_do_not_wait_for_the_open_inserts_of_others(desk: Desk) -> None:
    if not desk.mysql:
        pytest.skip("SQLite has one writer at a time by design")
    desk.dead(job_id=501)
    desk.dead(job_id=502)
    other = desk.connect(autocommit=False)
    try:
        cursor = other.cursor()
        cursor.execute("INSERT INTO qd_jobs (type) VALUES ('send')")
        cursor.execute(
            "INSERT INTO qd_failed_jobs (job_id, queue, type, payload, priority, attempts, reason) "
            "VALUES (9, 'default', 'send', '{}', 2, 1, 'error')"
        )
        assert desk.store().retry_failed(501) == 501
        desk.store().delete_failed(502)
    finally:
        other.rollback()
        other.close()
    assert (desk.ids(), desk.ids("qd_failed_jobs")) == ([501], [])


def test_a_key_that_is_taken_while_the_retry_waits_refuses_it(desk: Desk) -> None:
    if not desk.mysql:
        pytest.skip("SQLite has one writer at a time by design")
    letter = desk.dead(unique_key="k")
    other = desk.connect(autocommit=False)
    outcome: list[object] = []
    try:
        other.cursor().execute("INSERT INTO qd_jobs (type, unique_key) VALUES ('send', 'k')")
        waiting = threading.Thread(target=lambda: outcome.append(_outcome(lambda: desk.store().retry_failed(500))))
        waiting.start()
        _wait_for_a_lock(desk)
        other.commit()
        waiting.join(30)
    finally:
        other.close()
    assert isinstance(outcome[0], Refused)
    assert desk.ids("qd_failed_jobs") == [letter]


def _wait_for_a_lock(desk: Desk) -> None:
    from tests.support.waiting import wait_for

    waiting = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'INSERT INTO qd_jobs (id,%'"
    wait_for(lambda: desk.sql(waiting)[0][0], 10, "the retry to wait for the open insert")


def at_once(*acts: Callable[[], object]) -> list[object]:
    """What each act returned or raised, all begun together."""
    start = threading.Barrier(len(acts))
    outcomes: list[object] = [None] * len(acts)

    def run(number: int) -> None:
        start.wait(10)
        outcomes[number] = _outcome(acts[number])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


def _outcome(act: Callable[[], object]) -> object:
    try:
        return act()
    except QdError as error:
        return error
