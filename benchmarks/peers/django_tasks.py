"""Django's tasks with their database backend, on the same MariaDB as qd."""

from __future__ import annotations

from benchmarks.backends.mariadb import MariaDB
from benchmarks.environments import Environments
from benchmarks.peers.contestant import Command, Peer, Turn
from benchmarks.peers.on_mariadb import url


class DjangoTasks(Peer):
    """Four `db_worker`s; one has no threads."""

    name = adds_as = environment = "django_tasks"
    package = "django-tasks-db"
    jobs = 3_000
    build = ("gcc", "pkg-config", "libmariadb-dev", "python3-dev")  # mysqlclient has no wheel for Linux
    setting = "4 db_worker processes"
    promise = "a killed worker's running task stays RUNNING for ever"
    producer = "django_jobs:fill"
    backend: MariaDB

    def __init__(self, environments: Environments, backend: MariaDB) -> None:
        super().__init__(environments)
        self.backend = backend

    @property
    def url(self) -> str:
        """See Peer."""
        return url(self.backend, "qd_migrator")

    def prepare(self) -> None:
        """See Contestant."""
        super().prepare()
        self.backend.new_database()

    def workers(self, turn: Turn) -> list[Command]:
        """See Contestant."""
        options = ["db_worker", "--settings=django_app"]
        return [Command([self.program("django-admin"), *options], self.env(turn))] * 4

    def left(self) -> int:
        """See Contestant."""
        sql = "SELECT COUNT(*) FROM django_tasks_database_dbtaskresult WHERE status IN ('READY', 'RUNNING')"
        return self.backend.count(sql)
