"""Advice on key columns, from the filters of a query log."""
