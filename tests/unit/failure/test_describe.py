"""Describing exceptions that do all they can not to be described."""

from __future__ import annotations

import builtins
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qd.failure import ERROR_LIMIT, MARK, TRACEBACK_LIMIT, describe


def caught(raise_it: Callable[[], object]) -> BaseException:
    try:
        raise_it()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def throw(error: BaseException) -> NoReturn:
    raise error


def explode(*args: object, **kwargs: object) -> NoReturn:
    raise KeyboardInterrupt("from within")


class Hostile(Exception):
    """Whatever is asked of it raises a BaseException."""

    __str__ = __repr__ = __reduce__ = __getattr__ = __eq__ = __hash__ = __bool__ = explode
    __class__ = __traceback__ = __cause__ = __context__ = __notes__ = property(explode)
    __suppress_context__ = args = property(explode)


class ReturnsNoText(Exception):
    def __str__(self) -> str:
        return 42  # type: ignore[return-value]


class Endless(Exception):
    def __str__(self) -> str:
        return str(self)


class Huge(Exception):
    def __str__(self) -> str:
        return "x" * 500_000_000


class HostileMeta(type):
    def __getattribute__(cls, name: str) -> NoReturn:
        raise MemoryError

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise MemoryError


class Renamed(Exception, metaclass=HostileMeta):
    __module__ = 7  # type: ignore[assignment]


def deep() -> NoReturn:
    deep()


FACTORIES: list[tuple[Callable[[], BaseException], str]] = [
    (Hostile, "Hostile"),
    (ReturnsNoText, "ReturnsNoText"),
    (Endless, "Endless"),
    (lambda: Renamed("text"), "Renamed: text"),
    (MemoryError, "MemoryError"),
    (lambda: SystemExit(3), "SystemExit: 3"),
    (GeneratorExit, "GeneratorExit"),
    (lambda: ValueError(threading.Lock()), "ValueError: <unlocked _thread.lock"),
    (lambda: ValueError(b"\xe9"), "ValueError: b'\\xe9'"),
]


@pytest.mark.parametrize("number", range(len(FACTORIES)), ids=[name for _, name in FACTORIES])
def test_there_is_always_the_class_name_and_the_traceback(number: int) -> None:
    make, name = FACTORIES[number]  # pytest itself can't show some of these
    text, traceback = describe(caught(lambda: throw(make())))
    assert name in text
    assert "Traceback (most recent call last):" in traceback and name in traceback and "in throw" in traceback


def test_a_text_of_500_mb_is_cut_and_marked_in_good_time() -> None:
    began = time.monotonic()
    text, traceback = describe(caught(lambda: throw(Huge())))
    assert time.monotonic() - began < 30
    assert len(text.encode()) <= ERROR_LIMIT and text.endswith(MARK)
    assert len(traceback.encode()) <= TRACEBACK_LIMIT


def test_an_exception_is_asked_for_its_text_once() -> None:
    asked: list[str] = []

    class Slow(Exception):
        def __str__(self) -> str:
            asked.append("again")
            return "slow"

    text, traceback = describe(caught(lambda: throw(Slow())))
    assert len(asked) == 1 and "slow" in text and "slow" in traceback


def test_four_byte_characters_are_counted_in_bytes() -> None:
    text, _ = describe(ValueError("😀" * 2_000_000))
    assert ERROR_LIMIT - 4 < len(text.encode()) <= ERROR_LIMIT


def test_recursion_to_the_stack_limit_shows_its_first_and_its_last_frames() -> None:
    _, traceback = describe(caught(deep))
    assert "RecursionError" in traceback and "frames left out]" in traceback
    assert 35 < traceback.count("in deep") <= 40


def test_a_cycle_of_causes_ends() -> None:
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__cause__ = second, first
    _, traceback = describe(first)
    assert traceback.count("direct cause") == 1
    assert traceback.index("second") < traceback.index("first")


def test_a_chain_of_10000_exceptions_is_shown_by_its_newest() -> None:
    error: BaseException = ValueError("oldest")
    for number in range(10_000):
        following = ValueError(f"number {number}", "y" * 100_000)
        following.__cause__ = error
        error = following
    _, traceback = describe(error)
    assert len(traceback.encode()) <= TRACEBACK_LIMIT
    assert "number 9999" in traceback and "number 0'" not in traceback


def test_a_chain_with_a_limit_says_that_there_was_more() -> None:
    error = ValueError("newest")
    link: BaseException = error
    for number in range(20):
        link.__context__ = KeyError(number)
        link = link.__context__
    _, traceback = describe(error)
    assert traceback.startswith("[earlier exceptions are left out]")
    assert traceback.count("During handling") == 10


def test_raise_from_none_hides_the_context_as_it_does_in_python() -> None:
    def handle() -> None:
        try:
            throw(KeyError("hidden"))
        except KeyError:
            raise ValueError("shown") from None

    _, traceback = describe(caught(handle))
    assert "shown" in traceback and "hidden" not in traceback


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with Python 3.11")
def test_a_group_of_10000_shows_its_first_members_and_the_number_of_the_others() -> None:
    group: Any = getattr(builtins, "ExceptionGroup")  # noqa: B009
    nested = group("outer", [group("inner", [group("innermost", [Hostile()] * 50)] * 50)] * 10_000)
    text, traceback = describe(caught(lambda: throw(nested)))
    assert "outer (10000 sub-exceptions)" in text
    assert "[9990 more exceptions left out]" in traceback and "[47 more exceptions left out]" in traceback
    assert len(traceback.encode()) <= TRACEBACK_LIMIT


def test_notes_are_shown() -> None:
    error = ValueError("x")
    error.__notes__ = ["while paying invoice 7", Hostile()]  # type: ignore[attr-defined]
    assert "while paying invoice 7" in describe(error)[1]


def test_the_callers_own_leading_frames_are_left_out() -> None:
    namespace: dict[str, Any] = {}
    exec(compile("def handler():\n    raise ValueError('x')\n", "/shop/jobs.py", "exec"), namespace)
    _, traceback = describe(caught(namespace["handler"]), own=__file__)
    assert traceback.count("File ") == 1 and '"/shop/jobs.py", line 2, in handler' in traceback


def test_a_code_object_named_like_a_device_is_not_read() -> None:
    namespace: dict[str, Any] = {}
    exec(compile("def handler():\n    raise ValueError('x')\n", "/dev/zero", "exec"), namespace)
    assert '"/dev/zero", line 2' in describe(caught(namespace["handler"]))[1]


@given(st.text(st.characters(exclude_categories=()), max_size=2000))
def test_any_message_becomes_storable_text(message: str) -> None:
    for text in describe(ValueError(message)):
        assert "\x00" not in text
        assert text.encode("utf-8", "strict")
