"""A real Alertmanager for a test, and a webhook of the test's own that hears what it tells people.

May import: nothing of qd.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.support.programs import HttpProgram


@dataclass(frozen=True)
class Note:
    """What a receiver was told of one alert.

    Attributes:
        receiver: its name in the configuration.
        status: `firing` or `resolved`.
    """

    receiver: str
    status: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Webhook:
    """Takes what Alertmanager posts.

    Attributes:
        url: for `webhook_configs`.
        notes: all that was told, in order.
    """

    def __init__(self) -> None:
        self.notes: list[Note] = []
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                webhook._take(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def told(self, name: str, status: str = "firing", **labels: str) -> list[Note]:
        """What it was told of an alert."""
        wanted = {"alertname": name, **labels}.items()
        return [note for note in list(self.notes) if note.status == status and wanted <= note.labels.items()]

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()

    def _take(self, told: dict[str, Any]) -> None:
        for alert in told["alerts"]:
            self.notes.append(Note(told["receiver"], alert["status"], alert["labels"], alert["annotations"]))


class Alertmanager(HttpProgram):
    """A server of its own.

    Args:
        folder: not there yet.
        config: what alertmanager.yml shall say.

    Raises:
        ServerMissing: there is none on this machine.
    """

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        super().__init__(folder, ("prometheus-alertmanager", "alertmanager"), "/-/ready")
        (folder / "alertmanager.yml").write_text(yaml.safe_dump(dict(config), sort_keys=False))

    def arguments(self) -> list[str]:
        own = [f"--config.file={self.folder / 'alertmanager.yml'}", f"--storage.path={self.folder / 'data'}"]
        return [*own, f"--web.listen-address={self.address}", "--cluster.listen-address=", "--log.level=warn"]

    def alerts(self) -> list[dict[str, Any]]:
        """What it knows of, with `labels` and `status.inhibitedBy`."""
        return list(self.get("/api/v2/alerts"))
