"""Scrapers of a daemon's page: one request, or many at once for as long as something else is done."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from types import TracebackType

from qd.clock import monotonic
from qd.metrics.page import OPENMETRICS as OPENMETRICS
from tests.unit.metrics.pages import Page

PATIENCE = 3.0
"""Seconds that a scraper waits; Prometheus itself waits ten."""

DEPTHS = ("qd_queue_jobs", "qd_queue_oldest_ready_age_seconds", "qd_queue_paused")
"""What is read from the rows."""


@dataclass(frozen=True)
class Scrape:
    """One answer, and how many seconds it took."""

    status: int
    content_type: str
    text: str
    seconds: float


def scrape(port: int, accept: str = "", path: str = "/metrics") -> Scrape:
    """Asks once.

    Raises:
        OSError: there was no answer in time.
    """
    began, connection = monotonic(), HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path, headers={"Accept": accept} if accept else {})
        answer = connection.getresponse()
        text = answer.read().decode()
        return Scrape(answer.status, answer.getheader("Content-Type", ""), text, monotonic() - began)
    finally:
        connection.close()


def page(port: int) -> Page:
    """The page as a scraper reads it."""
    return Page(scrape(port).text)


class Scrapers:
    """Ask again and again, each on its own, while the block runs.

    Args:
        every: seconds between two questions of one of them.

    Attributes:
        seconds: how long each good answer took.
        failures: what went wrong with the others.
    """

    def __init__(self, port: int, count: int = 10, every: float = 0.1) -> None:
        self._port, self._every = port, every
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(count)]
        self.seconds: list[float] = []
        self.failures: list[str] = []

    def __enter__(self) -> Scrapers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._done.is_set():
            try:
                answer = scrape(self._port)
            except (OSError, HTTPException) as error:
                self.failures.append(f"{type(error).__name__}: {error}")
                continue
            if answer.status == 200 and answer.text.endswith("\n"):
                self.seconds.append(answer.seconds)
            else:
                self.failures.append(f"{answer.status} {answer.text[:100]}")
            self._done.wait(self._every)
