"""The dashboard against the types that Grafana publishes: no unknown field, no wrong type, nothing missing."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.shipped.board import board

if sys.version_info < (3, 11):
    pytest.skip("Grafana's types for Python need Python 3.11", allow_module_level=True)

from tests.unit.shipped.published_types import problems


def test_the_dashboard_fits_grafanas_published_types() -> None:
    assert problems(board()) == []


def of_kind(whole: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(panel for panel in whole["panels"] if panel["type"] == kind)


def unknown_field(whole: dict[str, Any]) -> None:
    whole["refersh"] = "30s"


def unknown_option(whole: dict[str, Any]) -> None:
    of_kind(whole, "stat")["options"]["color_mode"] = "value"


def unknown_way_to_draw(whole: dict[str, Any]) -> None:
    of_kind(whole, "timeseries")["fieldConfig"]["defaults"]["custom"]["lineSytle"] = {"fill": "dash"}


def number_for_text(whole: dict[str, Any]) -> None:
    of_kind(whole, "heatmap")["title"] = 7


def text_for_number(whole: dict[str, Any]) -> None:
    of_kind(whole, "timeseries")["gridPos"]["w"] = "8"


def truth_for_number(whole: dict[str, Any]) -> None:
    of_kind(whole, "timeseries")["fieldConfig"]["defaults"]["custom"]["lineWidth"] = True


def no_such_word(whole: dict[str, Any]) -> None:
    of_kind(whole, "timeseries")["options"]["tooltip"]["mode"] = "several"


def no_such_panel(whole: dict[str, Any]) -> None:
    of_kind(whole, "heatmap")["type"] = "heat-map"


def no_such_override(whole: dict[str, Any]) -> None:
    of_kind(whole, "table")["fieldConfig"]["overrides"][0]["properties"].append({"id": "units", "value": "s"})


def override_of_another_type(whole: dict[str, Any]) -> None:
    of_kind(whole, "table")["fieldConfig"]["overrides"][0]["properties"].append({"id": "unit", "value": 1})


def a_line_where_none_is_drawn(whole: dict[str, Any]) -> None:
    properties = [{"id": "custom.lineStyle", "value": {"fill": "dash"}}]
    override = {"matcher": {"id": "byName", "options": "failed"}, "properties": properties}
    of_kind(whole, "bargauge")["fieldConfig"]["overrides"].append(override)


def query_without_expression(whole: dict[str, Any]) -> None:
    del of_kind(whole, "stat")["targets"][0]["expr"]


def unknown_part_of_a_query(whole: dict[str, Any]) -> None:
    of_kind(whole, "stat")["targets"][0]["legend"] = "x"


def variable_of_no_kind(whole: dict[str, Any]) -> None:
    whole["templating"]["list"][1]["type"] = "label"


def annotation_without_colour(whole: dict[str, Any]) -> None:
    del whole["annotations"]["list"][1]["iconColor"]


MISTAKES = [
    unknown_field, unknown_option, unknown_way_to_draw, number_for_text, text_for_number, truth_for_number,
    no_such_word, no_such_panel, no_such_override, override_of_another_type, a_line_where_none_is_drawn,
    query_without_expression, unknown_part_of_a_query, variable_of_no_kind, annotation_without_colour,
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_is_refused(mistake: Callable[[dict[str, Any]], None]) -> None:
    whole = copy.deepcopy(board())
    mistake(whole)
    assert len(problems(whole)) == 1, problems(whole)
