"""Commits to Iceberg tables."""
