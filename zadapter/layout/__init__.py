"""Layouts: which row goes into which file, and what filters read of the files."""
