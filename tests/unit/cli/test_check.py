"""`qd check` finds what is wrong, names it, and tells absence from error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from qd.cli.check import exit_code
from qd.cli.checks.handlers import of_series
from qd.cli.root import cli
from qd.config.model import Config, QueueConfig, WorkerConfig
from qd.metrics.series import collapsed
from qd.registry import REGISTRY, Handler, Registry
from qd.store.protocol import Finding
from tests.unit.cli.shop import Shop

OK, WARN, FAIL = Finding("ok", "a", "b"), Finding("warn", "a", "b"), Finding("FAIL", "a", "b")


def check(config: Path, *args: str) -> Result:
    return CliRunner().invoke(cli, ["--config", str(config), "check", *args])


def write(folder: Path, text: str) -> Path:
    file = folder / "qd.yaml"
    file.write_text(text)
    return file


def test_a_good_installation_passes_with_one_line_each(shop: Shop) -> None:
    result = shop.qd("check")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert all(line.split()[0] in ("ok", "warn") for line in lines)
    for what in ("config", "server", "connector", "schema", "claim path", "claim plan"):
        assert [line for line in lines if line.startswith(f"ok    {what}: ")], what


def test_findings_are_json_for_programs(shop: Shop) -> None:
    shown = json.loads(shop.qd("check", "--json").stdout)
    assert shown["ok"]
    assert set(shown["findings"][0]) == {"level", "what", "detail"}


def test_offline_asks_no_database(tmp_path: Path) -> None:
    config = write(tmp_path, "database: {host: 127.0.0.1, port: 1}\n")
    result = check(config, "--offline")
    assert result.exit_code == 0, result.output
    assert "server" not in result.stdout


def test_only_the_file_is_asked_for_and_no_module_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "printing_handlers.py").write_text("print('imported')\n")
    config = write(tmp_path, "database: {port: 1, password: x}\nhandlers: {modules: [printing_handlers]}\n")
    config.chmod(0o640)
    result = check(config, "--file-only")
    assert (result.exit_code, result.output) == (0, f"ok    config: {config}\nok    password: from database.password\n")
    assert "imported" in check(config, "--offline").output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("odd: 1\n", "qd.yaml:1: odd"), ("workers: [{queues: [nowhere]}]\n", "qd.yaml:1: workers[0].queues[0]"),
        ("database: {password_file: /nonexistent/password}\n", "FAIL  password: "),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_file_is_found_in_the_file_alone(tmp_path: Path, text: str, words: str) -> None:
    result = check(write(tmp_path, text), "--file-only")
    assert result.exit_code == 78 and words in result.stdout


def test_only_a_database_out_of_reach_is_69(tmp_path: Path) -> None:
    config = write(tmp_path, "database: {host: 127.0.0.1, port: 1}\n")
    result = check(config)
    assert result.exit_code == 69, result.output
    assert "FAIL  database: out of reach at 127.0.0.1:1/qd" in result.stdout


def test_every_problem_of_the_configuration_is_listed(tmp_path: Path) -> None:
    config = write(tmp_path, "database: {port: abc}\nqueues: {default: {lease: never}}\nodd: 1\n")
    result = check(config, "--offline")
    assert result.exit_code == 78
    for line, key in ((1, "database.port"), (2, "queues.default.lease"), (3, "odd")):
        assert f"qd.yaml:{line}: {key}" in result.stdout


def test_a_module_that_cannot_be_imported_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_handlers.py").write_text("import qd\n\nimport no_such_library\n")
    result = check(write(tmp_path, "handlers: {modules: [broken_handlers]}\n"), "--offline")
    assert result.exit_code == 78
    assert "broken_handlers.py:3" in result.stdout
    assert "no_such_library" in result.stdout


def test_a_missing_schema_is_wrong_and_says_what_to_run(shop: Shop) -> None:
    shop.database.unlink()
    result = shop.qd("check")
    assert result.exit_code == 78
    assert "qd migrate" in result.stdout


def test_handlers_that_expect_an_unknown_queue_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "declaring_handlers.py").write_text(
        "import qd\n\n@qd.handler('declared', queues=['mials'])\ndef declared(job): pass\n"
    )
    try:
        result = check(write(tmp_path, "handlers: {modules: [declaring_handlers]}\n"), "--offline")
    finally:
        REGISTRY.remove("declared")  # it is this process's, which runs other tests
    assert result.exit_code == 0
    assert "declared expects queues that `queues:` lacks: mials" in result.stdout


def test_it_says_when_the_metrics_leave_pairs_out_and_only_then() -> None:
    config = Config(queues={f"q{n}": QueueConfig() for n in range(25)}, workers=(WorkerConfig(queues=("q0",)),))
    registry = Registry()
    for number in range(25):
        registry.add(Handler(f"t{number}", argv=("true",)))
    assert not collapsed(config, registry) and list(of_series(config, registry)) == []
    registry.add(Handler("one-more", argv=("true",)))
    [finding] = of_series(config, registry)
    assert collapsed(config, registry) and finding.level == "warn"
    assert "5,200 series" in finding.detail


def test_a_password_in_a_file_that_everybody_reads_is_a_warning_without_the_password(tmp_path: Path) -> None:
    config = write(tmp_path, "database: {password: verysecret}\n")
    config.chmod(0o644)
    result = check(config, "--offline")
    assert "warn  config:" in result.stdout
    assert "verysecret" not in result.output
    config.chmod(0o640)
    assert "verysecret" not in check(config, "--offline").output
    assert "chmod" not in check(config, "--offline").output


@pytest.mark.parametrize(
    ("findings", "out_of_reach", "code"),
    [([OK, WARN], False, 0), ([OK, FAIL], False, 78), ([FAIL], True, 69), ([FAIL, FAIL], True, 78)],
)
def test_the_exit_code_tells_absence_from_error(findings: list[Finding], out_of_reach: bool, code: int) -> None:
    assert exit_code(findings, out_of_reach) == code
