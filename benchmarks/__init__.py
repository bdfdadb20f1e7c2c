"""qd's speed, measured beside its peers and against its own targets. Development only; never shipped.

`python -m benchmarks` (or `make bench`) runs the sections one after the other and prints one table.
"""
