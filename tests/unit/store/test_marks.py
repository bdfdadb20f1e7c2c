"""Low watermarks: where they move, and that none ever hides a row from the next full look."""

from __future__ import annotations

from qd.store.claim.marks import Watermarks
from qd.store.protocol import Spot

LANE = ("default", 2)


class Clock:
    """Seconds that go on by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def at(seconds: float, row: int = 1) -> Spot:
    return Spot(moment(seconds), row)


def moment(seconds: float) -> str:
    return f"2026-03-01 12:{int(seconds) // 60:02d}:{seconds % 60:09.6f}"


def looked(marks: Watermarks, now: float, first: Spot | None = None, *, full: bool = False) -> None:
    begun = {LANE: marks.begin_look(LANE, full=full)}
    marks.looked(begun, {LANE: first} if first else {}, moment(now))


def test_without_a_mark_everything_is_looked_at() -> None:
    assert Watermarks().begin(LANE).spot is None
    assert Watermarks().begin_look(LANE, full=False).spot is None


def begins(marks: Watermarks, clock: Clock, *, after: float) -> Spot | None:
    """Where a look begins some seconds later."""
    clock.now += after
    return marks.begin_look(LANE, full=False).spot


def passing(clock: Clock) -> Watermarks:
    """The marks of a lane whose jobs pass in full batches, the last one due at 99.9 and taken at 100."""
    marks = Watermarks(clock)
    looked(marks, 100, at(50))
    marks.claimed(LANE, marks.begin(LANE), at(99.9, 42), moment(100))
    return marks


def test_after_a_look_that_found_nothing_the_mark_trails_two_seconds_behind_now() -> None:
    marks = Watermarks()
    looked(marks, 100)
    assert marks.begin(LANE).spot == Spot(moment(98), 0)


def test_a_look_moves_the_mark_to_the_first_ready_row_and_the_next_one_still_begins_two_seconds_behind_now() -> None:
    marks = Watermarks()
    looked(marks, 100, at(50, 7))
    assert marks.begin(LANE).spot == at(50, 7)
    looked(marks, 101, at(100.5, 8))
    assert marks.begin(LANE).spot == at(100.5, 8)
    assert marks.begin_look(LANE, full=False).spot == Spot(moment(99), 0)


def test_where_full_batches_pass_twenty_looks_a_second_begin_two_seconds_behind_now_and_those_between_near_to_it() -> (
    None
):
    clock = Clock()
    marks = passing(clock)
    assert begins(marks, clock, after=0.01) == Spot(moment(99.75), 0)
    assert begins(marks, clock, after=0.05) == Spot(moment(98), 0)
    assert begins(marks, clock, after=0.01) == Spot(moment(98), 0), "no full batch since then: there is little to walk"


def test_however_long_nobody_looked_nothing_lies_between_two_far_looks() -> None:
    """All threads were busy while another lane's claims went on: their now is no measure of what was seen here."""
    clock = Clock()
    marks = passing(clock)
    marks.passed(moment(110))
    assert begins(marks, clock, after=10) == Spot(moment(98), 0)


def test_where_a_far_look_was_not_answered_the_next_one_reaches_as_far() -> None:
    clock = Clock()
    marks = passing(clock)
    clock.now += 5
    marks.begin_look(LANE, full=False)  # and lost
    marks.passed(moment(105))
    assert begins(marks, clock, after=0.06) == Spot(moment(98), 0)


def test_what_near_looks_pass_over_is_found_by_the_next_far_one_which_sets_the_mark_back() -> None:
    clock = Clock()
    marks = passing(clock)
    assert begins(marks, clock, after=0.06) == Spot(moment(98), 0)
    looked(marks, 100.06, at(99.2, 10))
    assert marks.begin(LANE).spot == at(99.2, 10)


def test_a_near_look_never_moves_the_mark_past_what_a_far_one_has_just_found() -> None:
    clock = Clock()
    marks = passing(clock)
    clock.now += 0.01
    near = {LANE: marks.begin_look(LANE, full=False)}
    clock.now += 0.05
    looked(marks, 100.06, at(99.95, 10))
    for first in ({}, {LANE: at(100.01, 11)}):
        marks.looked(near, first, moment(100.055))
        assert marks.begin(LANE).spot == at(99.95, 10)


def test_a_near_look_sets_the_mark_back_to_what_it_finds_below() -> None:
    clock = Clock()
    marks = passing(clock)
    clock.now += 0.01
    marks.looked({LANE: marks.begin_look(LANE, full=False)}, {LANE: at(99.8, 9)}, moment(100.01))
    assert marks.begin(LANE).spot == at(99.8, 9)


def test_the_look_after_a_drop_is_a_full_one_and_the_only_one() -> None:
    clock = Clock()
    marks = passing(clock)
    before = {LANE: marks.begin_look(LANE, full=False)}
    marks.drop(LANE)
    marks.looked(before, {}, moment(100.01))
    assert begins(marks, clock, after=0.01) is None
    looked(marks, 100.02)
    assert begins(marks, clock, after=0.01) == Spot(moment(98.02), 0)


