"""Query logs in the forms in which they are kept, and the filters of their queries."""
