"""What `qd check` asks the database: what is wrong is found, named with its remedy, and hides nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest

from qd.errors import ConnectionLost
from qd.store.admin import plan
from qd.store.admin.inspection import inspect
from qd.store.admin.shape import read
from qd.store.admin.tables import expected
from qd.store.dialect import MYSQL
from qd.store.protocol import Demand, Finding
from tests.contract.admin.desk import Desk
from tests.support.changing import changing
from tests.support.private import PrivateServer
from tests.support.server import PASSWORD, ROOT

DEMAND = Demand(connections=10, statement_timeout=20.0)
SUBJECTS = ["isolation", "binlog", "server limits", "connections", "packet", "claim plan", "grants"]
SCHEMA = (ROOT / "schema.sql").read_text()


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A fresh database on the shared server, as the daemon's account."""
    made = Desk(request.getfixturevalue("mysql_config"), request.getfixturevalue("mariadb"))
    yield made
    made.close()


def wrong(desk: Desk, demand: Demand | None = DEMAND) -> list[tuple[str, str]]:
    return [(found.what, found.level) for found in desk.store().inspect(demand) if found.level != "ok"]


def told(desk: Desk, what: str, demand: Demand | None = DEMAND) -> Finding:
    [found] = [finding for finding in desk.store().inspect(demand) if finding.what == what]
    return found


def test_of_a_good_database_each_subject_is_told_once_and_nothing_is_wrong(desk: Desk) -> None:
    findings = list(desk.store().inspect(DEMAND))
    assert [finding for finding in findings if finding.level != "ok"] == []
    assert [finding.what for finding in findings] == (SUBJECTS if desk.mysql else ["claim plan"])


def test_without_a_demand_the_servers_limits_are_not_judged(server: Desk) -> None:
    assert {finding.what for finding in server.store().inspect()} == {"isolation", "binlog", "claim plan", "grants"}


# ---------------------------------------------------------------------- rights


def test_missing_rights_are_named_and_the_rest_is_asked(server: Desk) -> None:
    for right, table in (("DELETE", "qd_failed_jobs"), ("INSERT", "qd_jobs")):
        server.sql(f"REVOKE {right} ON {server.config.name}.{table} FROM '{server.config.user}'@'%'")
    assert wrong(server) == [("grants", "FAIL")]
    assert "INSERT on qd_jobs, DELETE on qd_failed_jobs" in told(server, "grants").detail


def test_a_table_that_may_not_be_read_fails_what_reads_it_and_nothing_else(server: Desk) -> None:
    server.sql(f"REVOKE SELECT ON {server.config.name}.qd_jobs FROM '{server.config.user}'@'%'")
    assert wrong(server) == [("packet", "FAIL"), ("claim plan", "FAIL"), ("grants", "FAIL")]
    assert told(server, "grants").detail.startswith("missing: SELECT on qd_jobs; see")


@pytest.fixture
def hasty(server: Desk) -> Iterator[Desk]:
    """The same with short waits."""
    made = Desk(server.config.model_copy(update={"statement_timeout": 2.0}), server.server)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("table", "hidden"),
    [
        ("qd_failed_jobs", {"packet", "tables", "grants"}),
        ("qd_jobs", {"packet", "tables", "claim plan", "grants"}),
        ("qd_daemons", {"tables", "grants"}),
    ],
)
def test_a_locked_table_hides_only_what_is_asked_of_it_and_that_is_told(
    hasty: Desk, table: str, hidden: set[str]
) -> None:
    hasty.sql(f"REVOKE INSERT ON {hasty.config.name}.qd_queues FROM '{hasty.config.user}'@'%'")
    with closing(hasty.connect()) as stranger:
        stranger.cursor().execute(f"LOCK TABLES {table} WRITE")
        found = list(hasty.store().inspect(Demand(10, 2.0)))
    assert {finding.what for finding in found} >= set(SUBJECTS), "none is left out"
    hurt = [finding for finding in found if "can't be" in finding.detail]
    assert {finding.what for finding in hurt} <= hidden and {finding.level for finding in hurt} == {"FAIL"}
    grants = [finding.detail for finding in found if finding.what == "grants"]
    assert grants[0] == "missing: INSERT on qd_queues; see docs/grants.sql", "what could be tried is told"
    assert re.match(rf"can't be tried on {table}: ", grants[1])


