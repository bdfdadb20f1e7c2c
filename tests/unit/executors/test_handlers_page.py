"""Every sample of docs/handlers.md, run as it stands there."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import shlex
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

import qd
from qd.config.model import Config, LogConfig
from qd.executors import Attempt, Interruption
from qd.log import LogListener
from qd.log.records import RecordHandler
from qd.outcome import Outcome, OutcomeKind
from qd.registry import REGISTRY, Handler
from qd.store.callers.complete import complete
from tests.support.waiting import wait_for
from tests.unit.executors.jobs import Running, job

PAGE = (Path(__file__).parents[3] / "docs/handlers.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def samples(language: str) -> list[str]:
    return [code for name, code in BLOCKS if name == language]


class Application:
    """What the samples have around them: a mailer, a bank, a shop with a database."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.answer = "charged"
        self.files: list[SimpleNamespace] = []
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.execute("CREATE TABLE qd_jobs (id INTEGER, reserved_by TEXT)")
        self.database.execute("CREATE TABLE invoices (customer INTEGER)")
        self.database.execute("CREATE TABLE printing (job INTEGER PRIMARY KEY, token TEXT)")
        self.database.execute("CREATE TABLE labels (label TEXT)")
        self.orders: Callable[[], Any] = lambda: range(3)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Cursor]:
        self.database.execute("BEGIN")
        try:
            yield self.database.cursor()
        except BaseException:
            self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")

    def add_invoice(self, cursor: sqlite3.Cursor, customer: int) -> None:
        cursor.execute("INSERT INTO invoices VALUES (?)", (customer,))

    @contextmanager
    def temporary_file(self) -> Iterator[SimpleNamespace]:
        file = SimpleNamespace(rows=0, removed=False)
        file.write = lambda row: setattr(file, "rows", file.rows + 1)
        self.files.append(file)
        try:
            yield file
        finally:
            file.removed = True

    def begin(self, job_id: int, token: str) -> None:
        self.database.execute(self.fence("REPLACE", job_id, token))

    def print(self, job_id: int, token: str, label: str) -> None:
        if self.database.execute(self.fence("INSERT", job_id, token, label)).rowcount != 1:
            raise PermissionError("another run of the job has begun")

    def fence(self, verb: str, job_id: int, token: str, label: str = "") -> str:
        """The page's statement that begins so, with values in place of the page's."""
        (statement,) = (part for part in samples("sql")[0].split(";") if verb in part)
        statement = re.sub("--.*", "", statement)
        values = {"7": str(job_id), "'host:1:nonce:default-1:8'": f"'{token}'", "'a'": f"'{label}'"}
        return re.sub("|".join(values), lambda found: values[found[0]], statement[statement.index(verb) :])

    async def rate(self, currency: str) -> float:
        await asyncio.sleep(0)
        return 1.0

    def names(self) -> dict[str, Any]:
        return {
            "__name__": "shop.jobs",
            "mailer": SimpleNamespace(send=lambda **mail: self.sent.append(mail)),
            "bank": SimpleNamespace(charge=lambda card, amount: self.answer, rate=self.rate),
            "shop": self,
            "printer": self,
        }


@pytest.fixture
def application() -> Iterator[Application]:
    """The samples, loaded in their order as one module; the process's registry is put back."""
    before = dict(REGISTRY._handlers)
    application = Application()
    names = application.names()
    for code in samples("python"):
        exec(compile(code, "docs/handlers.md", "exec"), names)
    yield application
    REGISTRY._handlers = before
    application.database.close()


def an_attempt(kind: str, payload: Any, **fields: Any) -> Attempt:
    handler = REGISTRY.get(kind)
    assert handler is not None, f"the page registers no {kind}"
    finish = lambda cursor, job: complete(cursor, job.id, job.token)  # noqa: E731
    return Attempt(job(type=kind, payload=payload, finish=finish, **fields), handler)


def run(kind: str, payload: Any, **fields: Any) -> Outcome:
    return an_attempt(kind, payload, **fields).run()


def test_all_blocks_are_known() -> None:
    assert {name for name, _ in BLOCKS} == {"python", "yaml", "sh", "sql", "text"}


def test_the_first_sample(application: Application) -> None:
    outcome = run("send_email", {"to": "ada@example.org"})
    assert outcome.result == "sent to ada@example.org"
    assert application.sent == [{"to": "ada@example.org", "message_id": "job-7"}]


