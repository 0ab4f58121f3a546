"""Stats of data files, as Delta's log has them."""
