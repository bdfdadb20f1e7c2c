"""What contradicts itself, what refers to nothing, and what this version doesn't have."""

from __future__ import annotations

import pytest

from qd.config import parse_config
from tests.unit.config.judging import refused, told

FINE = [
    "{}",
    "database: {driver: sqlite, path: x.db, statement_timeout: 1s, password: null}",
    "database: {unix_socket: /run/x.sock}",
    "database: {unix_socket: null, host: h, port: 3307}",
    "database: {host: '::1', password_file: /etc/qd/password, tls: {mode: verify_identity}}",
    "database: {statement_timeout: 2s}\nqueues: {default: {lease: 6s}}",
    "queues: {a: {}, A: {}, 'x.y:z-_0': {}}\nworkers: [{queues: [a, A]}, {queues: [A, a]}, {name: x, queues: [a]}]",
    "workers: [{threads: {min: 4, max: 4}}]",
    "workers: [{threads: {}}]",
    "queues: {default: {backoff: {base: 0s, cap: 0s, factor: 1, jitter: 0}}}",
    "poll: {min: 1s, max: 1s}",
    "http: {listen: null}",
    "http: {listen: '0.0.0.0:9833'}",
    "http: {listen: 'localhost:9833'}\nconsole: {hosts: [qd.example.org], users_file: /etc/qd/users}",
    "handlers: {modules: [shop.jobs, _a.b2], commands: {a: {argv: [prog, '', '80']}}}",
]


@pytest.mark.parametrize("text", FINE)
def test_what_is_allowed_is_taken(text: str) -> None:
    parse_config(text)


def test_both_passwords_are_told_at_both_lines() -> None:
    text = "database:\n  password: secretword\n  password_file: /x\n"
    told(text, "2: database.password", "database.password_file")
    told(text, "3: database.password_file", "database.password;")


def test_a_socket_beside_host_or_port_is_told_at_each_line() -> None:
    text = "database:\n  unix_socket: /x\n  host: h\n  port: 3306\n"
    told(text, "2: database.unix_socket", "database.host and database.port")
    told(text, "3: database.host", "database.unix_socket")
    told(text, "4: database.port", "database.unix_socket")


def test_keys_of_the_other_driver_are_refused() -> None:
    keys = ("host: h", "port: 1", "unix_socket: /x", "name: q", "user: u", "password: p", "tls: {}")
    problems = refused("database:\n  driver: sqlite\n" + "".join(f"  {key}\n" for key in keys))
    named = [problem.split(": ")[1] for problem in problems if "no meaning with database.driver: sqlite" in problem]
    assert named == [f"database.{key.split(':')[0]}" for key in keys]
    told("database:\n  path: x.db\n", "2: database.path", "no meaning with database.driver: mysql")


def test_a_ca_without_tls_is_a_contradiction() -> None:
    told("database:\n  tls:\n    mode: disabled\n    ca: /x\n", "4: database.tls.ca", "database.tls.mode")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("queues:\n  default:\n    lease: 59s\n", "3: queues.default.lease"),
        ("database:\n  statement_timeout: 31s\n", "2: database.statement_timeout"),
        (
            "queues:\n  default: {lease: 5m}\n  b: {lease: 1m}\ndatabase: {statement_timeout: 25s}\n",
            "3: queues.b.lease",
        ),
    ],
)
def test_a_lease_under_three_statement_timeouts_names_both(text: str, place: str) -> None:
    told(text, place, "lease", "database.statement_timeout", "at least")


def test_every_lease_that_is_too_short_is_told_and_the_statement_timeout_once() -> None:
    queues = "".join(
        f"  {name}: {{lease: {lease}s}}\n" for name, lease in (("default", 50), ("b", 40), ("c", 61), ("d", 59))
    )
    problems = refused("database:\n  statement_timeout: 20s\nqueues:\n" + queues)
    assert [problem.split(": ")[:2] for problem in problems] == [
        ["qd.yaml:2", "database.statement_timeout"],
        ["qd.yaml:4", "queues.default.lease"],
        ["qd.yaml:5", "queues.b.lease"],
        ["qd.yaml:7", "queues.d.lease"],
    ]
    assert "queues.b.lease (40s)" in problems[0]


