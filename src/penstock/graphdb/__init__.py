"""Graph databases behind one contract: a module a backend, and the algorithms that run on any of
them."""
