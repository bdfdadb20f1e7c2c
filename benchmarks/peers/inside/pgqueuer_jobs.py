"""pgqueuer's side: its manager with the one entry point, on one connection or a pool of them."""

import asyncio
import os
from contextlib import asynccontextmanager

import asyncpg
import filling
import ran
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries


@asynccontextmanager
async def single():
    yield _manager(AsyncpgDriver(await asyncpg.connect(os.environ["BENCH_URL"])))


@asynccontextmanager
async def pooled():
    async with asyncpg.create_pool(os.environ["BENCH_URL"], min_size=2, max_size=5) as pool:
        yield _manager(AsyncpgPoolDriver(pool))


def _manager(driver):
    manager = PgQueuer(driver)

    @manager.entrypoint("noop")
    async def noop(job: Job) -> None:
        ran.note(int(job.payload))

    return manager


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
