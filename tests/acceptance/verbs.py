"""A verb of the command line, run beside daemons on their own configuration."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.daemon import Qd
from tests.support.server import ROOT


def verb(qd: Qd, *args: str) -> subprocess.CompletedProcess[str]:
    """Runs one to its end."""
    environment = {**os.environ, "QD_CONFIG": str(qd.file), "PYTHONPATH": str(ROOT), "LEDGER": str(qd.ledger)}
    command = [sys.executable, "-m", "qd", *args]
    return subprocess.run(command, env=environment, cwd=qd.folder, capture_output=True, text=True, timeout=60)
