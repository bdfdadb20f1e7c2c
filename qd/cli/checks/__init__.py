"""What `qd check` looks at, a module for each subject; each function gives findings, in their order.

Nothing here changes anything, and nothing prints. May import: config, metrics, executors, the modules of cli,
protocol's values.
"""
