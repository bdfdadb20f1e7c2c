"""Whether a service can run the Python that runs this: prints its program, or why not and ends with 1.

Run by `make install`: an environment is links to the Python that made it, and root may run what nobody else can.
usage: interpreter.py
May import: the standard library only. Owns: nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")
"""What the units keep from the service: ProtectHome=, PrivateTmp=. places.sh reads this line, too."""


def needed() -> Iterator[str]:
    """What has to be within reach: the program, and the library that it begins with."""
    yield getattr(sys, "_base_executable", "") or sys.executable  # an environment's links lead to this one
    yield sys.base_prefix
    yield os.path.realpath(os.__file__)


def steps(path: str) -> Iterator[str]:
    """Each folder on the way to a file, through all links, and the file itself."""
    done, ahead = "/", path.split("/")[::-1]
    while ahead:
        here = os.path.normpath(os.path.join(done, ahead.pop()))
        if os.path.islink(here):
            target = os.readlink(here)
            ahead += target.split("/")[::-1]
            done = "/" if target.startswith("/") else done
        else:
            done = here
            yield here


def objections() -> Iterator[str]:
    """Why the service can't run it."""
    for path in needed():
        for step in steps(path):
            mode = os.stat(step).st_mode
            if step in HIDDEN:
                yield f"a service doesn't see {step}"
            elif not mode & (0o004 if step.endswith(".py") else 0o001):
                yield f"{step} is closed to other users (mode {mode & 0o777:03o})"


def main() -> int:
    """Says one or the other; its exit status."""
    program = os.path.realpath(next(needed()))
    objection = next(objections(), "")
    print(f"{program}: {objection}" if objection else program)
    return 1 if objection else 0


if __name__ == "__main__":
    sys.exit(main())
