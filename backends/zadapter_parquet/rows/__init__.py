"""Rows of a table in Parquet files, and what their footers do not have."""
