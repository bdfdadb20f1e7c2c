#!/bin/sh
# `make install`: puts qd under systemd. What is yours stays as it is: configuration, passwords, drop-ins, packages
# of handlers in the program's environment. Run again it upgrades. Environment:
#   DESTDIR  a folder that stands for /, for who makes packages: any user's, an absolute path, and nothing of this
#            system is touched: where something is missing for it, it is named
#   PREFIX   the program's own virtual environment (/opt/qd); the units call PREFIX/bin/qd
#   BINDIR   where the command `qd` goes (/usr/local/bin)
#   LIBDIR   of systemd/system, sysusers.d, tmpfiles.d (/usr/local/lib)
#   PROGRAM  no: all but the program, where that comes another way
#   PYTHON   the Python to make the environment with (python3): one that every user can run, and that a service sees;
#            another than the last time's replaces that
set -eu
cd "$(dirname "$0")/.."
umask 022
. systemd/places.sh

[ -n "$DESTDIR" ] || [ "$(id -u)" = 0 ] ||
  fail "make install writes to $PREFIX, $LIBDIR and /etc/qd: run it as root, or give it DESTDIR=/some/folder"

[ -n "$DESTDIR" ] || command -v systemd-sysusers >/dev/null ||
  fail "there is no systemd here (no systemd-sysusers): docs/operations.md has how qd runs without"

at=$DESTDIR$PREFIX
[ "$PROGRAM" = no ] || [ ! -L "$at" ] || [ -e "$at/pyvenv.cfg" ] ||
  fail "'$PREFIX' is a link, where no environment can be made: give PREFIX= the folder itself, $(readlink -m "$at")"

put() { # FILE TARGET: as the units need it, readable by all
  mkdir -p "$DESTDIR${2%/*}"
  sed "s|/opt/qd/|$PREFIX/|g" "$1" >"$DESTDIR$2.new"
  chmod 644 "$DESTDIR$2.new"
  mv "$DESTDIR$2.new" "$DESTDIR$2"
}

program() {
  at=$DESTDIR$PREFIX
  [ -z "$(ls -A "$at" 2>/dev/null)" ] || [ -e "$at/pyvenv.cfg" ] || [ -e "$at/.qd" ] ||
    fail "$at holds something else: PREFIX is a folder for qd's program alone, like /opt/qd"
  base=$("$PYTHON" systemd/interpreter.py 2>/dev/null) || [ -z "$base" ] ||
    fail "the service couldn't run $base; take another, like make install PYTHON=/usr/bin/python3"
  version=$(.ci/python "$PYTHON" ${DESTDIR:+look})
  work=$(mktemp -d /tmp/qd-XXXXXX)
  trap 'rm -rf "$work"' EXIT
  if [ -n "$DESTDIR" ]; then # by a name that any program takes, and that stands for nothing else in a script
    mkdir -p "$DESTDIR"
    ln -s "$DESTDIR" "$work/tree"
    at=$work/tree$PREFIX
  fi
  was=$(readlink -f "$at/bin/python" || true)
  if [ -L "$at/bin/python" ] && [ "$was" != "$base" ]; then # venv itself keeps links that there are
    printf '%s\n' "qd: $PREFIX had ${was:-a Python that is gone}, now $base"
    [ -d "$at/lib/python$version" ] || echo "qd: it is another version: install packages of yours into $PREFIX again"
    find "$at/bin" -name 'python*' -type l -delete
  fi
  mkdir -p "$at"
  [ -e "$at/.qd" ] || : >"$at/.qd" # by this a run that is cut off is known to the next, wherever it was
  { [ -s "$at/pyvenv.cfg" ] && "$at/bin/python" systemd/program.py pip && "$at/bin/python" -m pip --version; } \
    >/dev/null 2>&1 || "$PYTHON" -m venv "$at"
  mkdir "$work/sources"
  cp -R qd setup.py pyproject.toml README.md LICENSE "$work/sources" # a build would leave its own behind here
  "$at/bin/python" systemd/program.py before
  "$at/bin/python" -m pip install --quiet --disable-pip-version-check --use-pep517 --upgrade "$work/sources" ||
    fail "pip could not install: see its words above (it needs a package index, directly or by pip's own settings)"
  "$at/bin/python" systemd/program.py after
  made="/tmp/qd-[[:alnum:]]*/tree$PREFIX" # by this run, or one before that was broken off
  [ -z "$DESTDIR" ] || grep -rlIZ "$made" "$at/bin" "$at/pyvenv.cfg" | xargs -0r sed -i "s|$made|$PREFIX|g"
}

