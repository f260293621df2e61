"""Graphs: snapshots, and the exports that fill them."""
