"""Public operations on rows and versions of tables."""
