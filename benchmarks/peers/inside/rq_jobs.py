"""RQ's side: its one function."""

import os

import filling
import ran
from redis import Redis
from rq import Queue


def noop(n):
    ran.note(n)


def fill():
    queue = Queue(connection=Redis.from_url(os.environ["BENCH_URL"]))

    def many(numbers):
        queue.enqueue_many([Queue.prepare_data(noop, (n,), result_ttl=0) for n in numbers])

    filling.fill(lambda n: queue.enqueue(noop, n, result_ttl=0), many)
