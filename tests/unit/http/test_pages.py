"""What the daemon's addresses answer."""

from __future__ import annotations

import pytest

from qd.daemon.http import Answer, daemon_routes
from tests.unit.http.client import Serve, ask, send
from tests.unit.metrics.pages import metrics


class Daemon:
    """What the routes ask."""

    late: str | None = None
    unready: str | None = None

    def routes(self) -> dict[str, object]:
        return dict(daemon_routes(metrics().page, lambda: self.late, lambda: self.unready))


def test_metrics_are_text_by_default_and_openmetrics_where_asked_for(serve: Serve) -> None:
    server = serve(Daemon().routes())
    plain = ask(server, "/metrics")
    assert (plain.status, plain.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert b"qd_database_up 1.0\n" in plain.body
    accept = "Accept: application/openmetrics-text; version=1.0.0, text/plain; q=0.5"
    other = ask(server, "/metrics?x=1", "GET", None, accept)
    assert other.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert other.body.endswith(b"# EOF\n")


def test_livez_is_503_with_the_loop_that_is_late(serve: Serve) -> None:
    daemon = Daemon()
    server = serve(daemon.routes())
    assert (ask(server, "/livez").status, ask(server, "/livez").body) == (200, b"ok\n")
    daemon.late = "poller is 12.0 s behind"
    assert (ask(server, "/livez").status, ask(server, "/livez").body) == (503, b"poller is 12.0 s behind\n")


def test_readyz_is_503_with_the_reason(serve: Serve) -> None:
    daemon = Daemon()
    server = serve(daemon.routes())
    assert ask(server, "/readyz").status == 200
    daemon.unready = "waiting for database"
    assert (ask(server, "/readyz").status, ask(server, "/readyz").body) == (503, b"waiting for database\n")


def test_the_root_is_a_page_of_links_that_all_work(serve: Serve) -> None:
    server = serve(Daemon().routes())
    page = ask(server, "/")
    assert (page.status, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    for path in ("/metrics", "/livez", "/readyz"):
        assert f'href="{path}"'.encode() in page.body
        assert ask(server, path).status == 200


def test_head_answers_as_get_without_the_body(serve: Serve) -> None:
    server = serve()
    got, head = ask(server, "/page"), ask(server, "/page", "HEAD")
    assert (head.status, head.headers, head.body) == (got.status, got.headers, b"")
    assert got.headers["Content-Length"] == "6"


def test_every_answer_forbids_caching_guessing_of_its_type_and_scripts(serve: Serve) -> None:
    server = serve()
    answers = [ask(server, "/page"), ask(server, "/nowhere"), ask(server, "/page", "POST"), send(server, b"x\r\n\r\n")]
    for reply in answers:
        assert reply.headers["Cache-Control"] == "no-store"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "charset=utf-8" in reply.headers["Content-Type"]


@pytest.mark.parametrize("path", ["/nowhere", "/page/", "//page", "/page/../page", "/%70age", "/<script>"])
def test_any_other_path_is_404_and_is_not_repeated(serve: Serve, path: str) -> None:
    reply = ask(serve(), path)
    assert (reply.status, reply.body) == (404, b"Not Found\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "BREW"])
def test_any_other_method_is_405(serve: Serve, method: str) -> None:
    reply = ask(serve(), "/page", method)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")
    assert b"secret" not in reply.body


def test_a_body_that_nobody_wants_does_not_cost_the_answer(serve: Serve) -> None:
    server = serve()
    body = b"x" * 100_000
    head = f"POST /page HTTP/1.1\r\nHost: {server.address}\r\nContent-Length: {len(body)}\r\n\r\n"
    assert send(server, head.encode() + body).status == 405


def test_a_route_that_raises_is_a_bare_500_and_told(serve: Serve, faults: list[BaseException]) -> None:
    def broken(accept: str) -> Answer:
        raise RuntimeError("password=hunter2")

    server = serve({"/broken": broken, "/page": lambda accept: Answer(200, "fine")})
    reply = ask(server, "/broken")
    assert (reply.status, reply.body) == (500, b"Internal Server Error\n")
    assert [str(fault) for fault in faults] == ["password=hunter2"]
    assert ask(server, "/page").status == 200
