"""Elasticsearch: its REST API alone, no client library.

A source's SQL is `SELECT columns FROM index [WHERE condition]`, or just an index's name. Columns
are fields of the mapping: `address.city` is a field, `address` the whole object as JSON, `_id` and
`_index` are there when named, and `*` is what stands at the mapping's top (which Elasticsearch
keeps in alphabetical order). The condition is translated by Elasticsearch's own SQL
(`/_sql/translate`). The index may be an alias, a data stream or a pattern, in double quotes where
it is no word; the guard of exports lets neither a pattern nor a bare name through, so there an
alias stands for a pattern. Nothing that needs more than one pass over the documents is offered: no
aggregates, joins, ORDER BY, LIMIT. Fields that the mapping does not name (`dynamic: false`) do not
exist here.

Tested against a protocol-true server of ours, never against the vendor's.
"""

from penstock.sources.elasticsearch.source import ElasticsearchSource, connect

__all__ = ["ElasticsearchSource", "connect"]
