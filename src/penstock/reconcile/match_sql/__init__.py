"""The SQL of `match_sql`: a dialect of its own, which every engine computes to the same values.

    parse        one SELECT of listed parts, as a tree
    types        what an expression is, and how an engine carries it
    values       typed SQL: casts, common types, arithmetic
    functions    the listed functions
    expressions  trees of expressions to typed SQL
    queries      SELECT, joins, groups, windows, WITH and UNION

docs/reference/match-sql.md says what each part means.
"""
