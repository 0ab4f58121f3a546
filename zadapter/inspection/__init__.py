"""`analyze`, `explain` and `audit`."""