def test_a_table_that_is_being_changed_is_not_told_as_one_that_lacks_something(hasty: Desk) -> None:
    with changing(hasty.server, hasty.config.name, "qd_jobs"):
        said = "; ".join(finding.detail for finding in hasty.store().inspect() if finding.level == "FAIL")
    assert "lost" not in said and "no unique index" not in said
    assert wrong(hasty) == []


def test_findings_come_as_they_are_made_and_those_before_an_outage_stay(
    own_mariadb: Callable[..., PrivateServer],
) -> None:
    server = own_mariadb()
    desk = Desk(server.config(server.new_database()), server)
    found: list[Finding] = []
    with closing(desk), pytest.raises(ConnectionLost):
        for finding in desk.store().inspect(DEMAND):
            found.append(finding)
            server.stop()
    assert "isolation" in {finding.what for finding in found}


# ---------------------------------------------------------------------- the session


@pytest.mark.parametrize(
    ("setting", "what", "level", "said"),
    [
        ("tx_isolation = 'REPEATABLE-READ'", "isolation", "FAIL", "REPEATABLE-READ"),
        ("time_zone = '+05:00'", "time zone", "FAIL", "+05:00"),
        ("max_statement_time = 0", "server limits", "warn", "ends a statement never"),
        ("max_statement_time = 600", "server limits", "warn", "after 10m"),
        ("innodb_lock_wait_timeout = 50", "server limits", "warn", "waits 50s for a lock"),
        ("wait_timeout = 8", "server limits", "warn", "dropped after 8s"),
    ],
)
def test_a_session_that_somebody_changed_behind_qd_is_told(
    server: Desk, setting: str, what: str, level: str, said: str
) -> None:
    if "MariaDB" not in str(server.sql("SELECT VERSION()")):
        setting = setting.replace("tx_", "transaction_").replace("max_statement_time", "max_execution_time")
        setting = setting.replace("600", "600000")
    store: Any = server.store()
    changed = store._fresh()
    changed.read(lambda cursor: cursor.execute(f"SET SESSION {setting}"))
    findings = list(inspect(lambda: changed, DEMAND))
    assert [(found.what, found.level) for found in findings if found.level != "ok"] == [(what, level)]
    assert said in next(found.detail for found in findings if found.what == what)


@pytest.mark.parametrize("statement_timeout", [0.5, 1.0, 2.9, 600.0])
def test_the_limits_that_qd_sets_itself_never_contradict(server: Desk, statement_timeout: float) -> None:
    config = server.config.model_copy(update={"statement_timeout": statement_timeout})
    other = Desk(config, server.server)
    assert wrong(other, Demand(10, statement_timeout)) == []
    other.close()


# ---------------------------------------------------------------------- room


@contextmanager
def limited(desk: Desk, limit: str) -> Iterator[None]:
    """The daemon's account has a limit of its own."""
    account = f"ALTER USER '{desk.config.user}'@'%' WITH"
    name = limit.split()[0]
    desk.sql(f"{account} {limit}")
    try:
        yield
    finally:
        desk.sql(f"{account} {name} 0")


def test_an_account_with_fewer_connections_than_a_daemon_opens_is_told(server: Desk) -> None:
    with limited(server, "MAX_USER_CONNECTIONS 9"):
        assert wrong(server) == [("connections", "warn")]
        assert "opens 10 at most, but the account gets 9" in told(server, "connections").detail
        assert "9 to this account" in told(server, "connections", Demand(9, 20.0)).detail


@pytest.mark.parametrize("limit", ["MAX_QUERIES_PER_HOUR", "MAX_UPDATES_PER_HOUR", "MAX_CONNECTIONS_PER_HOUR"])
def test_a_limit_by_the_hour_is_told_and_the_accounts_hash_never_is(server: Desk, limit: str) -> None:
    with limited(server, f"{limit} 500000"):
        findings = list(server.store().inspect(DEMAND))
    assert [(found.what, found.level) for found in findings if found.level != "ok"] == [("account", "warn")]
    text = " ".join(found.detail for found in findings)
    assert f"{limit} 500000" in text
    assert PASSWORD not in text and not re.search(r"\*[0-9A-F]{40}|\$A\$|IDENTIFIED", text)


def test_of_payloads_nothing_is_said_where_there_is_no_job(server: Desk) -> None:
    assert "payload" not in told(server, "packet").detail
    server.sql("INSERT INTO qd_jobs (type, payload) VALUES ('qd.post', '{}')")
    assert "payload" not in told(server, "packet").detail, "a row of qd's own is no job"
    server.sql("INSERT INTO qd_jobs (type, payload) VALUES ('send', '[12]')")
    assert told(server, "packet").detail.endswith("the largest payload of the newest 200 has 4 bytes")


