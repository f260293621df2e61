"""Algorithms on the numbers of a graph: what there is, what it takes, and the code that computes
it."""
