"""Query logs in the forms in which they are kept."""
