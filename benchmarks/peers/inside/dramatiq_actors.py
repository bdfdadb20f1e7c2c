"""Dramatiq's side: the broker and its one actor."""

import os

import dramatiq
import filling
import ran
from dramatiq.brokers.redis import RedisBroker

broker = RedisBroker(url=os.environ["BENCH_URL"])
dramatiq.set_broker(broker)


@dramatiq.actor
def noop(n):
    ran.note(n)


def fill():
    filling.fill(noop.send)
