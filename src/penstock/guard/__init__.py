"""Validation of untrusted input: read-only SQL and Cypher, outbound URLs, object keys.

The checks are pure, deny by default, and are tested with hostile corpora.
"""
