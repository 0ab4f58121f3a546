"""Reads and writes of a table's data files, and stats that footers lack."""
