"""Reconciliation: recipes, runs, and evidence that ties."""
