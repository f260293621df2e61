"""Graph drawings: a standalone HTML page and a notebook widget. Imports no other package of
Penstock."""
