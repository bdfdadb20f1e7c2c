"""A job's payload between Python values and JSON text. Pure; may import: errors.

What is let in is what every supported server and every reader takes: RFC 8259 without NaN and
Infinity, at most 31 levels deep (MariaDB's JSON_VALID), no half surrogate pairs, no number that
MySQL can't hold. `decode` is the other way round and must survive any bytes at all.
"""

from __future__ import annotations

import math
import re
from json import (  # as they are now: a handler's module may put others in their place
    JSONDecoder,
    JSONEncoder,
    dumps,
    loads,
)
from typing import Any, NoReturn

from qd.errors import BadInput

MAX_DEPTH = 31
"""Levels of lists and objects inside each other; MariaDB's JSON_VALID refuses the 32nd."""

MAX_DIGITS = 308
"""Digits of an integer that is let in; MySQL's JSON_VALID refuses what a double can't hold."""

_encoded = JSONEncoder(allow_nan=False).encode  # what `dumps(allow_nan=False)` makes anew for each value
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TOO_MANY_DIGITS = re.compile(rf"(?<![0-9])[0-9]{{{MAX_DIGITS + 1}}}")
_STRUCTURE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|([\[{])|([\]}])', re.DOTALL)


class RawJson(str):
    """JSON text that is to be stored byte for byte, where a plain str would be stored as a JSON string."""


def encode(value: Any) -> str:
    """The JSON text of a value: ASCII only, so that no connection's character set can harm it.

    Args:
        value: what `json.dumps` takes (tuples become lists, keys become strings), or RawJson,
            which is checked and returned as it is.

    Raises:
        BadInput: NaN or Infinity, not serialisable, over 31 levels deep, half a surrogate pair,
            an integer of over 308 digits.
    """
    if isinstance(value, RawJson):
        return checked(value)
    try:
        text = _encoded(value)
    except RecursionError:
        raise BadInput(_DEEP) from None
    except (TypeError, ValueError) as refused:
        raise BadInput(f"payload: not JSON: {_line(refused)}") from None
    _check_depth(text)
    _check_digits(text)
    if "\\u" in text and _ESCAPED_SURROGATE.search(text):
        _check_surrogates(value)
    return text


def checked(text: str) -> str:
    """Returns JSON text byte for byte, once it is sure that it is good.

    Raises:
        BadInput: it isn't JSON, or is what `encode` refuses.
    """
    _check_depth(text)
    decode(text)
    _check_digits(text)
    return str.__str__(text)


def decode(raw: str | bytes) -> Any:
    """The value of a row's payload, however the row came to be.

    Raises:
        BadInput: it can't be decoded, whatever the reason; never anything else.
    """
    try:
        text = raw if isinstance(raw, str) else bytes(raw).decode()
        value = _strictly(text)
        text.encode()
        if _ESCAPED_SURROGATE.search(text):  # also in the value of a key that stands again behind it
            _check_surrogates(loads(text, object_pairs_hook=list))
    except BadInput:
        raise
    except UnicodeError:
        raise BadInput("payload: not UTF-8") from None
    except (RecursionError, MemoryError):
        raise BadInput("payload: nested too deep, or too large, to be decoded") from None
    except (TypeError, ValueError) as refused:
        raise BadInput(f"payload: not JSON: {_line(refused)}") from None
    return value


_DEEP = f"payload: nested over {MAX_DEPTH} levels deep; every supported server takes {MAX_DEPTH}"


def _check_depth(text: str) -> None:
    if len(text) <= 2 * MAX_DEPTH or text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for found in _STRUCTURE.finditer(text):
        depth += (found[1] is not None) - (found[2] is not None)
        if depth > MAX_DEPTH:
            raise BadInput(_DEEP)


def _check_digits(text: str) -> None:
    if len(text) > MAX_DIGITS and _TOO_MANY_DIGITS.search(text):
        loads(text, parse_int=_short, parse_float=_finite)


def _check_surrogates(value: Any) -> None:
    try:
        dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadInput("payload: half a surrogate pair (\\ud800 to \\udfff), which is no character") from None


def _short(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise BadInput(f"payload: an integer of over {MAX_DIGITS} digits")
    return int(digits)


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError("a number too large for double precision")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


_strictly = JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite).decode
"""Made once: making a decoder takes longer than most payloads take to be decoded."""


def _line(error: Exception) -> str:
    return " ".join(str(error).split(";")[0].split())  # after a `;` Python advises its own programmer
