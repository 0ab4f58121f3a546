"""What a rewrite is asked for, which files it takes, and what it brings and costs."""
