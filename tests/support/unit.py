"""A `qd@NAME` of the shipped units on a machine, with a configuration and a database of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.daemon import Qd, get
from tests.support.server import PASSWORD, Server
from tests.support.systemd import CHECKOUT, Line, Machine
from tests.support.waiting import wait_for

STATE = "/var/lib/qd"
CREDENTIAL = "/etc/credstore/qd.db-password"


def machine_with_qd(machine: Machine) -> Machine:
    """Puts everything in place that `make install` does; the program is this checkout's."""
    machine.install_program()
    machine.sh(f"make -C {CHECKOUT} install PROGRAM=no")
    machine.write(CREDENTIAL, PASSWORD, mode=0o600)
    return machine


class Unit(Qd):
    """One of the daemons.

    Args:
        name: `qd@NAME.service` runs /etc/qd/NAME.yaml.

    Attributes:
        name: the unit's, whole.
    """

    def __init__(self, machine: Machine, name: str, folder: Path, server: Server, database: str) -> None:
        self.machine, self.name = machine, f"qd@{name}.service"
        self.configuration = f"/etc/qd/{name}.yaml"
        self.noted = f"{STATE}/ledger-{name}"
        super().__init__(folder, server, database)
        self.write(log={"format": "auto"})
        self.drop_in("test", Environment=f"LEDGER={self.noted}", RestartSec="200ms")

    def write(self, **sections: Any) -> None:
        """See Qd; the password is systemd's to give."""
        self.config["database"].pop("password", None)
        super().write(**sections)
        self.machine.write(self.configuration, self.file.read_text())

    def drop_in(self, file: str, **settings: str) -> None:
        """Changes the unit as a user would; counts from its next start on."""
        lines = "".join(f"{name}={value}\n" for name, value in settings.items())
        self.machine.write(f"/etc/systemd/system/{self.name}.d/{file}.conf", f"[Service]\n{lines}")
        self.machine.run("systemctl", "daemon-reload")

    def control(self, verb: str, *options: str, check: bool = True) -> str:
        """`systemctl VERB` of this unit; what it said."""
        done = self.machine.run("systemctl", verb, *options, self.name, check=False)
        assert done.returncode == 0 or not check, f"{done.stdout}{done.stderr}{self.said()}"
        return done.stdout + done.stderr

    def kill(self, signal: str) -> None:
        """Sends a signal to the daemon alone."""
        self.control("kill", f"--signal={signal}", "--kill-whom=main")

    def value(self, name: str) -> str:
        """A property of the unit."""
        return self.machine.value(self.name, name)

    def pid(self) -> int:
        """Of the daemon, as the machine counts; 0 while there is none."""
        return int(self.value("MainPID"))

    def journal(self, *matches: str) -> list[Line]:
        """What was written by it and about it."""
        return self.machine.journal(self.name, *matches)

    def lines(self, event: str) -> list[Line]:
        """The lines of an event."""
        return [line for line in self.journal() if f"event={event} " in f"{line.text} "]

    def ran(self, what: str, job: int | None = None) -> list[int]:
        """See Qd."""
        noted = [line.split() for line in self.machine.read(self.noted).splitlines()]
        return [int(id) for id, what_was in noted if what_was == what and job in (None, int(id))]

    def wait_state(self, state: str, within: float = 20.0) -> None:
        """Waits for an ActiveState."""
        wait_for(lambda: self.value("ActiveState") == state, within, f"{self.name} to be {state}; {self.said()}")

    def wait_restarted(self, times: int, within: float) -> None:
        """Waits until it works again, and has been started again so often."""
        wait_for(
            lambda: self.machine.show(self.name, "NRestarts", "ActiveState")
            == {"NRestarts": str(times), "ActiveState": "active"},
            within, f"start {times} over again; {self.said()}",
        )  # fmt: skip

    def said(self) -> str:
        """The end of its journal."""
        return "\n".join(line.text for line in self.journal()[-40:])

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page; (0, error) where there is no answer."""
        return get(self.port, path)

    def end(self) -> None:
        """Ends it without ado."""
        self.machine.run("systemctl", "kill", "--signal=KILL", self.name, check=False)
        self.machine.run("systemctl", "stop", self.name, check=False)
        super().end()
