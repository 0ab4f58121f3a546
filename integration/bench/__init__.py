"""Benchmark against the peers: ``python -m integration.bench``."""
