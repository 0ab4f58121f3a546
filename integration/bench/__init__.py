"""Measured against the peers: ``python -m integration.bench``."""
