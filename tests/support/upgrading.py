"""The next version of qd: what it has in other files than this checkout. May import: nothing of qd."""

from __future__ import annotations

from tests.support.server import ROOT

MIGRATION = "0002_cost"

_EXPAND = """-- What the next version adds, and the older needn't know.
-- compatible_from: 1
ALTER TABLE qd_jobs ADD COLUMN cost INT NOT NULL DEFAULT 1;
"""


def next_files() -> dict[str, str]:
    """By its name in the checkout the text of each file that differs: it is one schema further."""
    return {
        f"qd/store/migrations/mysql/{MIGRATION}.sql": _EXPAND,
        "qd/store/schema.py": _changed("qd/store/schema.py", "\nSCHEMA_VERSION = 1\n", "\nSCHEMA_VERSION = 2\n"),
    }


def estranged_files() -> dict[str, str]:
    """The same, of one whose child processes an older daemon can't talk to."""
    return {"qd/executors/wire.py": _changed("qd/executors/wire.py", "\nPROTOCOL = 1\n", "\nPROTOCOL = 2\n")}


def _changed(name: str, old: str, new: str) -> str:
    text = (ROOT / name).read_text()
    assert old in text
    return text.replace(old, new)
