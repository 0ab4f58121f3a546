"""Choice of key columns by the filters of a query log."""
