"""The program of a bench's daemon: `python .../start_daemon.py QUEUE`. The queue is for the process list.

A script and not `-m`, so that it finds the very qd that started it, wherever that was found.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.path[0] = __file__.rsplit("/", 3)[0]  # in place of this file's own folder, whose names hide others
    from qd.bench.inside import main

    sys.exit(main())
