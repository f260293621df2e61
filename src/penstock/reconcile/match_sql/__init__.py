"""The SQL of `match_sql`: a dialect of its own, which every engine computes to the same values.

    parse        one SELECT of listed parts, as a tree
    types        what an expression is, and how an engine carries it
    values       typed SQL: literals, common types, comparisons, failures
                 (arithmetic, casts, dates: operations on it)
    functions    the listed functions, by name
                 (text_functions, date_functions, aggregates; call: one call and its arguments)
    expressions  trees of expressions to typed SQL
                 (conditions, cast_syntax, windows: parts of them; scope: the names they may use)
    queries      a whole query: WITH, UNION and tables
                 (select: one SELECT; equalities: what joins both sides)

docs/reference/match-sql.md says what each part means.
"""
