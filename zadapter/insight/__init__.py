"""What the file table says of a table: overlap, reads, what is due; why files are read; audits."""
