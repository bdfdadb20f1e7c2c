#!/bin/sh
# `make uninstall`: takes away what `make install` put there, under the same DESTDIR, PREFIX, BINDIR and LIBDIR, and
# says what it leaves: configuration, passwords, drop-ins, what else lies in the program's environment.
set -eu
cd "$(dirname "$0")/.."
. systemd/places.sh

live() { [ -z "$DESTDIR" ] && [ -d /run/systemd/system ]; }

[ -n "$DESTDIR" ] || [ "$(id -u)" = 0 ] || fail "make uninstall removes from $PREFIX and $LIBDIR: run it as root"
if live; then
  running=$(systemctl list-units --plain --no-legend --state=active,activating,deactivating,reloading \
    qd.service 'qd@*.service' | cut -d' ' -f1)
  [ -z "$running" ] || fail "$(echo $running) still runs: systemctl stop qd.target, then again"
  enabled=$(systemctl list-unit-files --plain --no-legend --state=enabled qd.service 'qd@*.service' qd.target |
    cut -d' ' -f1)
  [ -z "$enabled" ] || systemctl --quiet disable $enabled
fi

for unit in $UNITS; do rm -f "$DESTDIR$LIBDIR/systemd/system/$unit"; done
rm -f "$DESTDIR$LIBDIR/sysusers.d/qd.conf" "$DESTDIR$LIBDIR/tmpfiles.d/qd.conf"
for file in jobs.conf.example qd.yaml grants.sql; do rm -f "$DESTDIR$DOCDIR/$file"; done
rmdir "$DESTDIR$DOCDIR" 2>/dev/null || true
[ "$(readlink "$DESTDIR$BINDIR/qd")" != "$PREFIX/bin/qd" ] || rm "$DESTDIR$BINDIR/qd"

at=$DESTDIR$PREFIX
kept='/etc/qd, /etc/credstore/qd.db-password, drop-ins, /var/lib/qd, the user qd, the tables'
if [ -e "$at/.qd" ]; then
  others=$("$at/bin/python" systemd/program.py strangers) || others=$at # its Python is gone: nobody knows
  if [ -z "$others" ]; then
    rm -rf "$at"
  else
    "$at/bin/python" -m pip uninstall --quiet --yes qd || true
    kept="$at with $(printf '%s\n' "$others" | head -n 1) and what else isn't qd's, $kept"
  fi
fi
if live; then systemctl daemon-reload; fi
printf '%s\n' "qd: removed; yours and kept: $kept"
