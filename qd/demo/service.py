"""The daemon that the demo runs: a real `qd run` of its own, seen through its HTTP address.

May import: errors, clock, the demo's processes. Owns the daemon's process.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from threading import Event

from qd.clock import monotonic
from qd.demo import process
from qd.errors import QdError

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Past the proxy that $http_proxy may name: it doesn't know this machine's loopback."""

USUAL_PORT = 9833
LOG = "daemon.log"


class DemoFailed(QdError):
    """The demo can't go on; the text is one line."""


class Service:
    """`qd run` with the demo's configuration.

    Args:
        folder: where its log goes.
        config: its configuration.
        address: `host:port` as the configuration has it.
        env: added to its environment.
    """

    def __init__(self, folder: Path, config: Path, address: str, env: dict[str, str]) -> None:
        self.url = f"http://{address}/metrics"
        self._ready = f"http://{address}/readyz"
        self._log, self._config, self._env = folder / LOG, config, env
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, within: float = 60.0) -> None:
        """Starts it and waits until it is ready.

        Raises:
            DemoFailed: it ended, or wasn't ready in time.
        """
        self._process = process.start(
            [sys.executable, "-m", "qd", "--config", str(self._config), "run"], self._log, self._environment()
        )
        deadline, pause = monotonic() + within, Event()
        while not self._is_ready():
            self.check()
            if monotonic() > deadline:
                raise DemoFailed(f"the daemon wasn't ready within {within:g} s: {self.last_words()}")
            pause.wait(0.05)

    def check(self) -> None:
        """Raises DemoFailed if the daemon has ended."""
        if self._process is not None and self._process.poll() is not None:
            raise DemoFailed(f"the daemon ended with {self._process.returncode}: {self.last_words()}")

    def counts(self, names: Sequence[str]) -> dict[str, int]:
        """What /metrics counts by now: attempts by outcome, and `dead_lettered`."""
        from prometheus_client.parser import text_string_to_metric_families

        with _direct.open(self.url, timeout=10) as answer:
            page = answer.read().decode()
        counts = dict.fromkeys(names, 0)
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                name = _counted(sample.name, sample.labels)
                if name in counts:
                    counts[name] += int(sample.value)
        return counts

    def stop(self, within: float = 60.0) -> int:
        """SIGTERM; its exit status (0: it stopped in order)."""
        if self._process is None:
            return 0
        running, self._process = self._process, None
        return process.stop(running, within)

    def last_words(self) -> str:
        """The end of its log, as one line."""
        return process.last_words(self._log.read_bytes() if self._log.exists() else b"")

    def _is_ready(self) -> bool:
        try:
            with _direct.open(self._ready, timeout=2):
                return True
        except (OSError, urllib.error.URLError):
            return False

    def _environment(self) -> dict[str, str]:
        """Ours, with this very qd to be found from any folder, and no files written beside modules."""
        import qd

        paths = [str(Path(qd.__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
        inherited = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
        search = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**inherited, **search, **self._env}


def _counted(sample: str, labels: dict[str, str]) -> str | None:
    """What a sample counts, in the demo's words."""
    if sample == "qd_job_attempts_total":
        return labels["outcome"]
    return "dead_lettered" if sample == "qd_jobs_dead_lettered_total" else None


def free_address() -> str:
    """The usual address, or another port of 127.0.0.1 where somebody has that."""
    for port in (USUAL_PORT, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return f"127.0.0.1:{probe.getsockname()[1]}"
    raise DemoFailed("no TCP port of 127.0.0.1 is free")
