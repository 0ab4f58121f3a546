"""A Delta table: where it lies, its columns, its snapshots, its spec."""
