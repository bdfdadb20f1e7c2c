"""Each kind of error has its exit code and one line, without a traceback."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from qd import errors
from qd.cli import ending
from qd.cli.root import VERBS, cli, end


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError(["qd.yaml:3: queues: wrong"]), 78),
        (errors.HandlerError("handler 'x' is registered twice"), 78),
        (errors.SetupWrong("access denied", 1045), 78),
        (errors.BadInput("queue 'a b'"), 2),
        (errors.NotFound("no job 7"), 1),
        (errors.Refused("job 7 is running"), 1),
        (errors.DataRefused("too large", 1153), 1),
        (errors.TransactionFailed("deadlock", 1213), 1),
        (errors.LockWait("lock wait", 1205), 1),
        (errors.UnknownError("strange", 9999), 1),
        (errors.ConnectionLost("can't connect", 2003), 69),
        (errors.ServerBusy("too many connections", 1040), 69),
        (errors.ReadOnlyServer("read only", 1290), 69),
    ],
)
def test_every_error_has_its_exit_code(error: errors.QdError, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise error

    assert end(fail) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err


def test_all_problems_of_a_configuration_are_said_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    ending.say(errors.ConfigError(["qd.yaml:3: queues: wrong", "qd.yaml:9: http: wrong"]))
    assert capsys.readouterr().err == "qd.yaml:3: queues: wrong\nqd.yaml:9: http: wrong\n"


def test_an_error_text_cannot_write_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    ending.say(errors.NotFound("no queue 'x\x1b[2J\nqd: all is well'"))
    assert capsys.readouterr().err == "qd: no queue 'x\\x1b[2J\\nqd: all is well'\n"


def test_a_commit_of_unknown_outcome_is_said_to_be_one() -> None:
    said = ending.message(errors.ConnectionLost("lost", 2013, outcome_unknown=True))
    assert "look whether it was done" in said


@pytest.mark.parametrize("kind", [errors.ConnectionLost, errors.ReadOnlyServer, errors.SetupWrong, errors.ServerBusy])
def test_an_error_that_has_advice_of_its_own_gets_no_second_one(kind: type[errors.StoreError]) -> None:
    assert ending.message(kind("it broke; mend it")) == "qd: it broke; mend it"
    assert "; " in ending.message(kind("it broke"))


def test_an_interrupt_ends_quietly_with_130(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    assert end(interrupted) == 130
    assert capsys.readouterr() == ("", "")


def test_an_unknown_verb_is_a_usage_error_that_names_the_nearest() -> None:
    result = CliRunner().invoke(cli, ["statsu"])
    assert result.exit_code == 2
    assert "Did you mean 'status'?" in result.stderr


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_explains_itself_and_refuses_unknown_options(verb: str) -> None:
    helped = CliRunner().invoke(cli, [verb, "--help"])
    assert helped.exit_code == 0
    assert helped.stdout.startswith(f"Usage: cli {verb}")
    refused = CliRunner().invoke(cli, [verb, "--no-such-option"])
    assert refused.exit_code == 2


def test_the_help_names_every_verb() -> None:
    shown = CliRunner().invoke(cli, ["--help"]).stdout
    assert [verb for verb in VERBS if f"  {verb} " not in shown] == []


def test_a_missing_configuration_file_ends_with_78_and_its_name() -> None:
    result = CliRunner().invoke(cli, ["--config", "/no/such/qd.yaml", "status"])
    assert result.exit_code == 78
    assert "/no/such/qd.yaml" in result.stderr
