"""pgqueuer's side: its manager with the one entry point."""

import asyncio
import os
from contextlib import asynccontextmanager

import asyncpg
import filling
import ran
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries


@asynccontextmanager
async def main():
    connection = await asyncpg.connect(os.environ["BENCH_URL"])
    manager = PgQueuer(AsyncpgDriver(connection))

    @manager.entrypoint("noop")
    async def noop(job: Job) -> None:
        ran.note(int(job.payload))

    yield manager


def fill():
    asyncio.run(_fill())


async def _fill():
    connection = await asyncpg.connect(os.environ["BENCH_URL"])
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()

    async def many(numbers):
        payloads = [str(n).encode() for n in numbers]
        await queries.enqueue(["noop"] * len(payloads), payloads, [0] * len(payloads))

    await filling.fill_async(lambda n: queries.enqueue("noop", str(n).encode()), many)
    await connection.close()
