"""Rewrites of a table: plan, fit, write, verify, commit; runs that died."""
