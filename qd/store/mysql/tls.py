"""TLS on the way to the server: what the driver is told, and what its failures mean.

May import: errors, config, the standard library.
"""

from __future__ import annotations

import ssl
from typing import Any

from qd.config.model import DatabaseConfig
from qd.errors import SetupWrong

FAILED = 2026
"""The driver's number for whatever goes wrong with TLS: a server that goes away meanwhile, too."""

FOR_GOOD = (
    "certificate", "verify_paths failed", "hostname mismatch", "ip address mismatch", "unsupported protocol",
    "wrong version number", "handshake failure", "no protocols available", "no shared cipher",
)  # fmt: skip
"""What OpenSSL says, in lower case, where asking again can't help. It has no numbers that the driver passes on."""


def arguments(config: DatabaseConfig) -> dict[str, Any]:
    """What the driver needs to know.

    Raises:
        SetupWrong: the authority's certificate can't be read.
    """
    mode = config.tls.mode
    if mode == "disabled":
        return {"ssl_disabled": True}
    if mode in ("preferred", "required"):
        return {"ssl_disabled": False}
    if config.tls.ca is not None:
        _read(config.tls.ca)
    ca = config.tls.ca or ssl.get_default_verify_paths().cafile or ""
    return {"ssl_ca": ca, "ssl_verify_cert": True, "ssl_verify_identity": mode == "verify_identity"}


def _read(ca: str) -> None:
    """The driver says of a file that isn't there, or holds no certificate, what nobody understands."""
    try:
        ssl.create_default_context(cafile=ca)
    except OSError as error:  # SSLError is one
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        raise SetupWrong(f"database.tls.ca: {ca} is no certificate that can be read: {reason}", FAILED) from None


def refused(config: DatabaseConfig, where: str, error: BaseException) -> SetupWrong | None:
    """The error for a person to act on, where TLS failed for good; None: it was something else."""
    text = " ".join(str(getattr(error, "msg", None) or error).split())
    if config.tls.mode == "disabled" or not any(words in text.lower() for words in FOR_GOOD):
        return None
    if getattr(error, "errno", None) != FAILED and "ssl" not in text.lower():
        return None
    return SetupWrong(f"{where}: {text[:200]} (database.tls.mode is {config.tls.mode})", FAILED)


def require(config: DatabaseConfig, cursor: Any, address: str) -> None:
    """Looks whether TLS is spoken where the configuration asks for it.

    Raises:
        SetupWrong: it isn't.
    """
    if config.tls.mode in ("disabled", "preferred") or config.unix_socket:
        return
    cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
    row = cursor.fetchone()
    if not row or not row[1]:
        raise SetupWrong(
            f"database.tls.mode is {config.tls.mode}, but {address} speaks no TLS; "
            "set up TLS on the server, or use mode: preferred"
        )
