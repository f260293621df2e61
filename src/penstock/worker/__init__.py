"""The worker process: it claims, runs, reports and leaves in order. No web framework and no database in here."""

from penstock.worker.attempt import Stop, Stopped
from penstock.worker.context import JobContext
from penstock.worker.handlers import Handler, Handlers, Job, Park, Result
from penstock.worker.runtime import Summary, Worker

__all__ = ["Handler", "Handlers", "Job", "JobContext", "Park", "Result", "Stop", "Stopped", "Summary", "Worker"]
