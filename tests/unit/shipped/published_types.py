"""Holds a dashboard's JSON against the types that Grafana publishes for Python, strictly.

The package `grafana-foundation-sdk` is generated from Grafana's own schemas, but reads laxly: what it doesn't know
it drops, what has a wrong type it keeps. So its annotations are followed here: a field that no type has, a value
that doesn't fit, a word that isn't in an enumeration and a field that must be there and isn't are problems. What a
panel's kind, an override or a query add is checked by the type of that kind. Transformations have no published type.
May import: the package, nothing of qd.
"""

from __future__ import annotations

import ast
import enum
import inspect
import textwrap
import types
import typing
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of the JSON's form, which every Grafana still reads
    from grafana_foundation_sdk.cog import plugins, runtime, variants
    from grafana_foundation_sdk.models import dashboard, prometheus

plugins.register_default_plugins()

PANEL_FIELDS = ("options", "fieldConfig")


def problems(board: Any) -> list[str]:
    """What is wrong with a dashboard, each with the place where it is."""
    return list(_check(board, dashboard.Dashboard, "dashboard"))


def _check(value: Any, hint: Any, at: str) -> Iterator[str]:
    hint = prometheus.Dataquery if hint is variants.Dataquery else hint
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in (Any, object):
        return
    if origin in (typing.Union, types.UnionType):
        yield from _check_union(value, arguments, at)
    elif origin is typing.Literal:
        yield from _unless(value in arguments, value, f"one of {arguments}", at)
    elif origin is list:
        yield from _unless(isinstance(value, list), value, "a list", at)
        for place, one in enumerate(value if isinstance(value, list) else ()):
            yield from _check(one, arguments[0], f"{at}[{place}]")
    elif origin is dict:
        yield from _unless(isinstance(value, dict), value, "a map", at)
        for key, one in (value if isinstance(value, dict) else {}).items():
            yield from _check(one, arguments[1], f"{at}.{key}")
    elif isinstance(hint, type) and issubclass(hint, enum.Enum):
        yield from _unless(value in [one.value for one in hint], value, f"one of {[one.value for one in hint]}", at)
    elif hasattr(hint, "to_json"):
        yield from _check_object(value, hint, at)
    else:
        yield from _unless(_is(value, hint), value, hint.__name__, at)


def _unless(fits: bool, value: Any, wanted: str, at: str) -> Iterator[str]:
    if not fits:
        yield f"{at}: {value!r} isn't {wanted}"


def _is(value: Any, hint: type) -> bool:
    """bool is no number, a whole number is a float."""
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint


def _check_union(value: Any, choices: tuple[Any, ...], at: str) -> Iterator[str]:
    """Fits one of them; else the problems with the nearest."""
    if value is None and type(None) in choices:
        return
    if isinstance(value, dict) and dashboard.RowPanel in choices:
        choices = (dashboard.RowPanel,) if value.get("type") == "row" else (dashboard.Panel,)
    found = [list(_check(value, choice, at)) for choice in choices if choice is not type(None)]
    yield from min(found, key=len)


def _check_object(value: Any, kind: type, at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{at}: {value!r} isn't a map"
        return
    hints, names, fixed = typing.get_type_hints(kind), json_names(kind), constants(kind)
    own = PANEL_FIELDS if kind is dashboard.Panel else ()
    for key, one in value.items():
        if key not in names:
            yield f"{at}.{key}: no such field in {kind.__name__}"
        elif names[key] in fixed:
            yield from _unless(one == fixed[names[key]], one, repr(fixed[names[key]]), f"{at}.{key}")
        elif key not in own:
            yield from _check(one, hints[names[key]], f"{at}.{key}")
    for key, name in names.items():
        if key not in value and name not in fixed and type(None) not in typing.get_args(hints[name]):
            yield f"{at}.{key}: missing in {kind.__name__}"
    if own:
        yield from _check_panel(value, at)


def _check_panel(panel: dict[str, Any], at: str) -> Iterator[str]:
    """What a panel's kind decides: its options, and what its fields have of their own."""
    config = runtime.panelcfg_config(panel["type"])
    if config is None:
        yield f"{at}.type: {panel['type']!r} is no panel of Grafana's"
        return
    options, custom = _behind(config.options_from_json_hook), _behind(config.field_config_from_json_hook)
    yield from _check(panel.get("options"), options, f"{at}.options")
    fields = panel["fieldConfig"]
    yield from _check(fields, dashboard.FieldConfigSource, f"{at}.fieldConfig")
    if "custom" in fields["defaults"]:
        yield from _check(fields["defaults"]["custom"], custom, f"{at}.fieldConfig.defaults.custom")
    for place, override in enumerate(fields["overrides"]):
        for one in override["properties"]:
            where = f"{at}.fieldConfig.overrides[{place}].{one['id']}"
            yield from _check_property(one["id"], one["value"], custom, where)


def _behind(hook: Any) -> Any:
    """The class whose from_json a hook is; where a kind of panel has no such fields, nothing fits."""
    return Never if hook is None else hook.__self__


class Never:
    """Has no field."""

    def to_json(self) -> dict[str, object]:
        """As the published types have it."""
        return {}


def _check_property(name: str, value: Any, custom: Any, at: str) -> Iterator[str]:
    """An override's value has the type of the field that it stands for."""
    kind = custom if name.startswith("custom.") else dashboard.FieldConfig
    names, field = json_names(kind), name.removeprefix("custom.")
    if field in names:
        yield from _check(value, typing.get_type_hints(kind)[names[field]], at)
    else:
        yield f"{at}: no such field in {kind.__name__}"


@cache
def json_names(kind: Any) -> dict[str, str]:
    """A type's fields as JSON names them, and as Python does: read from its `to_json`."""
    source = ast.parse(textwrap.dedent(inspect.getsource(kind.to_json)))
    found: dict[str, str] = {}
    for node in ast.walk(source):
        if isinstance(node, ast.Dict):
            pairs = list(zip(node.keys, node.values, strict=True))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            pairs = [(node.targets[0].slice, node.value)]
        else:
            continue
        for key, value in pairs:
            if isinstance(key, ast.Constant) and isinstance(value, ast.Attribute):
                found[str(key.value)] = value.attr
    return found


@cache
def constants(kind: Any) -> dict[str, Any]:
    """The fields of a type that have one value only."""
    given = set(inspect.signature(kind).parameters)
    made = kind()
    return {name: getattr(made, name) for name in json_names(kind).values() if name not in given}
