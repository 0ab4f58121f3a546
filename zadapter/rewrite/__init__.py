"""Rewrites of one table: plan, write, verify, commit."""
