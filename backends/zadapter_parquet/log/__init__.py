"""The log of a table, its stats, its snapshots."""
