"""`qd enqueue` as it is, but for the moment right after its COMMIT, which is noted: nobody else could know it.

usage: python -m benchmarks.cli_side ARGUMENTS OF qd...     COMMITTED names the file of the moment
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from qd import client
from qd.cli import main
from qd.waking import wake


def _noted(*queues: str) -> None:
    committed = time.monotonic_ns()
    wake(*queues)
    Path(os.environ["COMMITTED"]).write_text(str(committed))


if __name__ == "__main__":
    client.wake = _noted  # type: ignore[attr-defined]  # what it calls next after its COMMIT has returned
    main()
