"""Tests with the releases of Spark, Delta and Iceberg that platforms have.

``python -m integration.matrix`` makes an environment for each cell, runs the suites in it and
prints the table.
"""
