"""`qd bench`: what qd does on the configured database, measured on a real daemon of its own.

`run` is the order of its stages; `daemon` starts and watches daemons, `inside` is what runs in one. All
of its rows are in one queue whose name nobody else serves, so that they can be told from everybody's and
removed whatever happened. No SQL here: the store has what it takes. May import: everything below the
command line.
"""
