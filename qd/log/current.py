"""Which job the running code belongs to, so that what a handler logs can name it. Pure."""

from __future__ import annotations

from contextvars import ContextVar

JOB_ID: ContextVar[int | None] = ContextVar("qd_job_id", default=None)
"""The id of the job whose handler runs in this context, or None."""
