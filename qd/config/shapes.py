"""What the model expects at each place, taken from its annotations: so that no key is described twice.

Owns what is said about a key: what to write there. May import: the pure modules, limits, scalars, model.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator

from qd.config import scalars
from qd.config.limits import Between, Limit, Wrong
from qd.config.model import octets
from qd.config.scalars import Scalar
from qd.duration import duration


@dataclass(frozen=True)
class Leaf:
    """A scalar.

    Attributes:
        kind: what the docs call it: text, whole number, number, true or false, duration, size, choice.
        read: makes the value of its text, or raises Wrong.
        write: what to write there, after `write `.
        optional: null is allowed.
        shown: whether a message may quote it.
    """

    kind: str
    read: Callable[[Scalar], object]
    write: str
    limits: tuple[Limit, ...] = ()
    optional: bool = False
    shown: bool = True

    @property
    def allowed(self) -> str:
        """A half-sentence: what to write."""
        own = [limit.allowed for limit in self.limits if not isinstance(limit, Between)]
        if own:
            return own[0]
        spans = [limit.span for limit in self.limits if isinstance(limit, Between)]
        if self.kind in ("duration", "size"):
            spans = [f"({span})" for span in spans]
        return " ".join([f"write {self.write}", *spans])


@dataclass(frozen=True)
class Group:
    """A section: a map with known keys; `scalar` is what may stand in its place (threads: 4)."""

    model: type[BaseModel]
    scalar: Leaf | None = None

    @property
    def allowed(self) -> str:
        """A half-sentence: what to write."""
        return f"write a map with the keys {', '.join(fields(self.model))}"


@dataclass(frozen=True)
class Many:
    """A list."""

    item: Leaf | Group
    limits: tuple[Limit, ...] = ()

    @property
    def allowed(self) -> str:
        """A half-sentence: what to write."""
        return self.limits[0].allowed if self.limits else "write a list, like [a, b]"


@dataclass(frozen=True)
class Table:
    """A map from names to sections."""

    key: Leaf
    value: Group

    @property
    def allowed(self) -> str:
        """A half-sentence: what to write."""
        return "write a map of names, each with its own keys"


Shape = Leaf | Group | Many | Table


@cache
def fields(model: type[BaseModel]) -> dict[str, Shape]:
    """The keys of a section, in the order of the model, and what stands there."""
    hints = get_type_hints(model, include_extras=True)
    return {name: _shape(hints[name]) for name in model.model_fields}


def _shape(annotation: Any, marks: tuple[Any, ...] = ()) -> Shape:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _shape(args[0], (*args[1:], *marks))
    limits = tuple(mark for mark in marks if isinstance(mark, Limit))
    if origin in (Union, types.UnionType):
        return _union([_shape(part) for part in args if part is not types.NoneType], types.NoneType in args)
    if origin is tuple:
        return Many(_narrow(_shape(args[0]), Leaf, Group), limits)
    if origin is dict:
        return Table(_narrow(_shape(args[0]), Leaf), _narrow(_shape(args[1]), Group))
    if origin is Literal:
        return _choice(args)
    if issubclass(annotation, BaseModel):
        return Group(annotation)
    return _leaf(annotation, marks, limits)


def _leaf(base: type, marks: tuple[Any, ...], limits: tuple[Limit, ...]) -> Leaf:
    before = {mark.func for mark in marks if isinstance(mark, BeforeValidator)}
    if duration in before:
        return Leaf("duration", scalars.seconds, "a number with a unit, like 250ms, 30s, 5m, 1h", limits)
    if octets in before:
        return Leaf("size", scalars.octets, "a number with a unit, like 64KiB, 512MiB, 2GiB", limits)
    if base is bool:
        return Leaf("true or false", scalars.truth, "true or false", limits)
    if base is int:
        return Leaf("whole number", scalars.whole, "a whole number", limits)
    if base is float:
        return Leaf("number", scalars.number, "a number", limits)
    return Leaf("text", scalars.text, "text", limits, shown=bool(limits) and all(limit.shown for limit in limits))


def _choice(words: tuple[str, ...]) -> Leaf:
    def read(scalar: Scalar) -> str:
        if scalar.text not in words:
            raise Wrong("is not one of the choices")
        return scalar.text

    return Leaf("choice", read, f"one of {', '.join(words)}" if len(words) > 1 else words[0])


def _union(parts: list[Shape], optional: bool) -> Shape:
    first = parts[0]
    if len(parts) == 1 and isinstance(first, Leaf):
        return replace(first, optional=optional)
    second = parts[1]
    if isinstance(first, Leaf) and isinstance(second, Group):
        return Group(second.model, scalar=first)
    return _either(_narrow(first, Leaf), _narrow(second, Leaf))


def _either(word: Leaf, other: Leaf) -> Leaf:
    """`auto`, or a number."""

    def read(scalar: Scalar) -> object:
        try:
            return word.read(scalar)
        except Wrong:
            value = other.read(scalar)
        for limit in other.limits:
            limit.check(value)
        return value

    spans = [limit.span for limit in other.limits if isinstance(limit, Between)]
    return Leaf(f"{word.write} or {other.kind}", read, " ".join([word.write, "or", other.write, *spans]))


def _narrow(shape: Shape, *kinds: type) -> Any:
    assert isinstance(shape, kinds), f"the model has a shape that the reader doesn't know: {shape}"
    return shape