@pytest.fixture
def small(own_mariadb: Callable[..., PrivateServer]) -> Iterator[Desk]:
    """A server that gives little."""
    options = ("--max-connections=20", "--max-allowed-packet=524288", "--log-bin=log", "--binlog-format=STATEMENT")
    private = own_mariadb(*options, "--server-id=1")
    made = Desk(private.config(private.new_database()), private)
    yield made
    made.close()


def test_what_a_small_server_lacks_is_told_all_at_once_with_numbers(small: Desk) -> None:
    [isolation, binlog, _, connections, packet, *_] = small.store().inspect(DEMAND)
    assert (isolation.level, binlog.level, connections.level, packet.level) == ("ok", "FAIL", "ok", "warn")
    assert "STATEMENT" in binlog.detail and "set ROW or MIXED" in binlog.detail
    assert "gives out 20" in connections.detail and "by this account 1" in connections.detail
    assert "512 KiB" in packet.detail and "1 MiB or more" in packet.detail
    assert "missing" not in told(small, "grants").detail, "a write that the binlog refuses is no missing right"


def test_connections_that_others_have_leave_too_few(small: Desk) -> None:
    assert small.server is not None
    with ExitStack() as others:
        for _ in range(12):
            others.enter_context(closing(small.server.connect(small.config.name, "shop")))
        connections = told(small, "connections")
    assert connections.level == "warn"
    assert re.search(r"gives out 20 \(max_connections\), of which others have 1[23]:", connections.detail)
    assert "lower `workers[].threads`" in connections.detail


@pytest.mark.parametrize("table", ["qd_jobs", "qd_failed_jobs"])
def test_payloads_near_the_longest_packet_are_told_with_both_sizes(server: Desk, table: str) -> None:
    most = int(server.sql("SELECT @@max_allowed_packet")[0][0])
    if table == "qd_jobs":
        server.job(payload='"' + "y" * 3000 + '"')
        server.sql(f"UPDATE qd_jobs SET payload = CONCAT('\"', REPEAT('x', {most // 2 + 1024}), '\"')")
    else:
        server.dead(payload="{}")
        server.sql(f"UPDATE qd_failed_jobs SET payload = CONCAT('\"', REPEAT('x', {most // 2 + 1024}), '\"')")
    assert wrong(server) == [("packet", "warn")]
    packet = told(server, "packet").detail
    assert f"max_allowed_packet is {most >> 20} MiB" in packet and f"has {(most >> 20) // 2}" in packet


# ---------------------------------------------------------------------- tables and plan


def test_a_claim_that_would_sort_is_noticed(desk: Desk) -> None:
    desk.sql("DROP INDEX qd_jobs_claim" + (" ON qd_jobs" if desk.mysql else ""))
    # without its tail the claim would have to sort
    desk.sql("CREATE INDEX qd_jobs_claim ON qd_jobs (queue, lane, priority)")
    found = told(desk, "claim plan")
    assert found.level == "FAIL" and "sorts" in found.detail
    assert ("indexes", "FAIL") in wrong(desk) or not desk.mysql


def test_a_claim_whose_index_is_gone_is_said_with_what_to_do(desk: Desk) -> None:
    desk.sql("DROP INDEX qd_jobs_claim" + (" ON qd_jobs" if desk.mysql else ""))
    found = told(desk, "claim plan")
    assert found.level == "FAIL" and "index" in found.detail
    assert "schema.sql" in found.detail or not desk.mysql


def test_a_walk_without_bounds_is_told_from_a_range(desk: Desk) -> None:
    walk = "SELECT id FROM qd_jobs{} WHERE queue = 'a' AND lane = 0 AND priority = 2 ORDER BY available_at LIMIT 5"
    word, hint = ("EXPLAIN FORMAT=JSON", " FORCE INDEX (qd_jobs_claim)") if desk.mysql else ("EXPLAIN QUERY PLAN", "")
    rows = desk.sql(f"{word} {walk.format(hint)}")
    read = (plan._read_mysql if desk.mysql else plan._read_sqlite)(rows)
    assert read == plan.Plan(frozenset({"qd_jobs_claim"}), sorts=False, ranged=False)
    store: Any = desk.store()
    assert store._session.read(lambda cursor: plan.explained(cursor, store._session.dialect)).ranged


