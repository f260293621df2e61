"""How a table is: facts, what the actions would do, and a score. Reads only."""
