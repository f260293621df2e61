"""The worker process: it claims, runs, reports and leaves in order. No web framework and no
database in here."""

from penstock.jobs.handler import Handler, Handlers, Job, JobContext, Park, Result, Stop, Stopped
from penstock.worker.runtime import Summary, Worker

__all__ = [
    "Handler",
    "Handlers",
    "Job",
    "JobContext",
    "Park",
    "Result",
    "Stop",
    "Stopped",
    "Summary",
    "Worker",
]
