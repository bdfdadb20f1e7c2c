"""How one attempt is run: a function, in this thread or in a child process, or a program. May import: the layers below.

Owns the interruption of handlers and their time-outs; knows nothing of rows, leases or the store.
"""

from __future__ import annotations

from qd.executors.attempt import Attempt, Place
from qd.executors.child import Child
from qd.executors.children import Children
from qd.executors.home import Home
from qd.executors.interruption import Interruption
from qd.executors.timekeeper import Timekeeper, TimekeeperService

__all__ = ["Attempt", "Child", "Children", "Home", "Interruption", "Place", "Timekeeper", "TimekeeperService"]
