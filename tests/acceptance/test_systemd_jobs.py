"""Jobs under the shipped units' hardening: what they can do, what they can't, what a drop-in gives back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.unit_handlers import ALLOWED, FORBIDDEN
from tests.support.missing import without
from tests.support.systemd import CHECKOUT, Machine
from tests.support.unit import Unit
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
Units = Callable[..., Unit]

HANDLERS = {"modules": ["tests.acceptance.hard_handlers", "tests.acceptance.unit_handlers"]}
EXAMPLE = "systemd/qd.service.d/jobs.conf.example"


def done(unit: Unit, type: str) -> set[str]:
    """Runs a job and returns what it noted."""
    (job,) = unit.enqueue(type)
    wait_for(lambda: unit.ran("end", job) or unit.lines("job.failed"), 20, f"{type} to end; {unit.said()}")
    assert not unit.lines("job.failed"), unit.said()
    noted = [line.split() for line in unit.machine.read(unit.noted).splitlines()]
    return {what for id, what in noted if int(id) == job}


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_python_handlers_do_what_is_theirs_and_nothing_else(unit: Units, executor: str) -> None:
    working = unit(f"in-a-{executor}")
    working.write(handlers=HANDLERS, workers=[{"queues": ["default"], "threads": 2, "executor": executor}])
    working.control("start")
    assert done(working, "try_allowed") == {*ALLOWED, "end"}
    assert done(working, "try_forbidden") == {"end"}
    printed = wait_for(lambda: [line for line in working.journal() if line.text == "printed by a job"], 5, "its words")
    assert working.value("ActiveState") == "active" and len(printed) == 1, "and not only when the daemon has ended"


def test_programs_run_and_their_words_are_kept(unit: Units) -> None:
    running = unit("programs")
    said = 'echo "$QD_JOB_ID $QD_ATTEMPT for $(cat)"; echo "no more" >&2; id -un; test "$QD_ATTEMPT" = 2'
    running.write(
        handlers={"commands": {"say": {"argv": ["sh", "-c", said]}}},
        queues={"default": {"backoff": {"base": "100ms"}}},
        log={"jobs": "all"},
    )
    running.control("start")
    (job,) = running.enqueue("say", to=7)
    (failed,) = wait_for(lambda: running.lines("job.failed"), 15, "the first attempt")
    assert "no more" in failed.text
    wait_for(lambda: running.lines("job.succeeded"), 15, "the second")
    assert running.jobs() == 0 and job


def test_memory_runs_out_for_one_job_and_not_for_the_daemon(unit: Units, machine: Machine) -> None:
    if not machine.limits_memory():
        without("there is no memory controller that could be given to a service here")
    tight = unit("tight")
    tight.write(
        handlers=HANDLERS,
        workers=[{"queues": ["default", "limited"], "threads": 1, "executor": "process"}],
        queues={"default": {"max_attempts": 1}, "limited": {"max_attempts": 1, "memory": "150MiB"}},
    )
    tight.drop_in("memory", MemoryMax="400M", MemorySwapMax="0")
    tight.control("start")
    pid = tight.pid()
    tight.enqueue("fill", mib=600, seconds=0)
    tight.enqueue("fill", queue="limited", mib=160, seconds=30)
    wait_for(lambda: len(tight.lines("job.dead_lettered")) == 2, 40, f"both to end; {tight.said()}")
    ends = {line.text.partition(" queue=")[2].split()[0]: line.text for line in tight.lines("job.crashed")}
    assert "killed by SIGKILL" in ends["default"] and "more than the queue's memory" in ends["limited"], ends
    assert tight.pid() == pid and tight.value("NRestarts") == "0"


def test_a_daemon_that_runs_out_of_memory_with_its_threads_comes_back(unit: Units, machine: Machine) -> None:
    if not machine.limits_memory():
        without("there is no memory controller that could be given to a service here")
    greedy = unit("greedy")
    greedy.write(handlers=HANDLERS, queues={"default": {"max_attempts": 1, "lease": "3s"}})
    greedy.drop_in("memory", MemoryMax="200M", MemorySwapMax="0")
    greedy.control("start")
    (job,) = greedy.enqueue("fill", mib=300, seconds=0)
    greedy.wait_restarted(1, 20)
    assert any("status=9/KILL" in line.text for line in greedy.journal("_PID=1"))
    wait_for(lambda: greedy.lines("job.dead_lettered"), 20, f"its only attempt to be counted; {greedy.said()}")
    assert greedy.ran("start") == [job] and not greedy.ran("end")


def test_the_group_qd_wakes_the_daemon_and_others_cannot(unit: Units, machine: Machine) -> None:
    awake = unit("awake")
    awake.write(poll={"min": "5s", "max": "20s"}, log={"jobs": "all"})
    machine.sh("getent passwd shop || useradd --system --groups qd shop; getent passwd other || useradd --system other")
    awake.control("start")
    said = "import qd.waking; print(len(qd.waking._sockets())); qd.wake('default')"
    wake = f'PYTHONPATH={CHECKOUT} LD_LIBRARY_PATH=/opt/python/lib /opt/qd/bin/python -c "{said}"'

    def as_user(name: str) -> str:
        return machine.run("su", "-s", "/bin/sh", name, "-c", wake).stdout.strip()

    (job,) = awake.enqueue("nap", seconds=0)
    assert as_user("other") == "0"
    assert as_user("shop") == "1"
    wait_for(lambda: awake.ran("end", job), 4, "the job, well before the next poll")
    assert machine.sh("stat -c %a:%U:%G /run/qd").strip() == "750:qd:qd"


def test_a_drop_in_gives_back_what_jobs_need(unit: Units, machine: Machine) -> None:
    freed = unit("freed")
    freed.write(handlers=HANDLERS)
    machine.sh("mkdir -p /tmp/of-all && chmod 777 /tmp/of-all")
    wanted = {
        "RestrictAddressFamilies=AF_NETLINK", "SystemCallFilter=@chown", "PrivateUsers=no",
        "PrivateTmp=no", "ReadWritePaths=/tmp /var/tmp", "SupplementaryGroups=www-data", "RestrictSUIDSGID=no",
        "SystemCallFilter=ptrace", "ReadWritePaths=-/srv/shop/uploads",
        "SystemCallFilter=@resources", "RestrictNamespaces=no", "SystemCallFilter=@mount unshare setns chroot",
    }  # fmt: skip
    offered = set(re.findall(r"^#([A-Za-z]+=.*)$", Path(EXAMPLE).read_text(), re.MULTILINE))
    assert wanted <= offered
    lines = "\n".join([*sorted(wanted), "ReadWritePaths=/opt/qd"])
    machine.write(f"/etc/systemd/system/{freed.name}.d/jobs.conf", f"[Service]\n{lines}\n")
    machine.sh("systemctl daemon-reload; chmod 777 /opt/qd")
    freed.control("start")
    given_back = {
        "write the program", "change owners", "change priority", "make a namespace", "open another family",
        "give to a group", "share a folder", "trace a child", "write to the machine's tmp",
    }  # fmt: skip
    assert given_back < set(FORBIDDEN)
    done(freed, "try_allowed")
    assert done(freed, "try_forbidden") == {"end", *(f"could-{name.replace(' ', '-')}" for name in given_back)}
