"""Rewrites of a table: plan, write, verify, commit."""
