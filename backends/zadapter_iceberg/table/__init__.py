"""Iceberg tables: lookup, snapshots, definitions and side files."""
