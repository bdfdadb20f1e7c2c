"""Everything that is done to the daemons, to their server and to the way between: each kind a module.

A harm is a generator: it does something, yields the seconds that this should last, and undoes it.
"""
