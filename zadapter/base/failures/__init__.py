"""Failures of other programs."""
