"""Catalogs: their configuration, open ones, access to a table, and our REST catalog for others."""
