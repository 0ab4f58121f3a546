"""Logs of millions of files without data, and what they cost."""
