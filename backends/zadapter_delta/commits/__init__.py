"""Commits to Delta's log."""
