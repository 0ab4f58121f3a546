"""Values that backends and the core exchange: snapshots, files with their stats, specs."""
