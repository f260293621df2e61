"""Graph algorithms on sparse matrices: the catalog, parameter checks and implementations."""
