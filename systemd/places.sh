# Where `make install` puts things, for install.sh and uninstall.sh; the first says what each is.
: "${DESTDIR:=}" "${PREFIX:=/opt/qd}" "${BINDIR:=/usr/local/bin}" "${LIBDIR:=/usr/local/lib}"
: "${PROGRAM:=yes}" "${PYTHON:=python3}"
DESTDIR=${DESTDIR%/}
DOCDIR=${LIBDIR%/lib*}/share/doc/qd
UNITS='qd.service qd@.service qd.target'
