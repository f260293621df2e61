"""Cypher that an engine gets wrong: a statement is rewritten to one that it answers rightly, or
refused. Pure functions of texts (and, where a plan decides, of the engine's plan), called by the
backends before a query runs. Each module names the engine's mistake.
"""