@pytest.mark.parametrize(
    ("what", "level", "loss"),
    [
        ("engine", "FAIL", "ALTER TABLE qd_failed_jobs ENGINE = MyISAM"),
        ("unique keys", "FAIL", "ALTER TABLE qd_jobs DROP INDEX qd_jobs_unique"),
        ("indexes", "FAIL", "ALTER TABLE qd_failed_jobs DROP INDEX qd_failed_jobs_job"),
        ("constraints", "warn", "ALTER TABLE qd_jobs DROP CONSTRAINT qd_jobs_lane_check"),
    ],
)
def test_what_a_table_has_lost_is_named(server: Desk, what: str, level: str, loss: str) -> None:
    server.sql(loss)
    assert wrong(server) == [(what, level)]


def test_what_is_looked_for_is_all_that_the_schema_has() -> None:
    """Migrations that change a table have to be known to `expected`."""
    bare = "\n".join(line for line in SCHEMA.splitlines() if not line.lstrip().startswith("--"))
    made = {
        name: read(text) for text, name in re.findall(r"(CREATE TABLE (\w+) .*?;)$", bare, re.DOTALL | re.MULTILINE)
    }
    assert made == expected(MYSQL)
    jobs = made["qd_jobs"]
    assert (len(made), len(jobs.columns), len(jobs.keys), len(jobs.checks)) == (5, 17, 3, 7)


@pytest.mark.parametrize(
    ("what", "said", "change"),
    [
        ("columns", "unique_queue isn't made by the server, so that jobs with the same unique key are enqueued twice",
         "DROP INDEX qd_jobs_unique, DROP COLUMN unique_queue, ADD unique_queue VARCHAR(64) CHARACTER SET ascii "
         "COLLATE ascii_bin NULL, ADD UNIQUE KEY qd_jobs_unique (unique_queue, unique_key)"),
        ("columns", "available_at is datetime, not timestamp(6)",
         "DROP CONSTRAINT qd_jobs_available_at_check, MODIFY available_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, "
         "ADD CONSTRAINT again CHECK (available_at >= '1971-01-01 00:00:00')"),
        ("columns", "available_at changes by itself at each UPDATE",
         "MODIFY available_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)"),
        ("columns", "reserved_by is varchar(20), not varchar(255)",
         "MODIFY reserved_by VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NULL"),
        ("columns", "created_at has ", "MODIFY created_at TIMESTAMP(6) NOT NULL"),
        ("columns", "last_error can't be NULL",
         "MODIFY last_error TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ('')"),
        ("columns", "unique_key is compared by a collation",
         "MODIFY unique_key VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NULL"),
        ("columns", "tenant, which isn't qd's, has no default", "ADD tenant INT NOT NULL"),
        ("indexes", "not as they were: qd_jobs_claim", "DROP INDEX qd_jobs_claim, "
         "ADD KEY qd_jobs_claim (queue, lane, available_at, priority)"),
        ("indexes", "not as they were: qd_jobs_claim", "RENAME KEY qd_jobs_claim TO claim"),
    ],
)  # fmt: skip
def test_a_column_or_index_that_cannot_do_what_qds_does_is_told(
    server: Desk, what: str, said: str, change: str
) -> None:
    server.sql(f"ALTER TABLE qd_jobs {change}")
    assert (what, "FAIL") in wrong(server)
    assert said in told(server, what).detail


def test_tables_that_hold_more_than_qds_are_as_good(server: Desk) -> None:
    server.sql(
        "ALTER TABLE qd_jobs ADD tenant INT NULL, ADD shop VARCHAR(64) NOT NULL DEFAULT '', "
        "ADD kind VARCHAR(9) NOT NULL DEFAULT 'null', DROP INDEX qd_jobs_claim, "
        "ADD KEY qd_jobs_claim (queue, lane, priority, available_at, id), ADD KEY shop_tenant (tenant), "
        "MODIFY attempts INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'starts, NOT NULL (all)', "
        "MODIFY last_error MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL, "
        "ADD CONSTRAINT shop_check CHECK (tenant > 0)"
    )
    server.sql("ALTER TABLE qd_failed_jobs RENAME KEY qd_failed_jobs_job TO of_job")
    assert wrong(server) == []


@pytest.mark.parametrize(
    ("table", "index"), [("qd_jobs", "qd_jobs_unique"), ("qd_failed_jobs", "qd_failed_jobs_queue")]
)
def test_an_index_that_the_server_may_not_use_is_told(server: Desk, table: str, index: str) -> None:
    version = str(server.sql("SELECT VERSION()")[0][0])
    if "MariaDB" in version and version.startswith("10.5"):
        pytest.skip("it can't ignore an index")
    server.sql(f"ALTER TABLE {table} ALTER INDEX {index} {'IGNORED' if 'MariaDB' in version else 'INVISIBLE'}")
    assert wrong(server) == [("indexes", "FAIL")]
    assert index in told(server, "indexes").detail and "ALTER INDEX" in told(server, "indexes").detail


