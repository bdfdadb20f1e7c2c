"""The command line: verbs over the store's protocol, no SQL and no threads of their own (but `watch`'s).

One file per group of verbs, each loaded only when it is called; `ending` maps errors to exit
codes, `terminal` is all that writes. May import: everything below.
"""

from __future__ import annotations

from collections.abc import Sequence

INTERRUPTED = 130
"""The exit code after Ctrl-C, 128 + SIGINT as shells have it."""


def main() -> None:
    """The entry point of the command `qd`; ends the process."""
    import sys

    stand_in()
    if verb(sys.argv[1:]) == "run":  # before anything heavy is loaded: a SIGHUP in that time would kill
        from qd.daemon.signals import install

        install()
    try:
        from qd.cli.root import cli
    except KeyboardInterrupt:  # nothing was begun: no traceback for who has changed their mind
        sys.exit(INTERRUPTED)

    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # what a locale can't write is shown as an escape, not as a crash
            reconfigure(errors="backslashreplace")
    cli.main(prog_name="qd")


def stand_in() -> None:
    """Opens /dev/null for each standard stream that the caller has closed (`>&-`).

    Else the next thing that is opened gets its number: a connection to the database would be the
    stdout of every program that is started.
    """
    import os
    import sys

    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def verb(arguments: Sequence[str]) -> str | None:
    """The verb of a command line, found without click; None where there is none."""
    words = iter(arguments)
    for word in words:
        if word == "--config":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None
