"""The password occurs in no message, no repr and no dump."""

from __future__ import annotations

import pickle
import traceback

import pytest

from qd.config import parse_config
from qd.config.model import Config, DatabaseConfig
from qd.errors import ConfigError

SECRET = "secretword"

AROUND = [
    "  port 3306\n",
    "   port: 3306\n",
    "\tport: 3306\n",
    "  port: x\n",
    "  password: {s}\n",
    "  host: qd:{s}@db\n",
    "  host: mysql://qd:{s}@db/qd\n",
    "  user: '{s}\n",
    "  name: '{s}{s}{s}{s}{s}{s}{s}{s}{s}'\n",
    "  unix_socket: ~{s}\n",
    "  tls: {s}\n",
    "  tls: {{mode: [{s}]}}\n",
    "  passwd:\n    - {s}\n",
    "  password_file: [{s}]\n",
    "{s}\n",
    " {s}: \n",
    "  ? [{s}]\n",
    "  user: *{s}\n",
    "  user: !{s} x\n",
    "handlers: {s}\n",
    "handlers: {{commands: {{a: {{argv: {s}}}}}}}\n",
    "handlers: {{commands: {{a: {{argv: [x, [{s}]]}}}}}}\n",
]


@pytest.mark.parametrize("line", AROUND)
@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_whatever_is_wrong_around_it_the_password_is_not_shown(line: str, quote: str) -> None:
    text = f"database:\n  user: qd\n  password: {quote}{SECRET}{quote}\n" + line.format(s=SECRET)
    with pytest.raises(ConfigError) as caught:
        parse_config(text, environ={})
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in repr(caught.value) and all(SECRET not in problem for problem in caught.value.problems)


def test_no_repr_and_no_dump_of_a_configuration_holds_it() -> None:
    config = parse_config(f"database: {{password: {SECRET}}}")
    assert config.database.password == SECRET
    for text in (
        repr(config),
        str(config),
        repr(config.database),
        repr(config.database.password),
        f"{config.database!r}",
    ):
        assert SECRET not in text
    assert SECRET not in str(config.model_dump()) and SECRET not in config.model_dump_json()


def test_a_model_that_is_built_wrong_in_code_does_not_show_it_either() -> None:
    with pytest.raises(ValueError) as caught:
        DatabaseConfig(password=SECRET, port=0, nonsense=SECRET)  # type: ignore[call-arg]
    assert SECRET not in str(caught.value)


def test_it_counts_when_configurations_are_compared_and_survives_copies() -> None:
    one, other = (parse_config(f"database: {{password: {word}}}") for word in ("one", "other"))
    assert one.database != other.database and one == parse_config("\n\ndatabase:\n  password: one\n")
    copy: Config = pickle.loads(pickle.dumps(one))
    assert (
        copy == one and copy.database.password == "one" and one.model_copy(update={"batch": 3}).database == one.database
    )
