"""Values that backends and the core exchange: snapshots, file tables, table definitions."""
