"""An Iceberg table: where it lies, its columns, its snapshots, its spec."""
