"""The worker process: claims jobs, runs handlers, reports results and shuts down cleanly.

It depends on neither a web framework nor a database."""

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
