"""The demo's daemon, seen through its HTTP address."""

from __future__ import annotations

from pathlib import Path

import pytest

from qd.daemon.http import Answer, HttpServer
from qd.demo.service import Service

PAGE = """# HELP qd_jobs_dead_lettered_total x
# TYPE qd_jobs_dead_lettered_total counter
qd_jobs_dead_lettered_total{queue="demo",reason="error"} 3
"""


def test_its_address_is_asked_directly_whatever_proxy_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = HttpServer("127.0.0.1:0", {"/metrics": lambda accept: Answer(200, PAGE)})
    server.start()
    try:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        service = Service(tmp_path, tmp_path / "qd.yaml", server.address, {})
        assert service.counts(["dead_lettered"]) == {"dead_lettered": 3}
    finally:
        server.close()
