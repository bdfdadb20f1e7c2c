"""Every key of the configuration with what the model says of it: for tests that must miss none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from qd.config.limits import Between, Limit
from qd.config.model import CommandConfig, Config, QueueConfig, ThreadRange, WorkerConfig
from qd.config.shapes import Group, Leaf, Many, Shape, Table, fields
from qd.duration import spell

DEFAULTS: dict[type[BaseModel], BaseModel] = {
    Config: Config(),
    QueueConfig: QueueConfig(),
    WorkerConfig: WorkerConfig(),
    ThreadRange: ThreadRange(),
}


@dataclass(frozen=True)
class Key:
    """A key.

    Attributes:
        path: `queues.NAME.lease`; NAME stands for any name, [] for any item.
        leaf: what a scalar there (or each item of the list) must be.
        listed: a list of such stands there.
    """

    path: str
    leaf: Leaf
    default: str
    listed: bool = False
    limits: tuple[Limit, ...] = ()

    @property
    def kind(self) -> str:
        """For the docs: `duration`, `list of text`."""
        return f"list of {self.leaf.kind}" if self.listed else self.leaf.kind

    @property
    def allowed(self) -> str:
        """For the docs: what may stand there."""
        if self.listed:
            own = [limit.allowed for limit in self.limits]
            return (own[0] if own else f"each: {self.leaf.allowed.removeprefix('write ')}").removeprefix("write ")
        spans = [limit.span for limit in self.leaf.limits if isinstance(limit, Between)]
        words = spans[0] if spans else self.leaf.allowed.removeprefix("write ")
        return words + (" or null" if self.leaf.optional and "null" not in words else "")


def keys() -> list[Key]:
    """All keys, in the order of the model."""
    return list(_walk(Config, DEFAULTS[Config], ""))


def _walk(model: type[BaseModel], defaults: BaseModel | None, prefix: str) -> Iterator[Key]:
    for name, shape in fields(model).items():
        default = getattr(defaults, name) if defaults is not None else None
        yield from _keys(shape, default, f"{prefix}.{name}".lstrip("."), model)


def _keys(shape: Shape, default: Any, path: str, model: type[BaseModel]) -> Iterator[Key]:
    if isinstance(shape, Leaf):
        yield Key(path, shape, _spelled(default, shape))
    elif isinstance(shape, Group):
        if shape.scalar is not None:
            yield Key(path, shape.scalar, _spelled(default, shape.scalar))
        inner = default if isinstance(default, BaseModel) else DEFAULTS.get(shape.model)
        yield from _walk(shape.model, inner, path)
    elif isinstance(shape, Table):
        yield from _walk(shape.value.model, DEFAULTS.get(shape.value.model), f"{path}.NAME")
    elif isinstance(shape, Many) and isinstance(shape.item, Group):
        yield from _walk(shape.item.model, DEFAULTS.get(shape.item.model), f"{path}[]")
    elif isinstance(shape, Many) and isinstance(shape.item, Leaf):
        text = "required" if model is CommandConfig else f"[{', '.join(default)}]"
        yield Key(path, shape.item, text, listed=True, limits=shape.limits)


def _spelled(value: Any, leaf: Leaf) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if leaf.kind == "duration":
        return spell(value)
    if leaf.kind == "size":
        return f"{value >> 20}MiB"
    return f"{value:g}" if isinstance(value, float) else str(value)