if [ "$PROGRAM" != no ]; then
  program
  command=$DESTDIR$BINDIR/qd
  mkdir -p "$DESTDIR$BINDIR"
  if [ ! -e "$command" ] && [ ! -L "$command" ]; then
    ln -s "$PREFIX/bin/qd" "$command"
  elif [ "$(readlink "$command")" != "$PREFIX/bin/qd" ]; then
    printf '%s\n' "qd: $command is there already and stays; qd's own is $PREFIX/bin/qd"
  fi
fi

did=installed
[ ! -e "$DESTDIR$LIBDIR/systemd/system/qd.service" ] || did=upgraded
for unit in $UNITS; do put "systemd/$unit" "$LIBDIR/systemd/system/$unit"; done
put systemd/sysusers.d/qd.conf "$LIBDIR/sysusers.d/qd.conf"
put systemd/tmpfiles.d/qd.conf "$LIBDIR/tmpfiles.d/qd.conf"
for paper in $PAPERS; do put "$paper" "$DOCDIR/${paper##*/}"; done
mkdir -p "$DESTDIR/etc/qd"

if [ -z "$DESTDIR" ]; then
  systemd-sysusers "$LIBDIR/sysusers.d/qd.conf"
  systemd-tmpfiles --create "$LIBDIR/tmpfiles.d/qd.conf"
  [ -d /etc/credstore ] || install -d -m 700 /etc/credstore
  [ ! -d /run/systemd/system ] || systemctl daemon-reload
fi
if [ ! -e "$DESTDIR/etc/qd/qd.yaml" ]; then # the password is a credential, see qd.service
  sed "/^  password: /d; s|config/qd.yaml|$DOCDIR/qd.yaml|" config/qd.minimal.yaml >"$DESTDIR/etc/qd/qd.yaml"
  chmod 640 "$DESTDIR/etc/qd/qd.yaml"
  [ -n "$DESTDIR" ] || chgrp qd /etc/qd/qd.yaml
fi

printf '%s\n' "qd: $did $([ "$PROGRAM" = no ] || echo "$PREFIX, ")$LIBDIR/systemd/system/qd.service${DESTDIR:+, in $DESTDIR}"
[ -z "$DESTDIR" ] || exit 0
for unit in $UNITS; do
  [ ! -e "/etc/systemd/system/$unit" ] ||
    echo "qd: /etc/systemd/system/$unit counts instead of the new one: move it away, keep your changes in a drop-in"
done
running=$(systemctl list-units --plain --no-legend --state=active,activating,reloading,failed 'qd.service' 'qd@*.service' 2>/dev/null | cut -d' ' -f1)
enabled=$(find /etc/systemd/system /run/systemd/system -type l \( -name qd.service -o -name 'qd@*.service' \) 2>/dev/null || true)
[ -n "$running$enabled" ] || did= # also by a second run before anything else was done
[ "$did" != upgraded ] || {
  echo "qd: next: qd --config FILE migrate --status, then migrate, with the migrator's own file, and qd check:"
  echo "qd:       docs/operations.md, Upgrade, has each step"
}
if [ -n "$running" ]; then
  echo "qd: then: systemctl restart $(echo $running) (running jobs may end within shutdown.grace)"
elif [ "$did" = upgraded ]; then
  echo "qd: no daemon is to be restarted: none runs"
else
  echo "qd: next: the password into /etc/credstore/qd.db-password, your handlers into /etc/qd/qd.yaml, qd migrate,"
  echo "qd:       qd check, systemctl enable --now qd; docs/operations.md has each step"
fi
