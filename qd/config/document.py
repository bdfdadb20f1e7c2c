"""YAML text as a tree in which every value keeps its source text and its line.

YAML's own guesses (`no`, `0123`, `22:00`) are not made here: a scalar is its text. Nothing is ever
constructed, no alias is followed, nesting is bounded. No message quotes the text: a line that
doesn't parse may hold a password. May import: nothing of qd.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import yaml

MAX_DEPTH = 20
"""Levels of nesting; the configuration itself needs 5."""

Kind = Literal["text", "list", "map", "alias"]


@dataclass(slots=True)
class Node:
    """A value.

    Attributes:
        line: where it begins, from 1.
        text: the source text of a scalar.
        plain: a scalar without quotes.
        folded: a scalar without quotes that runs over several lines.
        marked: it carries an `&anchor`.
        tagged: it carries a `!tag`.
        items: of a list; of a map keys and values by turns.
    """

    kind: Kind
    line: int
    text: str = ""
    plain: bool = False
    folded: bool = False
    marked: bool = False
    tagged: bool = False
    items: list[Node] = field(default_factory=list)

    @property
    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """The keys and values of a map."""
        return zip(self.items[::2], self.items[1::2], strict=True)

    @property
    def empty(self) -> bool:
        """Whether nothing was written: `key:` and the end of the line."""
        return self.kind == "text" and self.plain and not self.text


class Unreadable(Exception):
    """The text is not one YAML document."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


def compose(text: str) -> Node | None:
    """The tree of a YAML document, or None of an empty one.

    Raises:
        Unreadable: a syntax error, nesting too deep, or more than one document.
    """
    try:
        loader = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise Unreadable(line, f"holds the character U+{ord(text[error.position]):04X}, which YAML forbids") from None
    try:
        return _build(loader)
    except yaml.MarkedYAMLError as error:
        raise _unreadable(error, text) from None
    except (ValueError, OverflowError):  # PyYAML's own slips: "\UFFFFFFFF", a version of 5,000 digits
        raise Unreadable(loader.get_mark().line + 1, "is not YAML: an escape or a number is out of range") from None
    finally:
        loader.dispose()


def _build(loader: yaml.SafeLoader) -> Node | None:
    """Reads the events with a stack of its own: no input can exhaust the interpreter's."""
    open_nodes: list[Node] = []
    root: Node | None = None
    while loader.check_event():
        event: yaml.Event = loader.get_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.DocumentStartEvent) and root is not None:
            raise Unreadable(_line(event), "a second document begins here (---); write one only")
        if isinstance(event, yaml.CollectionEndEvent):
            open_nodes.pop()
        if not isinstance(event, yaml.NodeEvent):
            continue
        node = _node(event)
        if open_nodes:
            open_nodes[-1].items.append(node)
        else:
            root = node
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append(node)
        if len(open_nodes) > MAX_DEPTH:
            raise Unreadable(node.line, f"is nested more than {MAX_DEPTH} levels deep")
    return None if root is None or root.empty else root


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 1


def _node(event: yaml.NodeEvent) -> Node:
    line = _line(event)
    if isinstance(event, yaml.AliasEvent):
        return Node("alias", line)
    marked, tagged = event.anchor is not None, getattr(event, "tag", None) is not None
    if isinstance(event, yaml.ScalarEvent):
        plain = not event.style
        folded = plain and event.end_mark is not None and event.end_mark.line + 1 > line
        return Node("text", line, event.value, plain, folded, marked, tagged)
    kind: Kind = "map" if isinstance(event, yaml.MappingStartEvent) else "list"
    return Node(kind, line, marked=marked, tagged=tagged)


_WORDS = (
    ("found character '\\t'", "a tab stands where only blanks may; indent with blanks"),
    ("mapping values are not allowed", "a colon follows where no key can stand; indent as above, or quote the value"),
    ("could not find expected ':'", "a key has no colon with a blank behind it (key: value)"),
    ("found unexpected end of stream", "a quote is opened here and never closed"),
    ("expected <block end>", "this line doesn't fit the lines above; check its indentation and quotes"),
    ("expected the node content", "a value is missing or a sign stands alone; quote the value"),
    ("expected ',' or", "a list [...] or map {...} isn't closed, or a comma is missing"),
    ("cannot start any token", "a value begins with a sign that YAML reserves; quote it"),
    ("found unknown escape", 'an unknown escape after a backslash; use single quotes, or write "\\\\"'),
    ("sequence entries are not allowed", "a list item (- ...) stands where none can; check its indentation"),
    ("undefined tag handle", "a value begins with !, which YAML reads as a tag; quote it"),
)
"""PyYAML's words, by their beginning or a part, and ours: what to do, and never the text itself."""


def _unreadable(error: yaml.MarkedYAMLError, text: str) -> Unreadable:
    problem = error.problem or ""
    mark = error.problem_mark or error.context_mark
    if "unexpected end of stream" in problem and error.context_mark is not None:
        mark = error.context_mark
    line = mark.line if mark is not None else 0
    words = next(
        (ours for theirs, ours in _WORDS if theirs in problem), "this is not YAML; check quotes and indentation"
    )
    lines = text.split("\n")
    if line < len(lines) and "${" in lines[line]:
        words += '; within {...} or [...] write "${NAME}" in quotes'
    return Unreadable(line + 1, words)
