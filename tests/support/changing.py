"""A table whose definition somebody is changing, for as long as a test likes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from tests.support.server import Server
from tests.support.waiting import wait_for

_BLOCKER = "zz_read"
"""Behind qd's tables in the alphabet, in whose order a RENAME takes its locks."""

_THERE = "SELECT COUNT(*) FROM information_schema.processlist WHERE id = %s"
_WAITS = "SELECT COUNT(*) FROM information_schema.processlist WHERE id = %s AND state LIKE 'Waiting for table%%'"


@contextmanager
def changing(server: Server, database: str, table: str) -> Iterator[None]:
    """Within it a RENAME has the table to itself and waits for another one, which a transaction reads.

    It is killed in the end, so that nothing was renamed.
    """
    server.run(f"CREATE TABLE {_BLOCKER} (id INT)", database=database)
    renames = f"RENAME TABLE {table} TO {table}_renamed, {_BLOCKER} TO {_BLOCKER}_renamed"
    with closing(server.connect(database)) as reader, closing(server.connect(database)) as changer:
        reader.cursor(buffered=True).execute(f"SELECT * FROM {_BLOCKER}")  # its transaction stays open
        number = changer.connection_id
        thread = threading.Thread(target=_refused, args=(changer, renames))
        thread.start()
        try:
            wait_for(lambda: server.run(_WAITS, (number,)) == [(1,)], 20, "the RENAME to wait")
            yield
        finally:
            server.run(f"KILL {number}")
            thread.join()  # its client has heard of the end sooner than the server has made it
            wait_for(lambda: server.run(_THERE, (number,)) == [(0,)], 20, "the RENAME's end")
    server.run(f"DROP TABLE {_BLOCKER}", database=database)


def _refused(connection: object, statement: str) -> None:
    with suppress(Exception):  # that it was killed
        connection.cursor().execute(statement)  # type: ignore[attr-defined]
