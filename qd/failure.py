"""What is kept of an error: text that any column, log or page can take. Pure but for reading source lines.

Whatever a job raised is hostile until shown otherwise: nothing here trusts its class, its methods or
its size. Nothing of an exception is asked through its own attributes where the interpreter has a slot
for it; what must be asked (`str`) may raise anything. The one thing that can't be bounded is the time
an object's own `__str__` takes. May import: nothing of qd.
"""

from __future__ import annotations

import builtins
import linecache
import os
import re
import stat
from collections import deque
from textwrap import indent
from types import TracebackType
from typing import Any

ERROR_LIMIT = 16 * 1024
"""Bytes of UTF-8 that an error's text has at most."""

TRACEBACK_LIMIT = 60 * 1024
"""Bytes of UTF-8 that a traceback has at most; both fit a TEXT column."""

MARK = " … [cut]"
"""Ends a text whose end was cut off; one whose beginning was cut off has it in front, turned round."""

_TAIL_MARK = "[cut] … "
_MESSAGE_LIMIT = 4 * 1024  # of each exception inside a traceback
_LINE_LIMIT = 400  # of a file's name, a source line or a note
_FIRST_FRAMES, _LAST_FRAMES = 10, 30
_LINKS = 10  # exceptions of one chain
_MEMBERS = (10, 3)  # of a group, and of a group within a group
_SOURCE_LIMIT = 4 << 20  # a file that is larger is no source to quote from

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)

_NAME = type.__dict__["__qualname__"]
_MODULE = type.__dict__["__module__"]
_TRACEBACK = BaseException.__dict__["__traceback__"]
_CAUSE = BaseException.__dict__["__cause__"]
_CONTEXT = BaseException.__dict__["__context__"]
_SUPPRESS = BaseException.__dict__["__suppress_context__"]
_GROUP: type[BaseException] | None = getattr(builtins, "BaseExceptionGroup", None)  # from Python 3.11 on


def clean(text: str) -> str:
    """The text as valid UTF-8 without NUL, surrogates, control, line-separator or bidi characters.

    They are shown as escapes (`\\x00`, `\\udcff`, `\\r`); tabs and newlines stay.
    """
    return _UNSAFE.sub(_escape, text)


def cut(text: str, limit: int) -> str:
    """The text made clean and, where it is longer, its beginning with MARK behind it.

    Args:
        limit: bytes of UTF-8 at most; no character is split.
    """
    if type(text) is str and len(text) <= limit and text.isascii() and text.isprintable():
        return text
    raw = clean(_slice(text, 0, limit + 1)).encode()  # a character has at least one byte
    if len(raw) <= limit:
        return raw.decode()
    return raw[: max(0, limit - len(MARK.encode()))].decode(errors="ignore") + _fitting(MARK, limit)


def cut_tail(text: str, limit: int) -> str:
    """As `cut`, but what is kept is the end."""
    size = str.__len__(text)
    raw = clean(_slice(text, max(0, size - limit - 1), size)).encode()
    if len(raw) <= limit:
        return raw.decode()
    room = max(0, limit - len(_TAIL_MARK.encode()))
    return _fitting(_TAIL_MARK, limit) + raw[len(raw) - room :].decode(errors="ignore")


def describe(error: BaseException, own: str | None = None) -> tuple[str, str]:
    """An exception's text (`ClassName: message`) and its traceback, whatever the exception does.

    Both are clean (see `clean`), cut to ERROR_LIMIT and TRACEBACK_LIMIT and marked where cut; there is
    always at least the class's name. Only a limited number of frames, of chained exceptions and of a
    group's members is shown. Takes a bounded time, save for what the exception's own `__str__` takes.

    Args:
        own: the file whose leading frames are left out of the traceback: the caller's.
    """
    name = class_name(error)
    try:
        headline = _headline(error)  # once: its own __str__ may take long
        return cut(headline, ERROR_LIMIT), _traceback(error, headline, own)
    except BaseException:  # no memory or no stack left, most likely: the name is what can be said
        return name, ""


def class_name(error: BaseException) -> str:
    """The real class's name, with its module unless that is builtins; never raises."""
    try:
        kind = type(error)
        name = cut(_NAME.__get__(kind), _LINE_LIMIT)
        module = _module(kind)
        return name if module in ("", "builtins", "__main__") else f"{module}.{name}"
    except BaseException:  # a class that can't even be named is still an error
        return "an exception that has no name"


def text_of(value: object, limit: int) -> str:
    """`str(value)`, cut; says so where it can't be had. Never raises."""
    try:
        return cut(str(value), limit)
    except BaseException as trouble:  # the value's own doing
        return f"[no text: {_NAME.__get__(type(trouble))} in __str__]"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code == 0x0D:
        return "\\r"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _slice(text: str, start: int, stop: int) -> str:
    """A part of the text as a plain str, also of a subclass with methods of its own."""
    return str.__getitem__(text, slice(start, stop))


