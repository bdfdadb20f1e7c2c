"""Adds the jobs 0, 1, 2 ... to a peer's queue and prints the rates, as JSON. Runs inside each peer's own environment.

The first `BENCH_SINGLY` one call each; the others, where the peer has a way to add many at once, 1,000 a call.
"""

import json
import os
from time import perf_counter

JOBS = int(os.environ.get("BENCH_JOBS", "0"))
SINGLY = int(os.environ.get("BENCH_SINGLY", "0"))
AT_ONCE = 1_000


def fill(single, bulk=None):
    """`single(n)` adds one job, `bulk(range)` adds many."""
    singly = SINGLY if bulk else JOBS
    began = perf_counter()
    for n in range(singly):
        single(n)
    _report("single", singly, began)
    began = perf_counter()
    for first in range(singly, JOBS, AT_ONCE):
        bulk(range(first, min(first + AT_ONCE, JOBS)))
    _report("bulk", JOBS - singly, began)


async def fill_async(single, bulk=None):
    """The same for coroutines."""
    singly = SINGLY if bulk else JOBS
    began = perf_counter()
    for n in range(singly):
        await single(n)
    _report("single", singly, began)
    began = perf_counter()
    for first in range(singly, JOBS, AT_ONCE):
        await bulk(range(first, min(first + AT_ONCE, JOBS)))
    _report("bulk", JOBS - singly, began)


def _report(how, jobs, began):
    if jobs:
        print(json.dumps({how: jobs / (perf_counter() - began)}), flush=True)
