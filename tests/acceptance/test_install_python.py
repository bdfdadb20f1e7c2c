"""Which Python `make install` takes as root: one that the service can run, and another when another is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.systemd import CHECKOUT, Machine, booted

SYSTEMS = "/usr/bin/python3"
CALLED = "setpriv --reuid=nobody --regid=nogroup --clear-groups"
"""Runs the rest as somebody who owns nothing."""


@pytest.fixture(scope="module")
def bare() -> Iterator[Machine]:
    """A machine that has never heard of qd."""
    yield from booted()


@pytest.fixture
def other(bare: Machine) -> Iterator[str]:
    """A folder for another Python, which finds the system's libraries wherever it lies."""
    yield "/srv/python"
    bare.sh("rm -rf /srv/python /root/python /home/somebody")


def copied(machine: Machine, program: str) -> str:
    machine.sh(f'mkdir -p "$(dirname {program})"; cp "$(readlink -f {SYSTEMS})" {program}')
    return program


def refused(machine: Machine, python: str) -> str:
    """The one line in which root's `make install` was refused, with nothing written."""
    done = machine.run("make", "-C", CHECKOUT, "install", f"PYTHON={python}", check=False)
    said = [line for line in done.stderr.splitlines() if line.startswith("qd: ")]
    assert done.returncode != 0 and len(said) == 1, done.stdout + done.stderr
    assert machine.sh("ls -d /opt/qd /etc/qd /usr/local/lib/systemd/system/qd* 2>/dev/null || true") == ""
    assert said[0].endswith("take another, like make install PYTHON=/usr/bin/python3")
    return said[0]


def test_a_python_in_a_folder_that_is_closed_to_others_is_refused(bare: Machine, other: str) -> None:
    python = copied(bare, f"{other}/bin/python3")
    bare.sh(f"chmod 700 {other}")
    assert f"couldn't run {python}: {other} is closed to other users (mode 700)" in refused(bare, python)


def test_so_is_one_that_a_link_or_an_environment_leads_to(bare: Machine, other: str) -> None:
    python = copied(bare, f"{other}/bin/python3")
    bare.sh(f"ln -s {python} /usr/local/bin/python-linked; {python} -m venv --without-pip /srv/environment")
    bare.sh(f"chmod 700 {other}/bin")
    for leads_there in ("/usr/local/bin/python-linked", "/srv/environment/bin/python"):
        assert f"{other}/bin is closed to other users" in refused(bare, leads_there)


def test_so_is_one_that_others_may_not_run(bare: Machine, other: str) -> None:
    python = copied(bare, f"{other}/bin/python3")
    bare.sh(f"chmod 754 {python}")
    assert f"{python} is closed to other users (mode 754)" in refused(bare, python)


@pytest.mark.parametrize("home", ["/root/python", "/home/somebody"])
def test_so_is_one_in_a_home_which_the_units_hide(bare: Machine, other: str, home: str) -> None:
    python = copied(bare, f"{home}/bin/python3")
    bare.sh(f"chmod 755 /root {home}")
    assert "a service doesn't see /" in refused(bare, python)


def test_another_python_replaces_that_of_an_earlier_run(bare: Machine, other: str) -> None:
    """Also where the earlier one was let in by an older version, and where it is gone; packages of yours stay."""
    first = copied(bare, f"{other}/bin/python3")
    install = f"make -C {CHECKOUT} install PIP_NO_DEPS=1 PYTHON="
    for _ in range(2):
        assert "qd: next: the password into /etc/credstore/qd.db-password" in bare.sh(f"{install}{first}"), "none is on"
    bare.sh("systemctl enable qd")
    bare.sh("echo >$(echo /opt/qd/lib/python*/site-packages)/shop.py")
    for harm, had in ((f"chmod 700 {other}", first), (f"rm -r {other}", "a Python that is gone")):
        bare.sh(harm)
        assert bare.run("sh", "-c", f"{CALLED} /opt/qd/bin/qd --help", check=False).returncode != 0
        said = bare.sh(f"{install}{SYSTEMS}")
        assert f"qd: /opt/qd had {had}, now /usr/bin/python3" in said, said
        assert "qd: no daemon is to be restarted: none runs" in said and "credstore" not in said
        assert bare.sh("readlink -f /opt/qd/bin/python /opt/qd/bin/python3") == 2 * bare.sh(f"readlink -f {SYSTEMS}")
        bare.sh(f"{CALLED} /opt/qd/bin/python -c 'import qd, shop'")
        assert "qd: /opt/qd had" not in bare.sh(f"{install}{SYSTEMS}")
        bare.sh(f"mkdir -p {other}/bin; cp {SYSTEMS} {first}; ln -sf {first} /opt/qd/bin/python; chmod 755 {other}")