def test_constraints_count_by_what_they_enforce_not_by_name(server: Desk) -> None:
    server.sql("CREATE TABLE other LIKE qd_jobs")
    server.sql("RENAME TABLE qd_jobs TO old, other TO qd_jobs")
    server.sql("DROP TABLE old")
    server.server and server.server.grant(server.config.name)
    assert wrong(server) == []
    server.sql("ALTER TABLE qd_jobs ADD CONSTRAINT mine CHECK (priority <= 300)")
    assert wrong(server) == []


def test_a_constraint_of_the_same_name_that_lets_more_in_is_told(server: Desk) -> None:
    server.sql("ALTER TABLE qd_jobs DROP CONSTRAINT qd_jobs_priority_check")
    server.sql("ALTER TABLE qd_jobs ADD CONSTRAINT qd_jobs_priority_check CHECK (priority <= 30)")
    assert wrong(server) == [("constraints", "warn")]
    assert "not as they were: qd_jobs_priority_check:" in told(server, "constraints").detail


def test_a_constraint_that_is_not_enforced_is_told(server: Desk) -> None:
    if "MariaDB" in str(server.sql("SELECT VERSION()")):
        pytest.skip("MariaDB enforces each, or has it not")
    server.sql("ALTER TABLE qd_jobs ALTER CHECK qd_jobs_lane_check NOT ENFORCED")
    assert wrong(server) == [("constraints", "warn")]
    assert "not enforced: qd_jobs_lane_check:" in told(server, "constraints").detail


REFUSAL = "FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not in the holidays'"


@pytest.mark.parametrize(
    ("table", "event", "said"),
    [
        ("qd_jobs", "INSERT", "enqueued"),
        ("qd_jobs", "UPDATE", "claimed"),
        ("qd_jobs", "DELETE", "finished"),
        ("qd_failed_jobs", "INSERT", "made a dead letter"),
        ("qd_failed_jobs", "DELETE", "taken out of the dead letters"),
    ],
)
def test_a_trigger_that_refuses_a_write_is_told_whether_the_account_sees_it_or_not(
    server: Desk, table: str, event: str, said: str
) -> None:
    server.sql(f"CREATE TRIGGER shop_holidays BEFORE {event} ON {table} {REFUSAL}")
    assert [found for found in wrong(server) if found[0] != "triggers"] == [("writes", "FAIL")]
    detail = told(server, "writes").detail
    assert f"no job can be {said}: " in detail and "not in the holidays" in detail and "trigger" in detail
    assert server.sql("SELECT COUNT(*) FROM qd_jobs") == [(0,)]


def test_a_trigger_that_hinders_nothing_is_named_to_who_may_see_it(server: Desk) -> None:
    server.sql("CREATE TRIGGER shop_seen AFTER UPDATE ON qd_jobs FOR EACH ROW SET @shop_seen = NEW.id")
    server.sql(f"GRANT TRIGGER ON {server.config.name}.* TO '{server.config.user}'@'%'")
    assert wrong(server) == [("triggers", "warn")]
    assert "shop_seen (AFTER UPDATE on qd_jobs)" in told(server, "triggers").detail


def test_one_error_that_no_rule_knows_is_blamed_on_nothing_else(server: Desk) -> None:
    server.sql(f"CREATE TRIGGER shop_holidays BEFORE INSERT ON qd_jobs {REFUSAL}")
    store = server.store()
    assert [finding.what for finding in store.inspect(DEMAND) if finding.level == "FAIL"] == ["writes"]
    assert store.now(), "and the store it was asked of answers on"


def test_a_lost_auto_increment_is_one_fault_and_told_as_that(server: Desk) -> None:
    server.sql("ALTER TABLE qd_jobs MODIFY id BIGINT UNSIGNED NOT NULL")
    assert set(wrong(server)) - {("grants", "FAIL")} == {("columns", "FAIL"), ("writes", "FAIL")}
    assert "id has no AUTO_INCREMENT" in told(server, "columns").detail
    grants = told(server, "grants")  # MySQL doesn't look at the columns of a statement that puts nothing in
    assert grants.level == "ok" or re.match("can't be tried on qd_jobs: ", grants.detail)
