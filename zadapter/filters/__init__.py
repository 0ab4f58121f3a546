"""Conditions as predicates, and the files that may hold rows they are true for."""
