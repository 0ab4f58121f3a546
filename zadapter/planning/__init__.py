"""Which files to rewrite together, and what a rewrite will bring."""
