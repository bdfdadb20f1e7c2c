# Where `make install` puts things, for install.sh, which says what each is, and uninstall.sh, which ends in rm -rf:
# what can't be a place is refused here, before either does anything.
: "${DESTDIR:=}" "${PREFIX:=/opt/qd}" "${BINDIR:=/usr/local/bin}" "${LIBDIR:=/usr/local/lib}"
: "${PROGRAM:=yes}" "${PYTHON:=python3}"
UNITS='qd.service qd@.service qd.target'
PAPERS='systemd/qd.service.d/jobs.conf.example config/qd.yaml docs/grants.sql docs/runbook.md
  config/prometheus/prometheus.yml config/prometheus/qd.rules.yml config/prometheus/alertmanager.yml
  grafana/qd-dashboard.json'

fail() { # in one line, whatever it quotes
  printf 'qd: %s' "$*" | tr '[:cntrl:]' '?' >&2
  echo >&2
  exit 1
}

bare() { # PATH: without slashes at its end
  bare=$1
  while [ "$bare" != "${bare%/}" ]; do bare=${bare%/}; done
  printf '%s\n' "$bare"
}

case $DESTDIR in
  *[[:cntrl:]]*) fail "DESTDIR=$DESTDIR: no control characters" ;;
  '' | /*) ;;
  *) fail "DESTDIR=$DESTDIR must be an absolute path, like DESTDIR=/tmp/qd-tree" ;;
esac
for place in "$PREFIX" "$BINDIR" "$LIBDIR"; do
  case $place in
    *[!A-Za-z0-9/_.+-]*) fail "'$place': a unit can name only folders of letters, digits and / _ . + -" ;;
  esac
  case $(bare "$place")/ in
    / | [!/]* | */./* | */../*) fail "'$place' must be an absolute path to a folder, without . and .. in it" ;;
  esac
done
DESTDIR=$(bare "$DESTDIR")
PREFIX=$(bare "$PREFIX")
BINDIR=$(bare "$BINDIR")
LIBDIR=$(bare "$LIBDIR")
ways='-s -P' # as it is written, and where links lead: this system's, which aren't another tree's
[ -z "$DESTDIR" ] || ways=-s
for folder in $(sed -n 's/^HIDDEN = (\(.*\))$/\1/p' systemd/interpreter.py | tr -d '",'); do
  for way in $ways; do
    case $(realpath -m $way "$PREFIX")/ in
      "$folder"/*) fail "'$PREFIX': a service doesn't see $folder; take a PREFIX like /opt/qd" ;;
    esac
  done
done
DOCDIR=${LIBDIR%/lib*}/share/doc/qd
