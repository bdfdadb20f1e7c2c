"""What a proxy reads of a client's packets, and the errors that it gives in a MySQL server's name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """What a rule of the proxy may say.

    Attributes:
        errno: of the error.
        reached: the server had the statement and carried it out, its own answer is kept back; else it never saw it.
        ends: the connection ends with it, as with errors by which a server takes its leave.
    """

    errno: int
    reached: bool = False
    ends: bool = False

    def packet(self, asked: bytes) -> bytes:
        """What the client gets for this packet of its own; for none, in place of the greeting.

        Before the greeting it hasn't said yet that it knows of states, so none is told.
        """
        text = b"said in the server's name"
        body = b"\xff" + self.errno.to_bytes(2, "little") + (b"#HY000" if asked else b"") + text
        return len(body).to_bytes(3, "little") + bytes([asked[3] + 1 if asked else 0]) + body


def whole(packet: bytes) -> bool:
    """Whether all of a client's packet has come."""
    return len(packet) >= 4 + int.from_bytes(packet[:3], "little")


QUERY = b"\x03"
ATTRIBUTES = b"\x00\x01"
"""Before a statement to MySQL: it has no attributes. A MariaDB is sent none."""


def statement_of(packet: bytes) -> bytes:
    """The SQL of a client's packet; empty where it is another command."""
    return packet[5:].removeprefix(ATTRIBUTES) if packet[4:5] == QUERY else b""
