"""The rules of Grafana's public dashboard linter, each a test; the linter itself is a Go program.

Its rules on LogQL (target-logql-rule, target-logql-auto-rule) have nothing to hold: no panel asks Loki.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest

from qd.metrics.catalogue import CATALOGUE
from tests.unit.shipped.board import FILLED, board, filled, panels, targets, variables

SELECTOR = re.compile(r"\b((?:qd_|process_)\w+|up)\b(\{[^}]*\})?")
COUNTERS = [spec.name for spec in CATALOGUE if spec.kind == "counter"] + ["process_cpu_seconds_total"]


def selectors() -> Iterator[tuple[str, str]]:
    """Each metric that a panel asks for, with its matchers."""
    for target in targets():
        yield from SELECTOR.findall(target["expr"])


def test_the_data_source_is_a_variable_named_and_labelled_so() -> None:
    """template-datasource-rule"""
    (found,) = [one for one in variables().values() if one["type"] == "datasource"]
    assert (found["name"], found["label"], found["query"]) == ("datasource", "Data source", "prometheus")


@pytest.mark.parametrize("name, label", [("job", "Job"), ("instance", "Instance")])
def test_job_and_instance_are_variables_of_which_several_may_be_chosen(name: str, label: str) -> None:
    """template-job-rule, template-instance-rule"""
    found = variables()[name]
    assert (found["type"], found["label"], found["multi"]) == ("query", label, True)
    assert found["datasource"]["uid"] == "${datasource}"


def test_all_instances_are_any_instance() -> None:
    """template-instance-rule"""
    assert variables()["instance"]["allValue"] == ".+"


def test_all_jobs_are_those_in_the_list() -> None:
    """template-job-rule wants `.+` here, and isn't followed: `up` and `process_*` are every program's, and with `.+`
    for both job and instance the dashboard would show all of them. Without it Grafana puts in the jobs that
    have qd's metrics."""
    assert "allValue" not in variables()["job"] and variables()["job"]["includeAll"]
    assert variables()["job"]["query"]["query"] == "label_values(qd_build_info, job)"


def test_variables_ask_for_labels_in_a_form_that_prometheus_has() -> None:
    """template-label-promql-rule"""
    for one in variables().values():
        if one["type"] == "query":
            assert re.fullmatch(r"label_values\(qd_\w+(\{[^}]+\})?, \w+\)", one["query"]["query"]), one["name"]
            assert one["definition"] == one["query"]["query"]


def test_variables_are_asked_for_again_when_the_time_range_changes() -> None:
    """template-on-time-change-reload-rule"""
    assert {one["refresh"] for one in variables().values() if one["type"] == "query"} == {2}


def test_every_variable_is_used() -> None:
    text = " ".join(target["expr"] for target in targets())
    for name in set(variables()) - {"datasource"}:
        assert f'=~"${name}"' in text


def test_every_panel_and_query_uses_the_chosen_data_source() -> None:
    """panel-datasource-rule"""
    for one in [*panels(), *targets()]:
        assert one["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_every_panel_has_a_title_and_a_description() -> None:
    """panel-title-description-rule"""
    for panel in panels():
        assert panel["title"] and panel["description"].endswith("."), panel["title"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Grafana's units for Python need Python 3.11")
def test_every_panel_has_a_unit_that_grafana_knows() -> None:
    """panel-units-rule"""
    from grafana_foundation_sdk.models import units

    known = {value for value in vars(units).values() if isinstance(value, str)}
    for panel in panels():
        fields = panel["fieldConfig"]
        given = [one["value"] for part in fields["overrides"] for one in part["properties"] if one["id"] == "unit"]
        assert {fields["defaults"]["unit"], *given} <= known, panel["title"]


def test_every_panel_asks_for_something() -> None:
    """panel-no-targets-rule"""
    for panel in panels():
        assert panel["targets"], panel["title"]


def test_every_query_is_filled_in_by_variables_that_there_are() -> None:
    """target-promql-rule; that they are valid, promtool and a Prometheus say in other tests"""
    for target in targets():
        assert "$" not in filled(target["expr"]), target["expr"]
    assert {name.strip("$") for name in FILLED if "__" not in name} == set(variables()) - {"datasource"}


def test_every_rate_is_over_the_rate_interval() -> None:
    """target-rate-interval-rule"""
    for target in targets():
        ranges = re.findall(r"(\w+)\([^()\[]*\[([^\]]+)\]", target["expr"])
        assert len(ranges) == target["expr"].count("[")
        over = {("rate", "$__rate_interval"), ("avg_over_time", "$__rate_interval"), ("increase", "$__range")}
        assert set(ranges) <= over, target["expr"]


@pytest.mark.parametrize("label", ["job", "instance"])
def test_every_selector_is_narrowed_by_job_and_instance(label: str) -> None:
    """target-job-rule, target-instance-rule"""
    assert len(list(selectors())) > 80
    for name, matchers in selectors():
        assert f'{label}=~"${label}"' in matchers, name


def test_every_counter_is_asked_for_by_its_growth() -> None:
    """target-counter-agg-rule; the parts of histograms too"""
    parts = [
        spec.name + part for spec in CATALOGUE if spec.kind == "histogram" for part in ("_bucket", "_sum", "_count")
    ]
    seen = set()
    for target in targets():
        for name in set(re.findall(r"\w+", target["expr"])) & {*COUNTERS, *parts}:
            bare = re.sub(r"(rate|increase)\(" + name + r"\{[^}]*\}\[", "", target["expr"])
            assert name not in re.findall(r"\w+", bare), target["expr"]
            seen.add(name)
    assert set(COUNTERS) <= seen


def test_it_cannot_be_edited_by_mistake() -> None:
    """uneditable-dashboard: what is changed in the browser is lost at the next import"""
    assert board()["editable"] is False
