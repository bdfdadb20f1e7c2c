"""procrastinate's side: the application and its one task."""

import os

import filling
import ran
from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

app = App(connector=PsycopgConnector(conninfo=os.environ["BENCH_URL"]))


@app.task(name="noop")
async def noop(n):
    ran.note(n)


def fill():
    with app.replace_connector(SyncPsycopgConnector(conninfo=os.environ["BENCH_URL"])) as own, own.open():
        own.schema_manager.apply_schema()
        filling.fill(
            lambda n: noop.defer(n=n),
            lambda numbers: noop.batch_defer(*({"n": n} for n in numbers)),
        )
