"""What the kernel says of a process: memory and processor time. May import: nothing of the project."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def memory(pid: int | str = "self") -> dict[str, float]:
    """`VmRSS`, what it has now, and `VmHWM`, the most that it ever had, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kib = {name: float(value.split()[0]) for name, _, value in (line.partition(":") for line in lines) if "kB" in value}
    return {name: kib[name] / 1024 for name in ("VmRSS", "VmHWM")}


def processor_seconds(pid: int | str) -> float:
    """What all its threads, also those that have ended, have used, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
