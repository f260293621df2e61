"""Regular expressions for the quoted parts of Cypher: strings, quoted names and comments.

Their quantifiers are possessive (`++`): a literal may be megabytes long.
"""

from __future__ import annotations

QUOTED = r"""'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+"|`[^`]*`"""
COMMENT = r"""//[^\n\r]*|/\*(?:[^*]++|\*(?!/))*+\*/"""
