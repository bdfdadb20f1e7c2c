"""Huey's side: the queue and its one task."""

import os

import filling
import ran
from huey import RedisHuey

huey = RedisHuey("bench", url=os.environ["BENCH_URL"], results=False)


@huey.task()
def noop(n):
    ran.note(n)


def fill():
    filling.fill(noop)
