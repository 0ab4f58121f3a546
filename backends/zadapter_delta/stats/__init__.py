"""File stats in Delta's log."""
