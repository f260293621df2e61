"""Elasticsearch driver on its REST API, without a client library.

A source's SQL is `SELECT columns FROM index [WHERE condition]`, or just the name of an index.
Columns are fields of the mapping: `address.city` is a field, `address` the whole object as JSON,
`_id` and `_index` are available by name, and `*` selects the top level of the mapping (which
Elasticsearch keeps in alphabetical order). Elasticsearch SQL translates the condition
(`/_sql/translate`). The index may be an alias, a data stream or a pattern, in double quotes unless
it is an identifier; the export guard accepts neither patterns nor bare names, so exports need an
alias for a pattern. Nothing that needs more than one pass over the documents is supported: no
aggregates, joins, ORDER BY or LIMIT. Fields missing in the mapping (`dynamic: false`) cannot be
selected.

Tested against a fake server that implements the protocol, not against Elasticsearch itself.
"""

from penstock.sources.elasticsearch.source import ElasticsearchSource, connect

__all__ = ["ElasticsearchSource", "connect"]
