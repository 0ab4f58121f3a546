"""What is done to a table: registration, moves, publishing, vacuum, loads."""
