"""What was said in events, counted; what is known in memory, shown. No SQL, no I/O but /proc.

May import: store protocol, config, registry and the pure modules.
"""

from __future__ import annotations

from qd.metrics.depths import DepthSnapshot
from qd.metrics.listener import Metrics
from qd.metrics.runtime import Runtime
from qd.metrics.series import collapsed, series_count

__all__ = ["DepthSnapshot", "Metrics", "Runtime", "collapsed", "series_count"]
