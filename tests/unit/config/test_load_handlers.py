"""Modules are imported and commands added; what goes wrong is told at the line that names it."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qd.config import load_handlers, parse_config
from qd.errors import ConfigError
from qd.registry import REGISTRY, Registry

_serial = itertools.count()

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module of a fresh name into the working directory, which isn't on the path; returns the name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(tmp_path))])
    before = set(REGISTRY.names())

    def write(code: str, name: str = "") -> str:
        name = name or f"jobs_of_test_{next(_serial)}"
        (tmp_path / f"{name}.py").write_text(code)
        importlib.invalidate_caches()
        return name

    yield write
    for added in set(REGISTRY.names()) - before:
        REGISTRY.remove(added)


def loaded(*modules: str, commands: str = "{}") -> Registry:
    """The handlers of a file that names these modules from line 3 on."""
    rows = "".join(f"    - {name}\n" for name in modules) or "    []\n"
    return load_handlers(parse_config(f"handlers:\n  modules:\n{rows}  commands: {commands}\n", "my.yaml", {}))


def problems(*modules: str, commands: str = "{}") -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(*modules, commands=commands)
    assert all("\n" not in problem for problem in caught.value.problems)
    return caught.value.problems


def handler(name: str) -> str:
    return f"import qd\n@qd.handler('{name}')\ndef run(job): pass\n"


def test_modules_of_the_working_directory_and_commands_are_found(write: Write) -> None:
    name = write(handler("t.module"))
    found = loaded(name, commands="{t.command: {argv: [prog, '7']}}")
    assert {"t.module", "t.command"} <= set(found.names())
    command = found.get("t.command")
    assert command is not None and command.argv == ("prog", "7")


def test_loading_again_changes_commands_and_keeps_what_is_imported(write: Write) -> None:
    name = write(handler("t.again"))
    loaded(name, commands="{t.one: {argv: [a]}}")
    names = loaded(name, commands="{t.two: {argv: [a]}}").names()
    assert "t.again" in names and "t.two" in names and "t.one" not in names and "t.two" not in REGISTRY.names()


def test_a_registry_that_is_given_is_the_base_and_stays_as_it_was() -> None:
    given = Registry()
    config = parse_config("handlers: {commands: {a: {argv: [x]}}}")
    assert load_handlers(config, given).names() == ("a",) and given.names() == ()


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("import nothing_of_this_name", 1, "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("\n\nraise RuntimeError('two\\nlines')", 3, "RuntimeError: two lines"),
        ("x = 1\nx.y", 2, "AttributeError"),
        ("def f():\n  return (", 2, "SyntaxError"),
        ("import sys\nsys.exit('no')", 2, "SystemExit: no"),
        ("import sys\n\nsys.exit()", 3, "SystemExit"),
        ("class Odd(BaseException): pass\nraise Odd", 2, "Odd"),
        ("def deep(): deep()\ndeep()", 1, "RecursionError"),
        ("class Bad(Exception):\n  def __str__(self): 1/0\nraise Bad", 3, "Bad"),
        ("import qd\n@qd.handler('qd.x')\ndef f(job): pass", 2, "qd's own"),
        ("raise ValueError('x' * 100000)", 1, "ValueError: xxx"),
    ],
)
def test_a_module_that_fails_is_told_with_its_own_file_and_line(write: Write, code: str, line: int, words: str) -> None:
    name = write(code)
    (problem,) = problems(name)
    assert problem.startswith(f"my.yaml:3: handlers.modules[0]: {name} can't be imported: ")
    assert f"{name}.py:{line}: " in problem and words in problem and len(problem) < 700


def test_a_module_that_is_not_there_is_told(write: Write) -> None:
    first, second = problems("no_such_module_a", "email.no_such_module_b")
    assert first.startswith("my.yaml:3: handlers.modules[0]: no_such_module_a can't be imported: there is no module")
    assert second.startswith("my.yaml:4: handlers.modules[1]: email.no_such_module_b can't be imported: there is no")


def test_every_module_and_command_that_is_wrong_is_told_in_the_order_of_lines(write: Write) -> None:
    good, bad = write(handler("t.taken")), write("1/0")
    found = problems(bad, good, "no_such_module", commands="{t.taken: {argv: [a]}}")
    assert [problem.split(": ")[:2] for problem in found] == [
        ["my.yaml:3", "handlers.modules[0]"],
        ["my.yaml:5", "handlers.modules[2]"],
        ["my.yaml:6", "handlers.commands.t.taken"],
    ]
    assert "registered twice" in found[2]


def test_a_module_that_failed_can_be_loaded_once_it_was_mended(write: Write) -> None:
    good = write(handler("t.inner"))
    name = write(f"import {good}\n" + handler("t.half") + "1/0\n")
    problems(name)
    assert "t.half" not in REGISTRY.names()
    write(f"import {good}\n" + handler("t.half") + "# mended\n", name)
    assert {"t.inner", "t.half"} <= set(loaded(name).names())


def test_ctrl_c_during_an_import_is_no_problem_of_the_module(write: Write) -> None:
    name = write("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        loaded(name)
