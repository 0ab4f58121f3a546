"""The table format: entries of the log and names of files."""
