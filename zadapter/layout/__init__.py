"""Layouts: which rows of a table go into which file, and in what order."""
