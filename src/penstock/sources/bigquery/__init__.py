"""BigQuery: a query job over REST, its result through the Storage Read API as Arrow.

Every query is a job with BigQuery's own temporary table as its destination; a read session over
that table is one moment, and its streams are the chunks. A plan of one chunk costs nothing, for its
job runs when it is read.

Tested against a protocol-true server of ours, never against the vendor's.
"""

from penstock.sources.bigquery.source import BigQuerySource, connect

__all__ = ["BigQuerySource", "connect"]
