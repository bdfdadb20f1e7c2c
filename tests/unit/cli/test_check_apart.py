"""What root's check imports has nothing of root's: not the terminal, no descriptor, and no life after the check."""

from __future__ import annotations

import ast
import os
import pwd
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.missing import without
from tests.support.server import ROOT
from tests.support.terminal import Terminal
from tests.support.waiting import wait_for

NOBODY = pwd.getpwnam("nobody")
PROGRAM = f"""
import os, sys
from pathlib import Path
import click
from qd.cli.checks.apart import EndedEarly, run_apart
from qd.cli.checks.eyes import Account
from qd.cli.checks.privilege import become
nobody = Account("nobody", {NOBODY.pw_uid}, {NOBODY.pw_gid}, ())
code = Path(sys.argv[1]).read_text()
print("before", flush=True)
kept = os.open("/etc/hostname", os.O_RDONLY)
os.set_inheritable(kept, True)
def work(tell):
    exec(code, globals() | {{"tell": tell}})
    tell("checked")
    return 78
try:
    status = run_apart(lambda: become(nobody), work, lambda text: print(text, flush=True))
except click.exceptions.Exit as ended:
    sys.exit(ended.exit_code)
except EndedEarly as early:
    print("early", early)
    sys.exit(3)
print("after", os.getuid(), status)
sys.exit(status)
"""
LINGERS = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with open(os.environ["MARK"], "w") as mark:
            print(os.getpid(), file=mark)
        while True:
            time.sleep(60)
    os._exit(0)
while not os.path.exists(os.environ["MARK"]):
    time.sleep(0.01)
"""
"""Leaves a process in a session of its own behind that has the check's outputs open."""
MARKS = "with open(os.environ['MARK'], 'w') as mark:\n    print(os.getpid(), file=mark)\n"
"""Says which process the child is; that is all that the kernel ends with a check that is killed."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that anybody reaches; what pytest gives is its user's alone."""
    if os.geteuid() != 0:
        without("root: nobody else has anything to give up")
    with tempfile.TemporaryDirectory(prefix="qd-apart-") as made:
        Path(made).chmod(0o755)
        open_to_all = Path(made) / "open"
        open_to_all.mkdir()
        open_to_all.chmod(0o777)
        yield open_to_all


def command(folder: Path, code: str) -> list[str]:
    (folder.parent / "program.py").write_text(PROGRAM)
    (folder.parent / "code.py").write_text(code)
    return [sys.executable, str(folder.parent / "program.py"), str(folder.parent / "code.py")]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "MARK": str(folder / "mark"), "PYTHONDONTWRITEBYTECODE": "1"}


def ended(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(folder, code), env=environment(folder), input="typed by root\n", capture_output=True, text=True,
        timeout=30, cwd=folder,
    )  # fmt: skip


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def lingering(folder: Path) -> int:
    return int(wait_for(lambda: (folder / "mark").exists() and (folder / "mark").read_text(), 10, "the lingerer"))


def test_it_is_another_user_and_its_status_is_the_checks(folder: Path) -> None:
    done = ended(folder, "tell(f'{os.getuid()} {os.getgid()}')")
    assert done.stdout.splitlines() == ["before", f"{NOBODY.pw_uid} {NOBODY.pw_gid}", "checked", "after 0 78"]
    assert done.returncode == 78 and done.stderr == ""


def test_it_has_no_descriptor_but_its_three_and_reads_nothing_of_what_root_types(folder: Path) -> None:
    done = ended(
        folder,
        "tell([os.readlink(f'/proc/self/fd/{fd}')[:5] for fd in range(3)] + [sys.stdin.read()])\n"
        "own = '/proc/self/fd/'\n"
        "tell([fd for fd in map(int, os.listdir(own)) if fd > 2 and os.path.exists(f'{own}{fd}')])",
    )
    three, [way] = map(ast.literal_eval, done.stdout.splitlines()[1:3])
    assert three == ["/dev/", "pipe:", "pipe:", ""] and way > 2


