"""What differs between the supported releases of Spark."""
