"""Handlers that try what the shipped units allow and forbid; those of `hard_handlers` are there too."""

from __future__ import annotations

import ctypes
import grp
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import qd
from tests.acceptance.daemon_handlers import note


def call_back() -> None:
    """From C into Python, and the way back: what ctypes and cffi do."""
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    numbers = (ctypes.c_int * 3)(3, 1, 2)
    ctypes.CDLL(None).qsort(numbers, 3, ctypes.sizeof(ctypes.c_int), compare(lambda a, b: a[0] - b[0]))
    assert list(numbers) == [1, 2, 3]


def write_files() -> None:
    """Where a handler may: its own /tmp, and the working directory."""
    with tempfile.NamedTemporaryFile("w", dir="/tmp") as file:
        file.write("x")
    Path("made-by-a-job").write_text("x")


def use_threads_and_pipes() -> None:
    thread = threading.Thread(target=lambda: subprocess.run(["sort"], input=b"b\na\n", check=True, capture_output=True))
    thread.start()
    thread.join()


def listen() -> None:
    """Sockets of all three families that there are."""
    with socket.socket(socket.AF_UNIX) as local, socket.create_server(("127.0.0.1", 0)) as server:
        local.bind("socket-made-by-a-job")
        os.unlink("socket-made-by-a-job")
        socket.create_connection(server.getsockname()).close()


def look_at_itself() -> None:
    """What process metrics and memory limits need."""
    assert "VmRSS" in Path("/proc/self/status").read_text()
    assert Path("/proc/meminfo").read_text() and os.getloadavg()


def print_words() -> None:
    print("printed by a job")


ALLOWED: dict[str, Callable[[], None]] = {
    one.__name__: one for one in (call_back, write_files, use_threads_and_pipes, listen, look_at_itself, print_words)
}


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def share_a_folder() -> None:
    """A folder that passes its group on."""
    Path("shared-by-a-job").mkdir(exist_ok=True)
    os.chmod("shared-by-a-job", 0o2775)


def trace_a_child() -> None:
    run(sys.executable, "-c", "import ctypes, os; os._exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)")


FORBIDDEN: dict[str, Callable[[], object]] = {
    "write /etc": lambda: Path("/etc/qd/made-by-a-job").write_text("x"),
    "write the program": lambda: Path("/opt/qd/made-by-a-job").write_text("x"),
    "read the stored password": lambda: Path("/etc/credstore/qd.db-password").read_text(),
    "read /root": lambda: os.listdir("/root"),
    "see others' processes": lambda: os.stat("/proc/1"),
    "change owners": lambda: os.chown("made-by-a-job", os.getuid(), os.getgid()),
    "give to a group": lambda: os.chown("made-by-a-job", -1, grp.getgrnam("www-data").gr_gid),
    "share a folder": share_a_folder,
    "trace a child": trace_a_child,
    "write to the machine's tmp": lambda: Path("/tmp/of-all/made-by-a-job").write_text("x"),
    "change priority": lambda: os.setpriority(os.PRIO_PROCESS, 0, 5),
    "make a namespace": lambda: run("unshare", "--user", "true"),
    "open another family": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "open a device": lambda: os.open("/dev/mem", os.O_RDONLY),
}


@qd.handler("try_allowed")
def try_allowed(job: qd.Job) -> None:
    """Does all that is allowed."""
    for name, act in ALLOWED.items():
        act()
        note(job, name)
    note(job, "end")


@qd.handler("try_forbidden")
def try_forbidden(job: qd.Job) -> None:
    """Notes what of FORBIDDEN could be done."""
    for name, act in FORBIDDEN.items():
        try:
            act()
        except (OSError, subprocess.CalledProcessError):
            continue
        note(job, f"could-{name.replace(' ', '-')}")
    note(job, "end")


@qd.handler("fill")
def fill(job: qd.Job) -> None:
    """Takes `mib` of memory and holds it for `seconds`."""
    note(job, "start")
    taken = bytearray(job.payload["mib"] << 20)
    for at in range(0, len(taken), 4096):
        taken[at] = 1
    time.sleep(job.payload["seconds"])
    note(job, "end")