def test_a_lease_under_three_seconds_is_refused() -> None:
    text = "database: {statement_timeout: 500ms}\nqueues:\n  default:\n    lease: 2999ms\n"
    told(text, "4: queues.default.lease", "from 3s to 1d", "3 times database.statement_timeout")


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("poll: {min: 1s}", "poll.min", "poll.max"),
        ("poll: {max: 1ms}", "poll.max", "poll.min"),
        ("queues: {default: {backoff: {base: 1h}}}", "queues.default.backoff.base", "queues.default.backoff.cap"),
        ("queues: {default: {backoff: {cap: 1s}}}", "queues.default.backoff.cap", "queues.default.backoff.base"),
        ("workers: [{threads: {min: 5}}]", "workers[0].threads.min", "workers[0].threads.max"),
        ("workers: [{threads: {min: 5, max: 2}}]", "workers[0].threads.min", "workers[0].threads.max"),
    ],
)
def test_a_least_value_over_the_greatest_is_told_at_the_one_that_was_set(text: str, low: str, high: str) -> None:
    (problem,) = refused(text)
    assert problem.startswith(f"qd.yaml:1: {low}: ") and high in problem


@pytest.mark.parametrize(
    "name", ["a b", "ä", "a/b", "", "x" * 65, "qd.post", "qd.", "_other", "a\\n", "${x}", "<script>", "a'b", " a"]
)
def test_names_of_queues_workers_and_handlers_are_limited(name: str) -> None:
    quoted = f'"{name}"'
    text = f"queues:\n  default: {{}}\n  {quoted}: {{}}\nworkers:\n  - name: {quoted.replace('$', '$$')}\n"
    problems = refused(text + f"handlers:\n  commands:\n    {quoted if len(name) < 65 else 'x' * 129}: {{argv: [a]}}\n")
    assert [problem.split(": ")[0] for problem in problems] == ["qd.yaml:3", "qd.yaml:5", "qd.yaml:8"]


def test_a_queue_that_is_not_listed_is_told_with_the_one_that_was_meant() -> None:
    text = "queues:\n  mails: {}\n  Reports: {}\nworkers:\n  - queues: [mails, mial, reports]\n"
    told(text, "5: workers[0].queues[1]", '"mial" is not in queues; did you mean mails?')
    told(text, "5: workers[0].queues[2]", "did you mean Reports?")
    told("queues:\n  mails: {}\n", "1: workers[0].queues", '"default", its default, is not in queues; queues has mails')


def test_a_queue_whose_name_is_refused_is_not_missed_as_well() -> None:
    assert len(refused("queues:\n  no: {}\nworkers:\n  - queues: ['no']\n")) == 1
    assert len(refused("queues: [a]\nworkers:\n  - queues: [a]\n")) == 1


def test_a_queue_twice_in_a_worker_and_a_name_twice_among_workers_are_refused() -> None:
    text = "workers:\n  - queues: [default, default]\n  - name: a\n  - name: a\n  - name: default\n"
    told(text, "2: workers[0].queues[1]", "stands twice")
    told(text, "4: workers[2].name", "workers[1]")
    told("workers:\n  - {}\n  - name: default\n", "3: workers[1].name", "the name default", "workers[0]")


@pytest.mark.parametrize("text", ["queues: {}", "queues:", "workers: []", "workers:", "workers: [{queues: []}]"])
def test_no_queue_and_no_worker_are_refused(text: str) -> None:
    (problem,) = refused(text)
    assert "write at least one" in problem


NO_ADDRESSES = """
9833 '9833' :9833 '*:9833' h 'h:' h:x h:65536 h:-1 ::1:9833 '[::1]' '[h]:1' '[::1]:' '[::g]:1' http://h:1 h:1/
h:0 0.0.0.0:0 h:999999 h:٣
"""


@pytest.mark.parametrize("address", NO_ADDRESSES.split())
@pytest.mark.parametrize("section", ["http", "console"])
def test_an_address_to_listen_at_has_a_host_and_a_port(section: str, address: str) -> None:
    users = "\n  users_file: /x" if section == "console" else ""
    problems = refused(f"{section}:\n  listen: {address}{users}\n")
    assert problems[0].startswith(f"qd.yaml:2: {section}.listen: ") and "write" in problems[0]


