"""Nothing that a job carries reaches a terminal raw; acts on many rows ask first."""

from __future__ import annotations

import unicodedata
from io import StringIO

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from qd.cli import terminal


@given(st.text())
def test_safe_text_holds_no_control_and_nothing_that_reorders_text(text: str) -> None:
    shown = terminal.safe(text)
    assert not [letter for letter in shown if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")]
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\ufeff")


@given(st.text(), st.integers(2, 80))
def test_a_cut_text_is_never_longer_than_asked(text: str, cut: int) -> None:
    assert len(terminal.safe(text, cut)) <= cut


def test_escape_sequences_are_shown_not_obeyed() -> None:
    assert terminal.safe("\x1b[2J\x07\x9b31m\r\n\tend") == "\\x1b[2J\\x07\\x9b31m\\r\\n\\tend"


def test_text_that_shows_as_nothing_is_shown_as_escapes() -> None:
    assert terminal.safe("a\U000e0041\u3164\xad") == "a\\U000e0041\\u3164\\xad"


def test_a_text_of_several_lines_keeps_its_line_ends_only() -> None:
    assert terminal.safe_lines("one\r\ntwo\x1b]0;title\x07\n") == "one\ntwo\\x1b]0;title\\x07\n"


def test_letters_of_all_languages_stay_as_they_are() -> None:
    assert terminal.safe("Grüße, 世界, 🎉") == "Grüße, 世界, 🎉"


def test_a_piped_table_has_plain_aligned_columns(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.table(("ID", "TYPE"), [(7, "a"), (1234, "evil\x1b[31m")], right=(0,))
    assert capsys.readouterr().out == "  ID  TYPE\n   7  a\n1234  evil\\x1b[31m\n"


def test_a_table_without_rows_still_says_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.table(("ID", "TYPE"), [])
    assert capsys.readouterr().out == "ID  TYPE\n"


def test_markup_in_a_cell_means_nothing_to_rich(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    Console(width=80).print(terminal.rich_table(("TYPE",), [("[red]not red[/red] [link=file:///x]y[/link]",)]))
    assert "[red]not red[/red] [link=file:///x]y[/link]" in capsys.readouterr().out


def test_json_is_ascii_so_that_no_terminal_obeys_it(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.show_json({"error": "\x1b[2J \x9b é \u202e"})
    assert capsys.readouterr().out == '{\n  "error": "\\u001b[2J \\u009b \\u00e9 \\u202e"\n}\n'


def test_an_act_on_many_is_refused_where_nobody_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(click.UsageError, match=r"delete 3 jobs.*--yes"):
        terminal.confirm(3, "delete 3 jobs", yes=False)


def test_an_act_on_many_with_yes_is_done_unasked() -> None:
    assert terminal.confirm(3, "delete 3 jobs", yes=True)


def test_an_act_on_nothing_says_so_and_is_not_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert not terminal.confirm(0, "delete 0 jobs", yes=True)
    assert "nothing to do" in capsys.readouterr().err


def test_progress_is_silent_where_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.progress("deleting", 3) as done:
        done(3)
    assert capsys.readouterr() == ("", "")


def test_no_word_of_the_status_is_broken_on_a_terminal_of_80_columns() -> None:
    headers = ("QUEUE", "READY", "DELAYED", "RESERVED", "STALE", "FAILED", "BLOCKED", "OLDEST READY", "")
    row = ("default", "1", "2", "3", "4", "5", "6", "1m21s", "no daemon serves it")
    shown = StringIO()
    Console(width=80, file=shown, color_system=None).print(terminal.rich_table(headers, [row], range(1, 8)))
    assert set(" ".join((*headers, *row)).split()) <= set(shown.getvalue().split())
