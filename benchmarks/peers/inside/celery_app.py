"""Celery's side: the application and its one task."""

import os

import filling
import ran
from celery import Celery

app = Celery("bench", broker=os.environ["BENCH_URL"])
app.conf.task_ignore_result = True


@app.task
def noop(n):
    ran.note(n)


def fill():
    filling.fill(noop.delay)
