"""docs/benchmarks.md: what stands between its markers is written by the run, everything else by people.

Pure but for reading and writing the page. May import: record, table.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.record import Record
from benchmarks.table import as_markdown

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
BEGIN = "<!-- written by `make bench ARGS=--write`: begin -->"
END = "<!-- written by `make bench ARGS=--write`: end -->"


def renewed(page: str, record: Record) -> str:
    """The page with a run's table, figures and conditions in place of the last one's.

    Raises:
        ValueError: the page hasn't each marker once, in order.
    """
    before, found, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended or page.count(BEGIN) + page.count(END) != 2:
        raise ValueError(f"the page must have the markers once each, in order: {BEGIN} {END}")
    return "\n".join([before + BEGIN, "", *as_markdown(record), "", END + after])


def renew(record: Record, page: Path = PAGE) -> None:
    """Writes the page anew.

    Raises:
        ValueError, OSError: see `renewed`, or it can't be written.
    """
    page.write_text(renewed(page.read_text(), record))
