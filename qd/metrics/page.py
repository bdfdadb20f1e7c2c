"""The metrics page as bytes, made at most once at a time however many ask. May import: nothing of qd.

A page of 17,000 series takes 0.15 s with the GIL held, so ten scrapers at once must not make ten.
Whoever asks while a page is being made shares the NEXT one: every page is begun after it was asked
for, so none shows less than was true at the request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class SharedPage:
    """One page for many askers.

    Args:
        make: makes it; never called by two threads at once.
    """

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make
        self._making = threading.Lock()
        self._lock = threading.Lock()
        self._next: Future[bytes] | None = None

    def get(self) -> bytes:
        """The page, begun after this call. Raises what `make` raised, for each who shares it."""
        with self._lock:
            mine = self._next is None
            page = self._next = self._next or Future()
        if mine:
            self._lead(page)
        return page.result()

    def _lead(self, page: Future[bytes]) -> None:
        with self._making:
            with self._lock:
                self._next = None  # who asks from here on wants a later one
            try:
                page.set_result(self._make())
            except BaseException as error:  # raised again in each asker's own thread by result()
                page.set_exception(error)


class Pages:
    """The page in both formats."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pages: dict[bool, tuple[SharedPage, str]] = {}
        for openmetrics, accept in ((False, ""), (True, OPENMETRICS)):
            encode, content_type = choose_encoder(accept)
            self._pages[openmetrics] = SharedPage(lambda encode=encode: encode(registry)), content_type  # type: ignore[misc]

    def get(self, accept: str) -> tuple[bytes, str]:
        """The page and its content type.

        Args:
            accept: the request's Accept header, from anybody: it chooses between two fixed
                answers and no part of it comes back.
        """
        page, content_type = self._pages[_wants_openmetrics(accept)]
        return page.get(), content_type


def _wants_openmetrics(accept: str) -> bool:
    try:
        return "openmetrics" in choose_encoder(accept)[1]
    except (TypeError, ValueError):  # a version that is no number
        return False