def test_control_characters_do_not_reach_the_terminal(folder: Path) -> None:
    done = ended(folder, r"os.write(1, b'\x1b]0;x\x07 one\r\ntwo \xff'); os.write(2, b'\x1b[2J')")
    assert done.stdout.splitlines()[1] == "checked" and "\x1b" not in done.stdout + done.stderr
    assert done.stderr == "\\x1b]0;x\\x07 one\ntwo \ufffd\\x1b[2J\n"


def test_a_line_of_any_length_stays_one_line(folder: Path) -> None:
    done = ended(folder, "tell('x' * 300_000)\nprint('y' * 300_000)")
    assert list(map(len, done.stdout.splitlines())) == [6, 300_000, 7, 10]
    assert done.stderr == f"{'y' * 300_000}\n"


@pytest.fixture
def terminal(folder: Path) -> Iterator[Callable[[str], Terminal]]:
    made: list[Terminal] = []

    def run(code: str) -> Terminal:
        made.append(Terminal(command(folder, code), folder, environment(folder)))
        return made[-1]

    yield run
    for each in made:
        with closing(each):
            pass


def test_it_can_neither_reach_the_terminal_nor_outlive_the_check(
    folder: Path, terminal: Callable[[str], Terminal]
) -> None:
    reach = (
        "\ntry:\n    os.open('/dev/tty', os.O_RDWR)\nexcept OSError as error:\n    print('no terminal', error.errno)\n"
    )
    shell = terminal(LINGERS + reach + "print([os.isatty(fd) for fd in (0, 1, 2)])\n")
    assert shell.ends(20) == 78
    shown = shell.look()
    assert "no terminal 6" in shown and "[False, False, False]" in shown and "checked" in shown
    assert is_gone(lingering(folder))


def test_ctrl_c_ends_it_with_all_that_it_began(folder: Path, terminal: Callable[[str], Terminal]) -> None:
    shell = terminal(LINGERS + "\nprint('hangs', flush=True)\nimport time\ntime.sleep(600)\n")
    shell.shows("hangs")
    shell.type(b"\x03")
    shell.ends(10)
    assert is_gone(lingering(folder))


def test_one_that_is_killed_is_told_by_its_status(folder: Path) -> None:
    assert ended(folder, "os.kill(os.getpid(), 9)").stdout.splitlines() == ["before", "early by a signal, Killed"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_what_was_begun_ends_with_the_check_whatever_ends_that(folder: Path, number: signal.Signals) -> None:
    hangs = LINGERS if number != signal.SIGKILL else MARKS
    check = subprocess.Popen(command(folder, f"{hangs}\nimport time\ntime.sleep(600)\n"), env=environment(folder))
    pid = lingering(folder)
    check.send_signal(number)
    assert check.wait(20) == (-number if number == signal.SIGKILL else 128 + number)
    wait_for(lambda: is_gone(pid), 10, "the end of what it began")


def test_a_copy_that_a_module_makes_of_the_process_tells_nothing(folder: Path) -> None:
    done = ended(folder, "os.fork()")
    assert done.stdout.splitlines() == ["before", "checked", "after 0 78"]


def test_neither_a_thread_nor_an_exit_handler_of_its_keeps_the_check(folder: Path) -> None:
    keeps = "threading.Thread(target=time.sleep, args=(600,)).start()"
    code = f"import atexit, threading, time\natexit.register(time.sleep, 600)\n{keeps}"
    assert ended(folder, code).returncode == 78


def test_what_root_had_begun_before_is_left_alone(folder: Path) -> None:
    before = "import subprocess\nother = subprocess.Popen(['sleep', '600'])\n"
    program = PROGRAM.replace("try:\n    status", before + "try:\n    status", 1).replace(
        'print("after"', 'print(other.poll()); other.kill(); other.wait(); print("after"', 1
    )
    asked = command(folder, "pass")
    (folder.parent / "program.py").write_text(program)
    done = subprocess.run(asked, env=environment(folder), capture_output=True, text=True, timeout=30, cwd=folder)
    assert done.stdout.splitlines()[-2:] == ["None", "after 0 78"], done.stderr
