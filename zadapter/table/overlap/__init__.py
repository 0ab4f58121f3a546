"""Ranges of columns in files, and how many files overlap at a point."""
