"""Reading tables, changing their rows, and their versions."""
