# What a newcomer and CI run. Everything stays in this folder (.venv, var) but for packages of the
# distribution, which are installed only as root and said in one line.
.DEFAULT_GOAL := help
.PHONY: help install uninstall demo demo-mysql test test-servers chaos outages bench pictures lint format types ci clean
.NOTPARALLEL:

export DIR PYTHON
export DESTDIR PREFIX BINDIR LIBDIR PROGRAM
# where distributions keep servers, which a plain user's PATH lacks
export PATH := $(PATH):/usr/sbin:/usr/local/sbin
PY := .venv/bin/python
CODE := qd grafana systemd tests benchmarks setup.py

help:  ## what there is
	@sed -n 's/^\([a-z-]*\):.*## *\(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r target what; do printf '%-20s %s\n' "$$target" "$$what"; done

demo:  ## one job per file of a folder (DIR=..., default: Python's library), on the embedded SQLite store
	@.ci/venv
	@$(PY) -m qd demo $${DIR:+-- "$$DIR"}

demo-mysql:  ## the same on a private MariaDB that is started for it and removed afterwards
	@.ci/venv
	@.ci/mariadb
	@$(PY) -m qd demo --mysql $${DIR:+-- "$$DIR"}

test:  ## all tests: unit, contract, acceptance, faults (ARGS="-k name" for some of them)
	@.ci/venv test
	@[ -n "$$QD_TEST_DSN" ] || .ci/mariadb || [ "$$CI" != true ]
	@$(PY) -m pytest -n $(or $(WORKERS),3) --dist loadfile $(ARGS)

test-servers:  ## contract and chaos over every server, which it fetches into var/servers (SERVERS="mysql97 galera")
	@.ci/venv test
	@$(PY) -m tests.servers $(SERVERS) -- -n $(or $(WORKERS),3) --dist loadfile $(ARGS)

chaos:  ## minutes of everything at once, then the ledger (MINUTES=10 SEED=n DAEMONS=3 JOBS=n HARMS="a b")
	@.ci/venv test
	@.ci/mariadb
	@$(PY) -m tests.faults.chaos $(and $(MINUTES),--minutes $(MINUTES)) $(and $(SEED),--seed $(SEED)) $(and $(DAEMONS),--daemons $(DAEMONS)) $(and $(JOBS),--jobs $(JOBS)) $(and $(HARMS),--harms $(HARMS))

outages:  ## 200 outages in a row, then a server that is down for MINUTES=10: what is left, and when work goes on
	@.ci/venv test
	@.ci/mariadb
	@QD_OUTAGES=200 QD_OUTAGE_MINUTES=$(or $(MINUTES),10) $(PY) -m pytest -s tests/faults/test_outages.py

bench:  ## qd beside its peers: targets, figures, conditions; hours (ROUNDS=3 SCALE=1 SECTIONS="drain idle" SERVERS=mariadb)
	@.ci/venv
	@.ci/mariadb
	@$(PY) -m benchmarks $(and $(ROUNDS),--rounds $(ROUNDS)) $(and $(SCALE),--scale $(SCALE)) $(and $(SECTIONS),--sections $(SECTIONS)) $(and $(SERVERS),--servers $(SERVERS)) $(ARGS)

pictures:  ## docs/pictures/ drawn anew, from half an hour of a small shop with its own servers (MINUTES=30)
	@.ci/venv test,dev
	@.ci/mariadb
	@.ci/prometheus
	@$(PY) -m grafana.rehearsal $(and $(MINUTES),--minutes $(MINUTES))

lint:  ## ruff, and the rule that imports go down only
	@.ci/venv test,dev
	@$(PY) -m ruff check $(CODE)
	@$(PY) -m ruff format --check $(CODE)
	@.venv/bin/lint-imports

format:  ## let ruff put the code in order
	@.ci/venv test,dev
	@$(PY) -m ruff check --fix $(CODE)
	@$(PY) -m ruff format $(CODE)

types:  ## mypy --strict
	@.ci/venv test,dev
	@$(PY) -m mypy

ci:  ## what CI runs: lint, types and all tests, with nothing skipped for want of a server
	@.ci/run

install:  ## qd under systemd, as root: program, units, user (PREFIX=/opt/qd DESTDIR= BINDIR= LIBDIR= PROGRAM=no PYTHON=python3)
	@systemd/install.sh

uninstall:  ## take that away again; configuration, passwords, drop-ins and tables stay
	@systemd/uninstall.sh

clean:  ## remove .venv, var and what tools left behind
	rm -rf .venv var build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
