"""Proof that rewritten files have the rows of those they replace."""
