"""taskiq's side: its broker over a list, its broker over a stream, and the one task of each."""

import asyncio
import os

import filling
import ran
from taskiq_redis import ListQueueBroker, RedisStreamBroker

lists = ListQueueBroker(os.environ["BENCH_URL"])
streams = RedisStreamBroker(os.environ["BENCH_URL"], consumer_id="0")


@lists.task
async def noop(n: int) -> None:
    ran.note(n)


@streams.task
async def noop_streamed(n: int) -> None:
    ran.note(n)


def fill():
    asyncio.run(_fill(lists, noop))


def fill_stream():
    asyncio.run(_fill(streams, noop_streamed))


async def _fill(broker, task):
    await broker.startup()
    await filling.fill_async(task.kiq)
    await broker.shutdown()
