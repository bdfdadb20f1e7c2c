"""Whether root alone can change a file: what root goes by must not be another's to write.

May import: nothing of qd. Reads the folders on the way to a file, no file's content.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator

MOST_LINKS = 40
"""On one way, as for the kernel."""

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def changeable_by_others(path: str) -> str | None:
    """Which place on the way to a file or folder another than root can change, and how; None: none of them.

    What isn't there counts for nothing: the folder in which it would be does.
    """
    shared = ""
    for step, found in _steps(os.path.abspath(path)):
        folder = stat.S_ISDIR(found.st_mode)
        if shared and not folder:  # another may have chosen what stands under this name, by a link
            return shared
        why = writable_by_others(found)
        if why is not None and (found.st_uid != 0 or not (folder and found.st_mode & stat.S_ISVTX)):
            return f"{step} {why}"
        shared = f"{step} {why}" if why else ""
    return shared or None


def file_changeable_by_others(path: str) -> str | None:
    """Which of a file, the links that lead to it, and the folders that these lie in another than root can change.

    Who owns a folder further up may exchange what is below it for another of root's, but not write one.
    """
    for step, found in _steps(os.path.abspath(path)):
        if not stat.S_ISDIR(found.st_mode):
            folder = os.path.dirname(step)
            for place, what in ((folder, os.lstat(folder)), (step, found)):
                why = writable_by_others(what)
                if why is not None:
                    return f"{place} {why}"
    return None


def writable_by_others(found: os.stat_result) -> str | None:
    """Why another than root can write what was found; None: it can't."""
    if found.st_uid != 0:
        return f"belongs to {_name(found.st_uid)}"
    if not stat.S_ISLNK(found.st_mode) and found.st_mode & OTHERS_WRITE:
        return f"can be written by others (mode {stat.S_IMODE(found.st_mode):03o})"
    return None


def _steps(path: str) -> Iterator[tuple[str, os.stat_result]]:
    """Each folder on the way, each link and what it leads to, as far as they are there."""
    done, ahead, links = "/", path.split("/")[::-1], 0
    while ahead and links <= MOST_LINKS:
        here = os.path.normpath(os.path.join(done, ahead.pop()))
        try:
            found = os.lstat(here)
        except OSError:
            return
        links += stat.S_ISLNK(found.st_mode)
        yield here, found
        if not stat.S_ISLNK(found.st_mode):
            done = here
            continue
        target = os.readlink(here)
        ahead += target.split("/")[::-1]
        done = "/" if target.startswith("/") else done


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
