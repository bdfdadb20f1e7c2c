"""The users file of the web console: who may log in, with which role, and their password's hash.

The file is YAML that is JSON as well, one user a line, so that a person can read it and a tool can
take a line out:

    {
    "ann": {"role": "operator", "password": "scrypt$15$8$3$SALT$HASH"},
    "bob": {"role": "viewer", "password": "scrypt$15$8$3$SALT$HASH"}
    }

A hash is scrypt (RFC 7914) as `hashlib.scrypt` makes it: `scrypt$LOG2_N$R$P$SALT$HASH`, salt and
hash in base64. The parameters are N = 2**15, r = 8, p = 3, one of the equivalent settings that
OWASP's Password Storage Cheat Sheet gives as its minimum for scrypt (32 MiB and some 0.2 s a try);
they stand in each hash, so that raising them later leaves old ones valid. The salt has 16 random
bytes. May import: the pure modules.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import tempfile
from pathlib import Path

from qd.errors import BadInput, ConfigError, Refused

LOG2_N, R, P = 15, 8, 3
SALT_BYTES, HASH_BYTES = 16, 32
MOST_MEMORY = 256 * 1024 * 1024
"""Bytes that a hash may cost: OpenSSL's own limit (32 MiB) is just below what LOG2_N needs."""

LONGEST_PASSWORD = 1024
ROLES = ("viewer", "operator")
_NAME = re.compile(r"[A-Za-z0-9_.@-]{1,64}")

Users = dict[str, dict[str, str]]


def hashed(password: str) -> str:
    """A new hash of a password, with a salt of its own."""
    salt = secrets.token_bytes(SALT_BYTES)
    made = _scrypt(password, salt, LOG2_N, R, P)
    return f"scrypt${LOG2_N}${R}${P}${_text(salt)}${_text(made)}"


def verified(password: str, stored: str) -> bool:
    """Whether a password is the one of a hash; compared in constant time. A malformed hash fits none."""
    try:
        kind, log2_n, r, p, salt, made = stored.split("$")
        if kind != "scrypt" or len(password) > LONGEST_PASSWORD:
            return False
        wanted = base64.b64decode(made, validate=True)
        found = _scrypt(password, base64.b64decode(salt, validate=True), int(log2_n), int(r), int(p))
    except (TypeError, ValueError, OverflowError):  # OpenSSL refuses odd parameters with any of these
        return False
    return hmac.compare_digest(wanted, found)


def read_users(path: Path) -> Users:
    """The users of a file; none where there is no file.

    Raises:
        ConfigError: it can't be read, or isn't a users file.
    """
    try:
        text = path.read_text(encoding="utf-8")
        users = json.loads(text) if text.strip() else {}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError([f"{path}: not a users file: {error}"]) from error
    if not isinstance(users, dict):
        raise ConfigError([f"{path}: not a users file: a map of names is wanted"])
    for name, user in users.items():
        if not isinstance(user, dict) or not isinstance(user.get("password"), str) or user.get("role") not in ROLES:
            raise ConfigError([f"{path}: {name}: a role ({', '.join(ROLES)}) and a password's hash are wanted"])
    return users


def set_user(path: Path, name: str, role: str | None, password: str) -> bool:
    """Adds a user or changes their password; the others stay as they are.

    Args:
        role: None keeps an existing user's, and makes a new one a viewer.

    Returns:
        True where the user is new.

    Raises:
        BadInput: a name or password that is not allowed.
        ConfigError: the file isn't a users file.
        Refused: it can't be written.
    """
    if not _NAME.fullmatch(name):
        raise BadInput(f"user {name!r}: a name has 1 to 64 of the characters A-Z a-z 0-9 _ . @ -")
    if not 8 <= len(password) <= LONGEST_PASSWORD:
        raise BadInput(f"password: 8 to {LONGEST_PASSWORD:,} characters are wanted")
    users = read_users(path)
    is_new = name not in users
    kept = ROLES[0] if is_new else users[name]["role"]
    users[name] = {"role": role or kept, "password": hashed(password)}
    try:
        _write(path, users)
    except OSError as error:
        raise Refused(f"{path}: can't be written: {error.strerror}") from error
    return is_new


def _write(path: Path, users: Users) -> None:
    """Writes the file whole or not at all, readable by its owner only."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(user)}" for name, user in users.items())
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:  # mkstemp has made it with mode 0600
            file.write(f"{{\n{lines}\n}}\n")
            file.flush()
            os.fsync(file.fileno())
        _keep_owner(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _keep_owner(path: Path, temporary: str) -> None:
    """Leaves the file with the owner that it had: root changes a password, the daemon reads it."""
    with contextlib.suppress(OSError):  # not there yet, or not ours to give away
        before = path.stat()
        os.chown(temporary, before.st_uid, before.st_gid)


def _scrypt(password: str, salt: bytes, log2_n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=1 << log2_n, r=r, p=p, maxmem=MOST_MEMORY, dklen=HASH_BYTES)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
