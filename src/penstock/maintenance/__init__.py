"""Well-kept Iceberg tables: what ails them, and the actions that cure it."""
