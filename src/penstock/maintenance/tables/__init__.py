"""Iceberg tables: what actions and engines need to read, check, rewrite and commit one.

`catalog/` opens it, `reading/` its files, `ownership/` says which files are its own, `assessment/`
how it is; `layout/`, `verification/` and `commit/` are for rewriting it. PyIceberg blocks, so all
of this is called from threads.
"""
