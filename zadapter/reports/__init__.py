"""What runs will do and have done, as values and as text."""
