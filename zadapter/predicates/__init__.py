"""Conditions as values, the files that may hold matching rows, and why."""
