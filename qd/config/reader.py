"""The tree of a file as the model's values: every value judged by its source text, every problem noted.

What has a problem is left out, so that its default stands in and the rest can still be judged.
May import: the pure modules, and what lies below it in this package.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic import BaseModel

from qd.config import scalars
from qd.config.document import Node
from qd.config.limits import Limit, Wrong
from qd.config.problems import Path, Problems, visible
from qd.config.scalars import Scalar
from qd.config.shapes import Group, Leaf, Many, Shape, Table, fields

_NOUNS = {"text": "text", "list": "a list", "map": "a map", "alias": "an alias"}
_OMIT = object()
"""Instead of a value that has a problem."""

_AT_MOST = 20
"""Names that a message lists."""

_COMPARED = 100
"""Names that a word is compared with: difflib takes 0.2 ms for each."""


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known word that was probably meant."""
    by_fold = {name.lower(): name for name in islice(known, _COMPARED)}
    found = difflib.get_close_matches(word.lower()[:80], by_fold, n=1, cutoff=0.6)
    return by_fold[found[0]] if found else None


def hint(word: str, known: Collection[str], intro: str = "allowed here:") -> str:
    """`did you mean lease?`, or all that is known."""
    near = nearest(word, known)
    if near is not None:
        return f"did you mean {visible(near)}?"
    more = ", ..." if len(known) > _AT_MOST else ""
    return f"{intro} {', '.join(map(visible, islice(known, _AT_MOST)))}{more}"


