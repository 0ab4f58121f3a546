"""Runs that are taken up after a crash of their driver."""
