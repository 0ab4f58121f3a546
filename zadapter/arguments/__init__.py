"""Check and resolve the arguments of the public functions."""
