"""The program of a child: `python .../start_child.py LABEL`. The label is for the process list.

A script and not `-m`, so that it finds the very qd that started it, wherever that was found.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.path[0] = __file__.rsplit("/", 3)[0]  # in place of this file's own folder; the real path follows
    from qd.executors.inside import main

    sys.exit(main())