@pytest.mark.parametrize(
    ("answer", "kind", "delay", "error"),
    [
        ("charged", OutcomeKind.SUCCEEDED, None, None),
        ("closed for the night", OutcomeKind.SNOOZED, 3600, None),
        ("too many requests", OutcomeKind.FAILED, 30, "bank is rate limiting"),
        ("no such card", OutcomeKind.REJECTED, None, "no such card"),
    ],
)
def test_retry_reject_and_snooze(
    application: Application, answer: str, kind: OutcomeKind, delay: float | None, error: str | None
) -> None:
    application.answer = answer
    outcome = run("charge_card", {"card": 1, "amount": 2})
    assert (outcome.kind, outcome.delay, outcome.error) == (kind, delay, error)


def test_effect_and_end_together(application: Application) -> None:
    rows = application.database.execute
    rows("INSERT INTO qd_jobs VALUES (7, 'mine')")
    outcome = run("book_invoice", {"customer": 5}, token="another's")
    assert outcome.error is not None and "LeaseLost" in outcome.error
    assert rows("SELECT * FROM invoices").fetchall() == []
    assert run("book_invoice", {"customer": 5}, token="mine").kind is OutcomeKind.SUCCEEDED
    assert rows("SELECT * FROM invoices").fetchall() == [(5,)]
    assert rows("SELECT * FROM qd_jobs").fetchall() == []


def test_a_run_that_another_has_overtaken_prints_no_more(application: Application) -> None:
    def overtaken() -> Iterator[str]:
        yield "a"
        assert run("print_labels", ["b"], token="second").kind is OutcomeKind.SUCCEEDED
        yield "c"

    outcome = run("print_labels", overtaken(), token="first")
    assert outcome.error is not None and "another run of the job has begun" in outcome.error
    assert application.database.execute("SELECT label FROM labels").fetchall() == [("a",), ("b",)]
    assert run("print_labels", ["d"], id=8).kind is OutcomeKind.SUCCEEDED, "another job isn't in the way"


def test_a_coroutine(application: Application) -> None:
    assert run("fetch_rates", ["eur", "usd"]).result == "2 rates"


def test_an_export_that_looks_at_its_time(application: Application) -> None:
    assert run("export_orders", {}).result == "3 rows"
    outcome = run("export_orders", {}, timeout=0.5)
    assert outcome.error == "no time for more than 0 rows"
    given_up = an_attempt("export_orders", {})
    given_up.job.lost.set()
    assert given_up.run().error == "qd.errors.LeaseLost: gave up"


def test_an_export_that_is_timed_out_removes_its_file(application: Application) -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 1

    application.orders = endless
    running = Running(an_attempt("export_orders", {}))
    wait_for(lambda: application.files, 5, "the export to begin")
    running.attempt.interrupt(Interruption.TIMEOUT)
    assert running.ended().kind is OutcomeKind.TIMEOUT
    assert application.files[0].removed


def test_a_program_from_a_function(application: Application, tmp_path: Path) -> None:
    (tmp_path / "image").write_text("12345")
    assert run("thumbnail", {"file": str(tmp_path / "image")}).result == "5"
    assert run("thumbnail", {"file": "/no/such/file"}).kind is OutcomeKind.FAILED


def test_a_handlers_log_line(application: Application, tmp_path: Path) -> None:
    path = tmp_path / "log"
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    handler = RecordHandler(LogListener(LogConfig(format="text"), fd))
    logging.getLogger("shop.jobs").addHandler(handler)
    run("import_feed", {"feed": "news"})
    logging.getLogger("shop.jobs").removeHandler(handler)
    os.close(fd)
    assert path.read_text().split(" ", 1)[1] == samples("text")[0]


def command_sample(tmp_path: Path) -> Handler:
    """The page's configuration, its program being the page's script."""
    configs = [Config.model_validate_json(json.dumps(yaml.safe_load(code))) for code in samples("yaml")]
    (config,) = [config for config in configs if config.handlers.commands]
    script = tmp_path / "resize"
    script.write_text(samples("sh")[0])
    script.chmod(0o755)
    argv = config.handlers.commands["resize_image"].argv
    assert shlex.join(argv) == "/usr/local/bin/resize --max 1024"
    return Handler("resize_image", argv=(str(script), *argv[1:]))


def test_a_program_as_a_handler(tmp_path: Path) -> None:
    handler = command_sample(tmp_path)
    outcome = Attempt(job(type="resize_image"), handler, '{"file": "a.png"}').run()
    assert outcome.result == "job 7 of type resize_image from mails, attempt 2 of 3"
    outcome = Attempt(job(type="resize_image"), handler, "{}").run()
    assert (outcome.kind, outcome.error) == (OutcomeKind.REJECTED, "exit status 65: no file in the payload")


def test_the_exceptions_that_the_page_names_are_public() -> None:
    for name in set(re.findall(r"`qd\.([A-Z]\w+)`", PAGE)):
        assert hasattr(qd, name)