def _fitting(mark: str, limit: int) -> str:
    return mark if len(mark.encode()) <= limit else ""


def _module(kind: type) -> str:
    try:
        module = _MODULE.__get__(kind)
    except AttributeError:
        return ""
    return cut(module, _LINE_LIMIT) if issubclass(type(module), str) else ""


def _headline(error: BaseException) -> str:
    message = text_of(error, ERROR_LIMIT + 1)
    return f"{class_name(error)}: {message}" if message else class_name(error)


def _traceback(error: BaseException, headline: str, own: str | None) -> str:
    """The newest exception whole; of those before it as much as there is room for."""
    links = _chain(error)
    newest = cut(_block(error, headline, 0, own), TRACEBACK_LIMIT)
    older = "[earlier exceptions are left out]\n\n" if len(links) == _LINKS else ""
    older += "".join(_block(link, _headline(link), 0, own) + joint for link, joint in reversed(links))
    room = TRACEBACK_LIMIT - len(newest.encode())
    return (cut_tail(older, room) if room > _LINE_LIMIT else "") + newest


def _chain(error: BaseException) -> list[tuple[BaseException, str]]:
    """The exceptions before this one, newest first, each with the sentence that leads on."""
    links: list[tuple[BaseException, str]] = []
    seen = {id(error)}
    while len(links) < _LINKS:
        before, how = _before(error)
        if before is None or id(before) in seen:
            break
        seen.add(id(before))
        links.append((before, f"\n{how}\n\n"))
        error = before
    return links


def _before(error: BaseException) -> tuple[BaseException | None, str]:
    cause = _CAUSE.__get__(error)
    if cause is not None or _SUPPRESS.__get__(error):
        return cause, "The above exception was the direct cause of the following exception:"
    return _CONTEXT.__get__(error), "During handling of the above exception, another exception occurred:"


def _block(error: BaseException, headline: str, depth: int, own: str | None = None) -> str:
    """One exception: its frames, its text, its notes and, of a group, the first members."""
    frames = _frames(_TRACEBACK.__get__(error), own)
    head = "Traceback (most recent call last):\n" + "".join(frames) if frames else ""
    text = cut(headline, _MESSAGE_LIMIT)
    return head + text + "\n" + _notes(error) + _members(error, depth)


def _frames(link: TracebackType | None, own: str | None) -> list[str]:
    while link is not None and link.tb_frame.f_code.co_filename == own:
        link = link.tb_next
    first: list[TracebackType] = []
    last: deque[TracebackType] = deque(maxlen=_LAST_FRAMES)
    count = 0
    while link is not None:
        count += 1
        if len(first) < _FIRST_FRAMES:
            first.append(link)
        else:
            last.append(link)
        link = link.tb_next
    left_out = count - len(first) - len(last)
    gap = [f"  [{left_out} frames left out]\n"] if left_out else []
    return [_frame(each) for each in first] + gap + [_frame(each) for each in last]


def _frame(link: TracebackType) -> str:
    code, line = link.tb_frame.f_code, link.tb_lineno
    where = f'  File "{cut(code.co_filename, _LINE_LIMIT)}", line {line}, in {cut(code.co_name, _LINE_LIMIT)}\n'
    source = _source(code.co_filename, line)
    return f"{where}    {source}\n" if source else where


def _source(path: str, line: int | None) -> str:
    """The source line; only regular files are read, for the name may be anything."""
    try:
        if line is None:
            return ""
        if path not in linecache.cache:
            found = os.stat(path)
            if not stat.S_ISREG(found.st_mode) or found.st_size > _SOURCE_LIMIT:
                return ""
        return cut(linecache.getline(path, line).strip(), _LINE_LIMIT)
    except Exception:  # a traceback without its source lines is still a traceback
        return ""


def _notes(error: BaseException) -> str:
    try:
        notes: Any = getattr(error, "__notes__", ())
        lines = [text_of(note, _LINE_LIMIT) for note in notes[:5]] if type(notes) is list else []
    except BaseException:  # the exception's own attribute: without it, then
        return ""
    return "".join(f"{line}\n" for line in lines)


def _members(error: BaseException, depth: int) -> str:
    if _GROUP is None or not issubclass(type(error), _GROUP):
        return ""
    members = _GROUP.__dict__["exceptions"].__get__(error)
    if depth >= len(_MEMBERS):
        return f"  [{len(members)} exceptions left out]\n"
    first = [_block(member, _headline(member), depth + 1) for member in members[: _MEMBERS[depth]]]
    shown = [indent(f"[{number}]\n{block}", "  | ") for number, block in enumerate(first, 1)]
    left_out = len(members) - len(shown)
    return "".join(shown) + (f"  [{left_out} more exceptions left out]\n" if left_out else "")
