"""Spark's and Hadoop's own Java classes, and what is called in them."""
