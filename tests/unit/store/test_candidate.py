"""What a claim makes of a row that strangers have written, in a table that they may have altered."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from qd.errors import BadInput
from qd.payload import decode
from qd.store.claim.candidate import _candidate

NOW = datetime(2026, 1, 1)


@pytest.mark.parametrize(
    "payload", [None, 10**12, 0.5, True, "", b"", b"\xff\xfe\x00", bytearray(b"{"), memoryview(b"{")]
)
def test_a_payload_of_any_kind_is_the_jobs_affair_and_never_stops_the_queue(payload: Any) -> None:
    row = _candidate((7, "send_email", payload, 2, 0, None, 0, NOW, NOW, NOW))
    try:
        decode(row.payload)
    except BadInput as refused:
        assert str(refused).startswith("payload: ")
