"""What in a Cypher statement is no code: texts, quoted names and comments, as parts of patterns.

They keep nothing of what they have read (`++`): a literal may be megabytes long.
"""

from __future__ import annotations

QUOTED = r"""'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+"|`[^`]*`"""
COMMENT = r"""//[^\n\r]*|/\*(?:[^*]++|\*(?!/))*+\*/"""
