"""Whatever character sets and collations a server prefers: tables are made, texts come back, names are told apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qd.events import Events
from qd.outcome import Action, Outcome, OutcomeKind, Reason
from qd.store.mysql.database import MySqlDatabase
from tests.contract.bench import Bench, ended
from tests.support.mariadb import MariaDB

PREFERENCES = {  # loose: a server that doesn't know the option goes without
    "latin1": ("--character-set-server=latin1", "--collation-server=latin1_swedish_ci"),
    "utf8mb3": ("--loose-old-mode=UTF8_IS_UTF8MB3",),  # the server's own stays: its name for this one differs
    "utf8mb4": (
        "--character-set-server=utf8mb4",
        "--collation-server=utf8mb4_unicode_520_ci",
        "--init-connect=SET NAMES latin1",
    ),
    "utf16": (
        "--character-set-server=utf16",
        "--collation-server=utf16_general_ci",
        "--loose-skip-character-set-client-handshake",
    ),
}
"""Options by the character set that the database gets."""

EMOJI = "🦊 \u00e9 e\u0301 ß \u6f22"


@pytest.mark.parametrize("charset", PREFERENCES)
def test_any_preference_of_the_server_does(own_mariadb: Callable[..., MariaDB], charset: str) -> None:
    server = own_mariadb(*PREFERENCES[charset])
    if not server.run("SHOW CHARACTER SET LIKE %s", (charset,)):
        charset = "utf8"  # what MariaDB 10.5 calls utf8mb3
    name = server.new_database(schema=False)
    server.run(f"ALTER DATABASE {name} CHARACTER SET {charset}")
    migrator = server.config(name, "qd_migrator")
    assert MySqlDatabase(migrator, Events()).migrate()
    server.grant(name)
    config = server.config(name)
    bench = Bench("mariadb", config, lambda events: MySqlDatabase(config, events), server)
    bench.database.check()
    assert not [finding for finding in bench.store.inspect() if finding.level == "FAIL"]
    texts_come_back(bench)
    names_are_told_apart(bench)
    bench.close()


def texts_come_back(bench: Bench) -> None:
    """A payload, a key and an error of every alphabet."""
    payload = f'{{"to": "{EMOJI}"}}'
    (job_id,) = bench.add(1, payload=payload, unique_key=EMOJI)
    (job,) = bench.claim(1)
    assert (job.id, job.payload) == (job_id, payload)
    bench.store.settle(
        [ended(job, Action.BURY, Outcome(OutcomeKind.FAILED, Reason.ERROR, error=EMOJI, traceback=EMOJI))]
    )
    dead = bench.store.failed(job_id)
    assert (dead.payload, dead.unique_key, dead.error, dead.traceback) == (payload, EMOJI, EMOJI, EMOJI)
    assert bench.store.retry_failed(job_id) == job_id
    assert bench.store.job(job_id).payload == payload
    bench.store.delete_job(job_id)


def names_are_told_apart(bench: Bench) -> None:
    """By case; and keys by accents, which no collation that ignores them would."""
    ids = {queue: bench.add(1, queue=queue)[0] for queue in ("mail", "MAIL", "Mail")}
    for queue, job_id in ids.items():
        assert [job.id for job in bench.claim(5, queue=queue)] == [job_id]
    for key in ("e", "\u00e9", "E", "e\u0301"):
        bench.add(1, queue="keys", unique_key=key)
    assert len(bench.claim(5, queue="keys")) == 4
