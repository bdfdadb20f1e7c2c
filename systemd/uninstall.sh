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
  case $(echo $running) in
    '') ;;
    *' '*) fail "$(echo $running) still run: systemctl stop qd.target, then again" ;;
    *) fail "$running still runs: systemctl stop qd.target, then again" ;;
  esac
fi

removed=
stays=
take() { # FILE...: away, and remembers that there was something
  for file; do
    [ -e "$file" ] || [ -L "$file" ] || continue
    rm "$file"
    removed=yes
  done
}

# What `systemctl enable` made: links to these very units, also of instances; those to units of yours stay.
for folder in "$DESTDIR/etc/systemd/system" "$DESTDIR/run/systemd/system"; do
  [ -d "$folder" ] || continue
  for unit in $UNITS; do
    at=$LIBDIR/systemd/system/$unit
    links=$(find "$folder" -type l \( -lname "$at" -o -lname "/usr$at" \) -print -delete)
    [ -z "$links" ] || removed=yes
  done
  rmdir "$folder/qd.target.wants" 2>/dev/null || true
done

for unit in $UNITS; do take "$DESTDIR$LIBDIR/systemd/system/$unit"; done
take "$DESTDIR$LIBDIR/sysusers.d/qd.conf" "$DESTDIR$LIBDIR/tmpfiles.d/qd.conf"
for paper in $PAPERS; do take "$DESTDIR$DOCDIR/${paper##*/}"; done
rmdir "$DESTDIR$DOCDIR" 2>/dev/null || true
[ "$(readlink "$DESTDIR$BINDIR/qd")" != "$PREFIX/bin/qd" ] || take "$DESTDIR$BINDIR/qd"

at=$DESTDIR$PREFIX
kept='/etc/qd, /etc/credstore/qd.db-password, drop-ins, /var/lib/qd, the user qd, the tables'
if [ -e "$at/.qd" ]; then
  others=$("$at/bin/python" systemd/program.py strangers) || others=$at # its Python is gone: nobody knows
  if [ -z "$others" ]; then
    rm -rf "$at"
    removed=yes
  else
    for ours in "$at"/lib/python*/site-packages/qd-*.dist-info; do
      [ ! -e "$ours" ] || ! "$at/bin/python" -m pip uninstall --quiet --yes qd || removed=yes
    done
    kept="$at with $(printf '%s\n' "$others" | head -n 1) and what else isn't qd's, $kept"
    stays="; $at isn't qd's alone and stays"
  fi
fi
if live; then systemctl daemon-reload; fi
if [ -n "$removed" ]; then
  printf '%s\n' "qd: removed; yours and kept: $kept"
else
  printf '%s\n' "qd: nothing to remove: ${DESTDIR:+in $DESTDIR }there is no qd in $LIBDIR/systemd/system and $PREFIX$stays"
fi
