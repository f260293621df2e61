"""Data sources: one contract and one module or package per driver, imported on first use."""
