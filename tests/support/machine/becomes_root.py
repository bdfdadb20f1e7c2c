"""Makes the folder that it stands in the root of this mount namespace, and becomes the machine's process 1.

Also from within a chroot, which pivot_root alone would not leave: the kernel gives no user namespace to who is
in one. Run by inside.sh. May import: the standard library only, and nothing once the old root is gone.
"""

from __future__ import annotations

import ctypes
import os

DETACH = 2
SHARED = 1 << 14 | 1 << 20  # MS_REC | MS_SHARED
ENV = {"container": "qd", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM": "dumb"}
SYSTEMD = "/lib/systemd/systemd"
OPTIONS = ("--system", "--unit=machine.target", "--show-status=no", "--log-target=console")


def call(name: str, *arguments: object) -> None:
    """Calls a function of libc that returns 0."""
    if getattr(LIBC, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    LIBC = ctypes.CDLL(None, use_errno=True)
    tree, namespace = os.open(".", os.O_RDONLY), os.open("/proc/self/ns/mnt", os.O_RDONLY)
    call("setns", namespace, 0)  # to where we are: our root is the namespace's then
    os.fchdir(tree)
    os.mkdir(".old")
    call("pivot_root", b".", b".old")
    call("umount2", b"/.old", DETACH)
    os.rmdir("/.old")
    # as systemd does where it isn't told that it is in a container; credentials need it
    call("mount", None, b"/", None, SHARED, None)
    os.chdir("/")
    os.execve(SYSTEMD, [SYSTEMD, *OPTIONS], ENV)
