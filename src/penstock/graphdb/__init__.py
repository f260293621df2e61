"""Graph database backends behind one contract, and the graph algorithms that run on all of them."""