class Reader:
    """Reads one file.

    Attributes:
        lines: the line of every value in the file.
        values: every value that could be read, by its path.
        variables: the paths whose value came from a variable.
        names: every key of a table and every item of a list as written, sound or not.
    """

    def __init__(self, problems: Problems, environ: Mapping[str, str]) -> None:
        self.problems = problems
        self.environ = environ
        self.lines: dict[Path, int] = {}
        self.values: dict[Path, object] = {}
        self.variables: set[Path] = set()
        self.names: dict[Path, list[str]] = {}

    def section(self, node: Node, model: type[BaseModel], path: Path) -> Any:
        """The values of a section's keys, without those that have a problem."""
        shapes, data = fields(model), {}
        for key, value in self._pairs(node, path, shapes):
            here = (*path, key.text)
            if key.text in shapes:
                data[key.text] = self._value(value, shapes[key.text], here, _line(key, value))
            else:
                self.problems.add(key.line, here, f"is not a key; {hint(key.text, shapes)}")
        for name, field in model.model_fields.items():
            if field.is_required() and name not in data:
                words = f"is missing; {shapes[name].allowed}"
                data[name] = self._wrong(self.lines.get(path, node.line), (*path, name), words)
            if field.is_required() and data[name] is _OMIT:
                return _OMIT
        return {name: value for name, value in data.items() if value is not _OMIT}

    def _value(self, node: Node, shape: Shape, path: Path, line: int) -> Any:
        self.lines[path] = line
        if not self.readable(node, path, line):
            return _OMIT
        if isinstance(shape, Leaf):
            return self._leaf(node, shape, path, line)
        if isinstance(shape, Many):
            return self._many(node, shape, path, line)
        if isinstance(shape, Group) and shape.scalar is not None and node.kind == "text":
            return self._leaf(node, shape.scalar, path, line, "or {min: N, max: N}")
        if node.empty:  # `console:` with all its keys commented out
            node = Node("map", line)
        if node.kind != "map":
            return self._wrong(line, path, f"is {self._noun(node)}; {shape.allowed}")
        return self._table(node, shape, path) if isinstance(shape, Table) else self.section(node, shape.model, path)

    def _leaf(self, node: Node, leaf: Leaf, path: Path, line: int, more: str = "") -> Any:
        allowed = " ".join([leaf.allowed, more]).strip()
        if node.kind != "text":
            return self._wrong(line, path, f"is {self._noun(node)}; {allowed}")
        if node.folded:
            words = "runs over several lines without quotes: is a colon or its blank missing, or the indentation wrong?"
            return self._wrong(line, path, f"{words} {allowed[0].upper()}{allowed[1:]}, or quote it")
        try:
            scalar = scalars.expand(node.text, node.plain, self.environ)
        except Wrong as error:
            return self._wrong(line, path, str(error))
        if scalar.expanded:
            self.variables.add(path)
        if scalars.is_null(scalar):
            return self._null(scalar, leaf, allowed, path, line)
        return self._judge(scalar, leaf, allowed, path, line)

    def _judge(self, scalar: Scalar, leaf: Leaf, allowed: str, path: Path, line: int) -> Any:
        try:
            if not scalar.text and scalar.expanded:
                raise Wrong("comes from a variable that is set but empty", "set it to a value")
            value = leaf.read(scalar)
            _check(leaf.limits, value)
        except Wrong as error:
            shown = scalar.shown if leaf.shown else "the value"
            instead = error.allowed or _suggestion(scalar, leaf) or allowed
            return self._wrong(line, path, f"{shown} {error.wrong}; {instead}")
        self.values[path] = value
        return value

    def _null(self, scalar: Scalar, leaf: Leaf, allowed: str, path: Path, line: int) -> Any:
        if leaf.optional:
            self.values[path] = None
            return None
        if not scalar.text:
            return self._wrong(line, path, f"is empty; {allowed}, or leave it out")
        quote = ', or write it in quotes ("...") if you mean the text' if leaf.kind == "text" else ""
        return self._wrong(line, path, f"is null; {allowed}, or leave it out{quote}")

    def _many(self, node: Node, shape: Many, path: Path, line: int) -> Any:
        if node.empty:
            node = Node("list", line)
        if node.kind != "list":
            return self._wrong(line, path, f"is {self._noun(node)}; {shape.allowed}")
        items = []
        self.names[path] = [item.text for item in node.items]
        for n, item in enumerate(node.items):
            value = self._value(item, shape.item, (*path, n), item.line)
            # a place holder keeps the numbers of the items behind it
            items.append({} if value is _OMIT and isinstance(shape.item, Group) else value)
        if any(value is _OMIT for value in items):
            return _OMIT
        try:
            _check(shape.limits, items)
        except Wrong as error:
            return self._wrong(line, path, str(error))
        return tuple(items)

    def _table(self, node: Node, shape: Table, path: Path) -> dict[str, object]:
        data = {}
        self.names[path] = []
        for key, value in self._pairs(node, path):
            here = (*path, key.text)
            self.names[path].append(key.text)
            sound = self._judge(Scalar(key.text, key.text, key.plain), shape.key, shape.key.allowed, here, key.line)
            inner = self._value(value, shape.value, here, key.line)
            if sound is not _OMIT and inner is not _OMIT:
                data[key.text] = inner
        return data

    def _pairs(self, node: Node, path: Path, known: Collection[str] = ()) -> Iterator[tuple[Node, Node]]:
        """The entries of a map whose keys are plain words, each once."""
        seen: dict[str, int] = {}
        for key, value in node.pairs:
            if key.kind != "text":
                self.problems.add(key.line, path, f"has {self._noun(key)} for a key; write a word")
                continue
            here = (*path, key.text)
            if path[:1] == ("database",) and value.empty and key.text not in known:
                # `{password: a,b}` makes a key of the password's end: no such key is shown
                words = f"has a key without a value; {hint('', known)}; quote a value with a comma"
                self.problems.add(key.line, path, words)
            elif key.plain and key.text == "<<":
                self.problems.add(key.line, here, "merge keys are not read; write the keys out")
            elif key.text in seen:
                self.problems.add(key.line, here, f"stands twice, first in line {seen[key.text]}; leave one")
            elif self.readable(key, here, key.line):
                seen[key.text] = key.line
                yield key, value

    def readable(self, node: Node, path: Path, line: int) -> bool:
        """Refuses what YAML can do and a configuration needs not."""
        if node.kind == "alias":
            self.problems.add(line, path, "is an alias (*...); aliases are not read: write the value out, or quote it")
        if node.marked:
            self.problems.add(
                line, path, "has an anchor (&...); anchors are not read: leave it out, or quote the value"
            )
        if node.tagged:
            self.problems.add(line, path, "has a tag (!...); tags are not read: leave it out, or quote the value")
        return node.kind != "alias" and not node.tagged

    def _wrong(self, line: int, path: Path, message: str) -> Any:
        self.problems.add(line, path, message)
        return _OMIT

    @staticmethod
    def _noun(node: Node) -> str:
        return "null" if node.plain and node.text.lower() in ("~", "null") else _NOUNS[node.kind]


def _line(key: Node, value: Node) -> int:
    """A scalar's own line; a list or map belongs to its key's."""
    return value.line if value.kind == "text" and not value.folded else key.line


def _check(limits: Iterable[Limit], value: Any) -> None:
    for limit in limits:
        limit.check(value)


def _suggestion(scalar: Scalar, leaf: Leaf) -> str | None:
    """For a choice that is nearly right."""
    if leaf.kind != "choice" or scalar.expanded:
        return None
    near = nearest(scalar.text, leaf.write.removeprefix("one of ").split(", "))
    return f"did you mean {near}? Allowed: {leaf.write}" if near else None
