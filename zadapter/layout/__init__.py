"""Layouts: the assignment of a table's rows to files, and their order."""
