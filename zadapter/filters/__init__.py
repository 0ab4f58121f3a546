"""Predicates, and the files that may hold matching rows."""
