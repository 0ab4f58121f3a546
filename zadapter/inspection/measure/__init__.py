"""What Spark plans to read of a table, and what its rows contain."""
