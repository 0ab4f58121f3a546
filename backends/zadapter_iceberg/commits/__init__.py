"""Commits of snapshots."""
