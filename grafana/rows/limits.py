"""Bounds that several rows colour by; those of alerts are held equal to `config/prometheus/qd.rules.yml` by a test."""

READY_AGE = 300.0
"""Seconds: QdOldestReadyJobTooOld."""

RUNNING = 900.0
"""Seconds: QdJobStuck."""

OUTCOMES_THAT_FAILED = 'outcome=~"failed|timeout|crashed|lost|rejected"'
OUTCOMES_THAT_COUNT = 'outcome!~"snoozed|released"'
"""A snooze and a hand-back aren't attempts: nothing was tried."""
