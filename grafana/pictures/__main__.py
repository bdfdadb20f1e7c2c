"""`python -m grafana.pictures`: see the package."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from grafana.pictures.answers import Source
from grafana.pictures.page import draw_rows

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


def main() -> None:
    """Draws from the last minutes of a Prometheus."""
    parser = argparse.ArgumentParser(prog="python -m grafana.pictures", description="Draws the dashboard's rows.")
    parser.add_argument("--prometheus", default="http://127.0.0.1:9090", metavar="URL")
    parser.add_argument("--minutes", type=float, default=180.0, help="how far back")
    parser.add_argument("--scrape", type=float, default=15.0, help="seconds between two scrapes")
    parser.add_argument("--into", type=Path, default=PICTURES, metavar="FOLDER")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    now = time.time()
    source = Source(given.prometheus, now - 60 * given.minutes, now, given.scrape)
    for file in draw_rows(source, given.into):
        print(f"{file}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
