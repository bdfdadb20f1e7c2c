"""What the demo enqueues, and the configuration that it runs with. May import: job, the demo's tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from qd.demo import tree
from qd.job import NewJob

QUEUE = "demo"
ATTEMPTS = 3
DELAY = 3.0
"""Seconds that the delayed job waits."""

BY_PROGRAM = 10
"""Files that are hashed by a program instead of Python."""

FAILURES = (1, 1, 1, 2, 2)
"""How often each of the jobs that fail first does so."""

THREADS = 4

PROGRAM = r"""#!/bin/sh
# A command handler: the payload comes on stdin, what is done goes to the ledger, $1.
set -eu
file=$(sed -n 's/.*"file": *"\([^"]*\)".*/\1/p' | base64 -d; echo /)   # the / keeps newlines at a name's end
file=${file%?}
[ -f "$file" ] && [ -r "$file" ] && [ ! -h "$file" ] || { echo "can't be read" >&2; exit 65; }
size=$(wc -c <"$file") sha256=$(sha256sum <"$file")
printf '{"type": "%s", "job": %d, "attempt": %d, "file": "%s", "sha256": "%s", "size": %d}\n' \
  "$QD_JOB_TYPE" "$QD_JOB_ID" "$QD_ATTEMPT" "$(printf %s "$file" | base64 -w 0)" "${sha256%% *}" "$size" >>"$1"
"""
"""65 says: to the dead letter at once. Names keep their trailing newline by the sentinel."""


def jobs(files: Sequence[bytes], root: bytes) -> Iterator[NewJob]:
    """All jobs in the order in which they are enqueued: the urgent one comes last."""
    yield NewJob("delayed", queue=QUEUE, delay=DELAY, priority="high", max_attempts=1)
    count = min(BY_PROGRAM, (len(files) + 1) // 2)
    by_program = set(files[:: len(files) // count][:count]) if count else set()
    for path in files:
        payload = {"file": tree.to_text(path), "name": tree.readable(path[len(root) :].lstrip(b"/"))}
        yield NewJob("hash_file_by_program" if path in by_program else "hash_file", payload, queue=QUEUE)
    for failures in FAILURES:
        yield NewJob("fails_first", {"failures": failures}, queue=QUEUE)
    yield NewJob("always_fails", queue=QUEUE)
    yield NewJob("urgent", queue=QUEUE, priority="urgent", max_attempts=1)


def write_config(folder: Path, database: dict[str, Any], listen: str) -> Path:
    """Writes `qd.yaml` and the program into the folder.

    Args:
        database: the `database` section.
        listen: where the daemon answers HTTP, `host:port`.
    """
    program = folder / "hash_file.sh"
    program.write_text(PROGRAM)
    config = {
        "database": database,
        "handlers": {
            "modules": ["qd.demo.handlers"],
            "commands": {"hash_file_by_program": {"argv": ["sh", str(program), str(folder / "ledger.jsonl")]}},
        },
        "queues": {
            QUEUE: {
                "max_attempts": ATTEMPTS,
                "timeout": "10m",
                "backoff": {"base": "500ms", "factor": 2, "cap": "2s", "jitter": 0.2},
            }
        },
        "workers": [{"queues": [QUEUE], "threads": THREADS}],
        "http": {"listen": listen, "refresh": "1s"},
        "log": {"format": "text"},
    }
    path = folder / "qd.yaml"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(_literal(config), sort_keys=False))
    return path


def _literal(value: Any) -> Any:
    """A dollar in a value would begin an environment variable: doubled it is one."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, dict):
        return {key: _literal(each) for key, each in value.items()}
    return [_literal(each) for each in value] if isinstance(value, list) else value
