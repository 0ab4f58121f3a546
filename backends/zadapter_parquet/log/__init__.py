"""Log, stats table and snapshots of a table."""
