"""What of the daemon's environment handlers' programs may see."""

from __future__ import annotations

import os

import pytest

from qd.executors.environment import hide, scrub
from tests.unit.executors.jobs import command

OF_THE_MANAGER = ("NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "CREDENTIALS_DIRECTORY")


def test_scrubbing_removes_what_is_meant_for_the_daemon_alone() -> None:
    environ = dict.fromkeys((*OF_THE_MANAGER, "PATH", "NOTIFY", "MY_LISTEN_FDS"), "x")
    scrub(environ)
    assert set(environ) == {"PATH", "NOTIFY", "MY_LISTEN_FDS"}


def test_a_program_sees_neither_the_managers_variables_nor_qds_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*OF_THE_MANAGER, "QD_DB_PASSWORD", "QD_CONSOLE_SECRET", "SHOP_DB_PW", "QD_CONFIG", "SHOP_REGION"):
        monkeypatch.setenv(name, f"value of {name}")
    hide(["value of SHOP_DB_PW", None, ""])
    names = {line.partition("=")[0] for line in (command("env").run().result or "").splitlines()}
    assert names & {*OF_THE_MANAGER, "QD_DB_PASSWORD", "QD_CONSOLE_SECRET", "SHOP_DB_PW"} == set()
    assert {"PATH", "QD_CONFIG", "SHOP_REGION", "QD_TOKEN", "QD_JOB_ID"} <= names


def test_a_job_variable_of_an_outer_job_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QD_JOB_ID", "999")
    assert command("printenv", "QD_JOB_ID").run().result == "7"
    assert os.environ["QD_JOB_ID"] == "999"
