"""Table format: log entries and file names."""