def test_a_full_batch_moves_the_mark_to_its_last_row_with_its_id() -> None:
    marks = passing(Clock())
    assert marks.begin(LANE).spot == at(99.9, 42)


def test_a_full_look_has_no_bound_and_sets_the_mark_back_to_what_it_finds() -> None:
    marks = Watermarks()
    looked(marks, 100)
    assert marks.begin_look(LANE, full=True).spot is None
    looked(marks, 101, at(3, 9), full=True)
    assert marks.begin(LANE).spot == at(3, 9)


def test_a_short_batch_leaves_the_mark_where_it_is_and_a_look_reaches_behind_it() -> None:
    marks = Watermarks()
    looked(marks, 100, at(50))
    marks.claimed(LANE, marks.begin(LANE), at(99.9, 42), moment(100))
    marks.passed(moment(101))
    assert marks.begin(LANE).spot == at(99.9, 42)
    looked(marks, 101, at(99.5, 50))
    assert marks.begin(LANE).spot == at(99.5, 50)


def test_a_claim_that_began_before_the_mark_was_set_back_does_not_move_it_on() -> None:
    marks = Watermarks()
    looked(marks, 100, at(50))
    begun = marks.begin(LANE)
    looked(marks, 101, at(10, 3), full=True)
    marks.claimed(LANE, begun, at(60, 99), moment(101))
    assert marks.begin(LANE).spot == at(10, 3)


def test_two_claims_side_by_side_leave_the_further_mark() -> None:
    marks = Watermarks()
    looked(marks, 100, at(50))
    one, other = marks.begin(LANE), marks.begin(LANE)
    marks.claimed(LANE, other, at(70, 2), moment(100))
    marks.claimed(LANE, one, at(60, 1), moment(100))
    assert marks.begin(LANE).spot == at(70, 2)


def test_a_dropped_mark_is_not_brought_back_by_a_claim_that_began_before() -> None:
    marks = Watermarks()
    looked(marks, 100, at(50))
    begun = marks.begin(LANE)
    marks.drop()
    marks.claimed(LANE, begun, at(60, 1), moment(100))
    assert marks.begin(LANE).spot is None


def test_one_lane_is_dropped_without_the_others() -> None:
    marks = Watermarks()
    for lane in (LANE, ("other", 0)):
        marks.looked({lane: marks.begin_look(lane, full=False)}, {}, moment(100))
    marks.drop(LANE)
    assert marks.begin(LANE).spot is None
    assert marks.begin(("other", 0)).spot is not None


def test_a_mark_is_never_set_above_the_databases_now() -> None:
    marks = Watermarks()
    marks.claimed(LANE, marks.begin(LANE), at(200), moment(100))
    assert marks.begin(LANE).spot is None


def test_a_clock_that_was_set_back_drops_all_marks() -> None:
    marks = Watermarks()
    looked(marks, 3000, at(2900))
    other = ("other", 1)
    marks.looked({other: marks.begin_look(other, full=False)}, {}, moment(100))
    assert marks.begin(LANE).spot is None


def test_a_claim_that_sees_the_clock_set_back_first_hides_it_from_no_look() -> None:
    marks = Watermarks()
    looked(marks, 100)
    marks.passed(moment(50))
    looked(marks, 50)
    assert marks.begin(LANE).spot is None


def test_a_look_that_took_long_has_seen_no_clock_set_back() -> None:
    """Its now is that of its start, and others have looked meanwhile."""
    marks = Watermarks()
    looked(marks, 100, at(90))
    slow = {LANE: marks.begin_look(LANE, full=True)}
    looked(marks, 106, at(90))
    marks.looked(slow, {LANE: at(90)}, moment(100.5))
    assert marks.begin(LANE).spot == at(90)
    looked(marks, 106.5, at(95))
    assert marks.begin(LANE).spot == at(95)


def test_without_a_mark_a_claim_begins_where_its_look_saw_the_first_row_and_moves_no_mark() -> None:
    marks = Watermarks()
    begun = marks.begin(LANE, at(7))
    assert begun.spot == at(7)
    marks.claimed(LANE, begun, at(9), moment(10))
    assert marks.begin(LANE).spot is None, "what lies below wasn't looked at"
    looked(marks, 10, at(3))
    assert marks.begin(LANE, at(7)).spot == at(3), "the mark goes first"


def test_sqlites_shorter_times_are_kept_in_their_own_width() -> None:
    marks = Watermarks()
    marks.looked({LANE: marks.begin_look(LANE, full=False)}, {}, "2026-03-01 12:00:05.250")
    assert marks.begin(LANE).spot == Spot("2026-03-01 12:00:03.250", 0)
