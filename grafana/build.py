"""`python -m grafana.build` writes `grafana/qd-dashboard.json`; nobody edits that file.

May import: board.
"""

from __future__ import annotations

import json
from pathlib import Path

from grafana.board import dashboard

FILE = Path(__file__).with_name("qd-dashboard.json")


def text() -> str:
    """What stands in the file."""
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
    print(f"{FILE}: written")
