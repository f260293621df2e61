"""Maintenance of Iceberg tables: health reports, policies, and the actions that fix a table."""
