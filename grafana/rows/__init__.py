"""What the dashboard shows: a module for each row, each with its `TITLE` and its `PANELS` in order.

A panel's description says what it answers and, where it isn't plain, what to do. Thresholds that an alert
has too are the alert's. May import: promql, panels.
"""
