"""The plain Parquet backend; it is not there yet, its name is reserved."""