@pytest.mark.parametrize(
    ("http", "console"),
    [
        ("127.0.0.1:1", "127.0.0.1:1"),
        ("0.0.0.0:1", "127.0.0.1:1"),
        ("'[::1]:1'", "'[::]:1'"),
        ("localhost:1", "LOCALHOST:1"),
    ],
)
def test_the_console_has_an_address_of_its_own(http: str, console: str) -> None:
    text = f"http:\n  listen: {http}\nconsole:\n  listen: {console}\n  users_file: /x\n"
    problems = refused(text)
    assert sum("are the same address" in problem for problem in problems) == 2


@pytest.mark.parametrize("address", ["0.0.0.0:9834", "'[::]:9834'", "192.168.1.1:9834", "qd.example.org:9834"])
def test_an_open_console_without_a_login_is_refused_and_the_risk_named(address: str) -> None:
    first, second = refused(f"console:\n  listen: {address}\n")
    assert "without a login" in first and "payloads" in first and "users_file" in first
    assert second == "qd.yaml:2: console.listen: the console is not in this version; leave it null"


@pytest.mark.parametrize(
    "address", ["127.0.0.1:9834", "127.9.9.9:9834", "'[::1]:9834'", "'[::ffff:127.0.0.1]:9834'", "localhost:9834"]
)
def test_a_console_on_loopback_is_only_not_there_yet(address: str) -> None:
    assert refused(f"console: {{listen: {address}}}".replace("'[", '"[').replace("4'", '4"')) == [
        "qd.yaml:1: console.listen: the console is not in this version; leave it null"
    ]


def test_a_memory_limit_needs_processes_in_each_worker_of_its_queue() -> None:
    limit = "queues:\n  default: {memory: 512MiB}\n  mails: {}\nworkers:\n"
    told(f"{limit}  - queues: [default]\n", "2: queues.default.memory", "executor: process", "workers[0]", "null")
    one_of_two = "  - {queues: [default], executor: process}\n  - {name: b, queues: [mails, default]}\n"
    told(limit + one_of_two, "2: queues.default.memory", "workers[1] would run its jobs in threads")
    parse_config(f"{limit}  - {{queues: [default], executor: process}}\n  - {{queues: [mails]}}\n")


@pytest.mark.parametrize("key", ["max_jobs: 100", "max_jobs: 1000", "max_memory: 1GiB"])
def test_a_childs_life_is_not_set_where_there_are_no_children(key: str) -> None:
    name = key.partition(":")[0]
    told(f"workers:\n  - threads: 1\n    {key}\n", f"3: workers[0].{name}", "executor is thread", "leave it out")
    parse_config(f"workers:\n  - executor: process\n    {key}\n")


@pytest.mark.parametrize(
    "value", ["shop/jobs.py", "shop-jobs", ".jobs", "shop..jobs", "a.class", "1a", "a b", "shop.jobs:run"]
)
def test_a_module_is_a_dotted_name(value: str) -> None:
    told(f"handlers:\n  modules:\n    - ok\n    - {value}\n", "4: handlers.modules[1]", "dotted name")


@pytest.mark.parametrize("argv", ["[]", "['']", "[' ', a]", ""])
def test_a_command_names_a_program(argv: str) -> None:
    assert "names no program" in refused(f"handlers: {{commands: {{a: {{argv: {argv}}}}}}}")[0]


def test_a_command_without_a_program_is_told_at_its_line() -> None:
    told("handlers:\n  commands:\n    a: {}\n", "3: handlers.commands.a.argv", "is missing; write the program")
    assert len(refused("handlers:\n  commands:\n    a:\n      argv: [[]]\n")) == 1


@pytest.mark.parametrize("host", ["h:3306", "a b", "user@h", "h/x", "'[::1]'", "'a\\tb'", "' '"])
def test_a_host_is_a_host_alone(host: str) -> None:
    told(f"database:\n  host: {host}\n", "2: database.host")


def test_all_problems_come_at_once_in_the_order_of_their_lines() -> None:
    text = "log: {level: loud}\npoll: {min: 1}\nworkers:\n  - {threads: 0}\n  - {queues: [x]}\n"
    text += "batch: 0\nnonsense: 1\nhttp: {listen: x}\n"
    lines = [int(problem.split(":")[1]) for problem in refused(text)]
    assert lines == [1, 2, 4, 5, 6, 7, 8]
