"""The Apache Iceberg backend; it is not there yet, its name is reserved."""
