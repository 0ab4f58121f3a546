"""Values from a table's log: snapshots, file tables with bounds, definitions."""
