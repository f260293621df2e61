"""FalkorDB, a server of its own: the backend, its values and its results."""
